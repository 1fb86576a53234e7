package scan

import "math"

// seek looks for an alignment pattern about a place of the symbol: module (x, y)
// is its middle. It looks up to far modules off, and gives the place in the
// picture and how well it fits, 1 at best.
func (l *look) seek(w *warp, x, y, far float64, from vec) (vec, float64) {
	_, right, down := w.view(x, y)
	best, at := -1.0, from
	scan := func(centre vec, far, step float64) {
		for v := -far; v <= far; v += step {
			for u := -far; u <= far; u += step {
				p := centre.add(right.times(u)).add(down.times(v))
				if fit := l.bullseye(p, right, down); fit > best {
					best, at = fit, p
				}
			}
		}
	}
	scan(from, far, 0.5)
	if best > 0.2 {
		scan(at, 0.25, 0.25)
		scan(at, 0.125, 0.125)
	}
	return at, best
}

// bullseye tells how much a place looks like the middle of an alignment pattern, a
// dark module in a light ring in a dark ring: the correlation of its 25 modules
// with that, 1 at best. It asks for no threshold: where modules are small the dot
// in the middle is faint.
func (l *look) bullseye(p, right, down vec) float64 {
	l.spend(250)
	var sum, squares, light, dot float64
	for y := -2; y <= 2; y++ {
		for x := -2; x <= 2; x++ {
			at := p.add(right.times(float64(x))).add(down.times(float64(y)))
			if at.x < 0 || at.y < 0 || !l.bits.within(int(at.x), int(at.y)) {
				return -1
			}
			v := l.sign * l.pic.at(at.x, at.y)
			sum += v
			squares += v * v
			switch max(abs(x), abs(y)) {
			case 1:
				light += v
			case 0:
				dot = v
			}
		}
	}
	_ = dot
	const dark, bright = 17, 8
	spread := squares - sum*sum/25
	if spread < 25*2 {
		return -1
	}
	// With d = -8/25 for dark and 17/25 for light modules the template has the mean 0
	// and the square 17*8/25.
	return (light - sum*bright/25) / math.Sqrt(spread*dark*bright/25)
}

// node is one alignment pattern of a symbol.
type node struct {
	x, y  float64 // its middle, in modules
	off   vec     // from where the flat warp has it
	found bool
	fixed bool // a finder is there instead, which the warp goes through
}

// bendTo finds the alignment patterns and bends the warp to them: first each from
// where its neighbours were; then, from a smooth surface through those that agree,
// each again nearby. It returns how many it found.
func (l *look) bendTo(w *warp, nodes []int) (found int) {
	n := len(nodes)
	if cap(l.nodes) < n*n {
		l.nodes, l.off = make([]node, n*n), make([]vec, n*n)
	}
	at, off := l.nodes[:n*n], l.off[:n*n]
	w.off = nil
	for k := range at {
		i, j := k%n, k/n
		at[k] = node{x: float64(nodes[i]) + 0.5, y: float64(nodes[j]) + 0.5}
		at[k].fixed = i == 0 && j == 0 || i == 0 && j == n-1 || i == n-1 && j == 0
		if at[k].fixed {
			continue
		}
		switch {
		case j == 0:
			at[k].off = at[k-1].off
		case i == 0:
			at[k].off = at[k-n].off
		default:
			at[k].off = at[k-1].off.add(at[k-n].off).sub(at[k-n-1].off)
		}
		l.pin(w, &at[k], 1.5, 0.7)
	}
	for _, far := range [...]float64{1, 0.6} {
		s := smoothSurface(at, float64(w.modules))
		found = 0
		for k := range at {
			if at[k].fixed {
				continue
			}
			at[k].off = s.at(at[k].x, at[k].y)
			l.pin(w, &at[k], far, 0.5)
			if at[k].found {
				found++
			}
		}
	}
	for k := range at {
		off[k] = at[k].off
	}
	w.nodes, w.off = nodes, off
	return found
}

// pin looks for one alignment pattern about where it should be.
func (l *look) pin(w *warp, k *node, far, least float64) {
	place := w.plane(k.x, k.y)
	at, fit := l.seek(w, k.x, k.y, far, place.add(k.off))
	if k.found = fit > least; k.found {
		k.off = at.sub(place)
	}
}
