package scan

import "github.com/makiuchi-d/gozxing"

// grid is a symbol as it was sampled: for each module the grey level, and the
// threshold of the picture there.
type grid struct {
	n          int
	grey, tone []float32
	work       []float32
	columns    [maxModules]float32
}

// five are the places within a module that are looked at, from its middle.
var five = [5]vec{{0, 0}, {-0.2, -0.2}, {0.2, -0.2}, {-0.2, 0.2}, {0.2, 0.2}}

// small is how large modules are whose middle alone is looked at: with what is
// about it their neighbours would come in.
const small = 2.2 // pixels

// sample looks at each module in several places. It gives false when too much of
// the symbol is outside of the picture.
func (l *look) sample(w *warp) bool {
	n := w.modules
	g := &l.grid
	g.size(n)
	places := five[:]
	if _, right, down := w.view(float64(n)/2, float64(n)/2); right.cross(down) < small*small {
		places = five[:1]
	}
	outside := 0
	for y := range n {
		for x := range n {
			grey, tone := 0.0, 0.0
			middle, right, down := w.view(float64(x)+0.5, float64(y)+0.5)
			for _, d := range places {
				p := vec{middle.x + d.x*right.x + d.y*down.x, middle.y + d.x*right.y + d.y*down.y}
				px, py := int(p.x), int(p.y)
				if p.x < 0 || p.y < 0 || !l.bits.within(px, py) {
					outside++
					continue
				}
				v := l.sign * l.pic.at(p.x, p.y)
				grey += v
				if level := l.limits.near(px, py); level != quiet {
					tone += l.sign*float64(level) - v
				}
			}
			g.grey[y*n+x], g.tone[y*n+x] = float32(grey/float64(len(places))), float32(tone)
		}
	}
	l.spend((10 + 10*len(places)) * n * n)
	return outside*8 < len(places)*n*n
}

// size makes room for n x n modules.
func (g *grid) size(n int) {
	if cap(g.grey) < n*n {
		g.grey, g.tone, g.work = make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	}
	g.n, g.grey, g.tone, g.work = n, g.grey[:n*n], g.tone[:n*n], g.work[:n*n]
}

// blank is a matrix of light modules.
func (g *grid) blank() *gozxing.BitMatrix {
	m, err := gozxing.NewSquareBitMatrix(g.n)
	if err != nil {
		panic(err) // n is 21 at least
	}
	return m
}

// dark judges each module by the picture's threshold where it lies.
func (g *grid) dark() *gozxing.BitMatrix {
	m := g.blank()
	for y := range g.n {
		for x, tone := range g.tone[y*g.n:][:g.n] {
			if tone > 0 {
				m.Set(x, y)
			}
		}
	}
	return m
}

// local judges each module by the mean of those about it, in a window of 2*radius+1
// modules, after its own neighbours' light was taken out of it by sharpen.
func (g *grid) local(radius int, sharpen float32) *gozxing.BitMatrix {
	out := g.blank()
	n := g.n
	v := g.work[:n*n]
	for y := range n {
		for x := range n {
			i := y*n + x
			l, r, u, d := i, i, i, i
			if x > 0 {
				l = i - 1
			}
			if x < n-1 {
				r = i + 1
			}
			if y > 0 {
				u = i - n
			}
			if y < n-1 {
				d = i + n
			}
			v[i] = g.grey[i] + sharpen*(4*g.grey[i]-g.grey[l]-g.grey[r]-g.grey[u]-g.grey[d])
		}
	}
	// The sum of a window of columns, taken along the row.
	column := g.columns[:n]
	clear(column)
	for y := range min(radius, n) {
		for x, add := range v[y*n:][:n] {
			column[x] += add
		}
	}
	for y := range n {
		y0, y1 := y-radius, y+radius+1
		if y1 <= n {
			for x, add := range v[(y1-1)*n:][:n] {
				column[x] += add
			}
		}
		if y0 > 0 {
			for x, take := range v[(y0-1)*n:][:n] {
				column[x] -= take
			}
		}
		rows := min(y1, n) - max(y0, 0)
		var sum float32
		for _, c := range column[:min(radius, n)] {
			sum += c
		}
		for x := range n {
			x0, x1 := x-radius, x+radius+1
			if x1 <= n {
				sum += column[x1-1]
			}
			if x0 > 0 {
				sum -= column[x0-1]
			}
			if v[y*n+x]*float32(rows*(min(x1, n)-max(x0, 0))) < sum {
				out.Set(x, y)
			}
		}
	}
	return out
}
