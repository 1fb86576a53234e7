package scan

import (
	"math"
	"math/bits"
)

// finder is a place that looks like a finder pattern: a square of three modules
// within two rings of one, dark, light, dark, or the other way round.
type finder struct {
	x, y    float64 // the middle
	module  float64 // pixels
	inverse bool    // light, dark, light
	corner  [4]vec  // of the outer ring, clockwise in the picture
	u, v    vec     // one module along its sides, at right angles but for the view
	fit     float64 // share of rays from the middle that see the rings where they belong
	used    bool    // by a symbol that was read
}

// vec is a point or a direction in the picture, in pixels.
type vec struct{ x, y float64 }

func (a vec) add(b vec) vec       { return vec{a.x + b.x, a.y + b.y} }
func (a vec) sub(b vec) vec       { return vec{a.x - b.x, a.y - b.y} }
func (a vec) times(f float64) vec { return vec{a.x * f, a.y * f} }
func (a vec) cross(b vec) float64 { return a.x*b.y - a.y*b.x }
func (a vec) dot(b vec) float64   { return a.x*b.x + a.y*b.y }
func (a vec) length() float64     { return math.Sqrt(a.dot(a)) }
func (f *finder) middle() vec     { return vec{f.x, f.y} }
func mix(a, b vec, t float64) vec { return a.add(b.sub(a).times(t)) }

// search goes along rows of the bitmap and notes places where five runs have the
// proportions of a line through a finder pattern, and a column and another row
// through the middle have them too.
func (l *look) search(step int) {
	l.finders = l.finders[:0]
	for y := step / 2; y < l.bits.h; y += step {
		l.searchRow(y)
		if len(l.finders) >= maxFinders {
			return
		}
	}
}

func (l *look) searchRow(y int) {
	var before uint64 // the last pixel of the word before
	var e [6]int      // the last six edges
	n := 0
	row := l.bits.row(y)
	for i, w := range row {
		t := w ^ (w<<1 | before)
		before = w >> 63
		for ; t != 0; t &= t - 1 {
			x := i*64 + bits.TrailingZeros64(t)
			e[0], e[1], e[2], e[3], e[4], e[5] = e[1], e[2], e[3], e[4], e[5], x
			if n++; n >= 6 && alike(e[1]-e[0], e[2]-e[1], e[3]-e[2], e[4]-e[3], e[5]-e[4]) {
				l.confirm(e[2], e[3], e[5]-e[0], y, n%2 == 1)
			}
		}
	}
	if before == 0 || len(row)*64 > l.bits.w {
		l.spend(2*len(row) + 5*n)
		return
	}
	e[0], e[1], e[2], e[3], e[4], e[5] = e[1], e[2], e[3], e[4], e[5], l.bits.w
	if n++; n >= 6 && alike(e[1]-e[0], e[2]-e[1], e[3]-e[2], e[4]-e[3], e[5]-e[4]) {
		l.confirm(e[2], e[3], e[5]-e[0], y, n%2 == 1)
	}
	l.spend(2*len(row) + 5*n)
}

// alike tells whether five runs may cross a finder pattern. A wrong threshold
// makes all dark runs longer and all light ones shorter by the same, or the other
// way round; sums of two neighbours do not feel it.
func alike(a, b, c, d, e int) bool {
	sum := a + b + c + d + e
	if c*100 < sum*26 || c*100 > sum*62 {
		return false
	}
	ab, de, bc, cd := a+b, d+e, b+c, c+d
	return ab*100 > sum*15 && ab*100 < sum*43 && de*100 > sum*15 && de*100 < sum*43 &&
		bc*100 > sum*40 && bc*100 < sum*74 && cd*100 > sum*40 && cd*100 < sum*74 &&
		2*c > a && 2*c > e
}

// confirm looks at the column and the row through the middle of the run from x0 to
// x1 in row y, and keeps a new finder.
func (l *look) confirm(x0, x1, length, y int, inverse bool) {
	if inverse && l.darkOnly {
		return
	}
	x := (x0 + x1) / 2
	mid := vec{float64(x0+x1) / 2, float64(y) + 0.5}
	for i := range l.finders {
		f := &l.finders[i]
		if d := f.middle().sub(mid); f.inverse == inverse && d.dot(d) < 6*f.module*f.module {
			return
		}
	}
	column, ok := l.crossing(x, y, 0, 1, 3*length)
	if !ok || column.length*4 < length || column.length > length*4 {
		return
	}
	y = int(column.mid)
	line, ok := l.crossing(x, y, 1, 0, 3*length)
	if !ok {
		return
	}
	f := finder{x: line.mid, y: column.mid, module: float64(line.length+column.length) / 14, inverse: inverse}
	if l.shape(&f) && !l.known(&f) {
		l.finders = append(l.finders, f)
	}
}

func (l *look) known(f *finder) bool {
	for i := range l.finders {
		g := &l.finders[i]
		if d := g.middle().sub(f.middle()); g.inverse == f.inverse && d.dot(d) < 4*g.module*g.module {
			return true
		}
	}
	return false
}

// run is a line through a finder pattern.
type run struct {
	mid    float64
	length int
}

// crossing follows a column or a row from a pixel within the middle of a finder
// both ways over its rings.
func (l *look) crossing(x, y, dx, dy, most int) (run, bool) {
	var n [5]int
	b := &l.bits
	first := b.dark(x, y)
	walk := func(sx, sy int, to [3]int) bool {
		colour, at, px, py := first, 0, x+sx, y+sy
		for steps := 0; b.within(px, py); px, py = px+sx, py+sy {
			if b.dark(px, py) != colour {
				if at == 2 {
					return true
				}
				at, colour = at+1, !colour
			}
			n[to[at]]++
			if steps++; steps > most {
				return false
			}
		}
		return at == 2
	}
	n[2] = 1
	ok := walk(-dx, -dy, [3]int{2, 1, 0})
	left := n[2]
	ok = ok && walk(dx, dy, [3]int{2, 3, 4})
	l.spend(10 + n[0] + n[1] + n[2] + n[3] + n[4])
	if !ok || !alike(n[0], n[1], n[2], n[3], n[4]) {
		return run{}, false
	}
	from := x*dx + y*dy - left + 1
	return run{float64(from) + float64(n[2])/2, n[0] + n[1] + n[2] + n[3] + n[4]}, true
}
