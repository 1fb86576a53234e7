package scan

import (
	"cmp"
	"math"
	"slices"
)

// triple is three finders that may be those of one symbol.
type triple struct {
	a, b, c *finder // top left, top right, bottom left
	cost    float64 // 0 for a flat square
	span    float64 // modules between the middles of two finders, estimated
}

// mostTried bounds how many triples are tried, if the budget lets them.
const mostTried = 400

// reach is how one finder sees another: how far along one of its sides, and how
// far beside.
type reach struct {
	to   int
	side int     // 0: along u, 1: along v, 2: against u, 3: against v
	far  float64 // modules, the mean of what both see
	cost float64
}

// triples lists what may be symbols, the most likely first. A finder shows its
// sides and the length of its modules: the other two of its symbol lie along two
// of its sides, nearly the same number of modules away.
func (l *look) triples() []triple {
	l.found = l.found[:0]
	fs := l.finders
	for i := range fs {
		a := &fs[i]
		if a.used {
			continue
		}
		l.reaches = l.reaches[:0]
		for j := range fs {
			if j == i || fs[j].used || fs[j].inverse != a.inverse {
				continue
			}
			if r, ok := see(a, &fs[j]); ok {
				r.to = j
				l.reaches = append(l.reaches, r)
			}
		}
		l.spend(10 * len(fs))
		l.nearest()
		for _, p := range l.reaches {
			for _, q := range l.reaches {
				if (p.side+1)%4 == q.side {
					l.corner(a, &fs[p.to], &fs[q.to], p, q)
				}
			}
		}
	}
	byCost := func(s, t triple) int { return cmp.Compare(s.cost, t.cost) }
	slices.SortFunc(l.found, byCost)
	l.found = l.found[:min(len(l.found), mostTried)]
	for i := range l.found {
		t := &l.found[i]
		t.cost += l.between(t.a, t.b, t.c)
	}
	l.spend(5 * len(l.found) * len(fs))
	slices.SortFunc(l.found, byCost)
	return l.found
}

// nearest leaves the nearest few of the finders that lie along each side: a symbol
// has no other finder between two of its own, but there may be what looks like one.
func (l *look) nearest() {
	const few = 8
	slices.SortFunc(l.reaches, func(p, q reach) int { return cmp.Compare(p.far, q.far) })
	var n [4]int
	kept := l.reaches[:0]
	for _, p := range l.reaches {
		if n[p.side]++; n[p.side] <= few {
			kept = append(kept, p)
		}
	}
	l.spend(20 * len(l.reaches))
	l.reaches = kept
}

// corner takes a triple up if its two sides are alike.
func (l *look) corner(a, b, c *finder, p, q reach) {
	ratio := p.far / q.far
	if ratio < 1 {
		ratio = 1 / ratio
	}
	if ratio > 1.3 {
		return
	}
	// The hypotenuse tells a square from a parallelogram, roughly.
	l.spend(10)
	ab, ac := b.middle().sub(a.middle()), c.middle().sub(a.middle())
	cos := math.Abs(ab.dot(ac)) / math.Sqrt(ab.dot(ab)*ac.dot(ac))
	t := triple{a: a, b: b, c: c, span: (p.far + q.far) / 2}
	t.cost = p.cost + q.cost + 2*(ratio-1) + cos/2 + 3 - a.fit - b.fit - c.fit + 0.2*math.Log(t.span/10)
	if t.span > 8 && t.span < 190 && len(l.found) < maxTriples {
		l.found = append(l.found, t)
	}
}

// between counts other finders within the triangle: a symbol has none.
func (l *look) between(a, b, c *finder) (cost float64) {
	ab, ac := b.middle().sub(a.middle()), c.middle().sub(a.middle())
	area := ab.cross(ac)
	for i := range l.finders {
		f := &l.finders[i]
		if f == a || f == b || f == c || f.inverse != a.inverse {
			continue
		}
		d := f.middle().sub(a.middle())
		s, t := d.cross(ac)/area, ab.cross(d)/area
		if s > -0.02 && t > -0.02 && s+t < 1.02 {
			cost += 0.15
		}
	}
	return min(cost, 1)
}

// see tells whether two finders may lie on one side of a symbol.
func see(a, b *finder) (reach, bool) {
	d := b.middle().sub(a.middle())
	size := math.Log(a.module / b.module)
	if math.Abs(size) > 0.7 {
		return reach{}, false
	}
	ua, va := inFrame(a, d)
	ub, vb := inFrame(b, d)
	r := reach{}
	var aside float64
	if math.Abs(ua) > math.Abs(va) {
		r.far, aside = math.Abs(ua), math.Abs(va/ua)
		if ua < 0 {
			r.side = 2
		}
	} else {
		r.far, aside, r.side = math.Abs(va), math.Abs(ua/va), 1
		if va < 0 {
			r.side = 3
		}
	}
	far, near := max(math.Abs(ub), math.Abs(vb)), min(math.Abs(ub), math.Abs(vb))
	asideB := near / far
	if aside > 0.3 || asideB > 0.3 || r.far < 8 || far < 8 {
		return reach{}, false
	}
	r.cost = aside + asideB + math.Abs(size)/2 + math.Abs(math.Log(far/r.far))/2
	r.far = (r.far + far) / 2
	return r, true
}

// inFrame expresses a direction in a finder's modules.
func inFrame(f *finder, d vec) (u, v float64) {
	det := f.u.cross(f.v)
	return d.cross(f.v) / det, f.u.cross(d) / det
}
