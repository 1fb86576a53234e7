package scan

import (
	"cmp"
	"math"
	"slices"
)

// guess is a warp with its fit.
type guess struct {
	warp
	fit float64
}

// symbol tries to read what a triple of finders frames.
func (l *look) symbol(t triple) (string, bool) {
	l.sign = 1
	if t.a.inverse {
		l.sign = -1
	}
	l.contrast(t)
	for _, g := range l.guesses(t) {
		if l.over() {
			return "", false
		}
		if text, ok := l.tryWarp(g, t); ok {
			return text, true
		}
	}
	return "", false
}

// guesses are the sizes that a symbol may have, each with its best warp by the
// finders alone; the best first.
func (l *look) guesses(t triple) []guess {
	around := int(math.Round((t.span + 7 - 17) / 4))
	spread := 1 + around/6
	l.tried = l.tried[:0]
	d, aslant := opposite(t)
	a, b, c := t.a.middle(), t.b.middle(), t.c.middle()
	said := 0
	if around > 5 {
		said = l.version(t)
		if said < around-2*spread || said > around+2*spread {
			said = 0
		}
	}
	least := 0.1
	if around > 9 && said == 0 {
		least = 0.3
	}
	first, last := max(around-spread, 1), min(around+spread, 40)
	if said > 0 {
		first, last = said, said
	}
	for v := first; v <= last; v++ {
		modules := 17 + 4*v
		p := l.pattern(modules)
		g := guess{warp: flat(modules, a, b, b.add(c).sub(a), c)}
		g.fit = l.beat(&g.warp, p)
		if aslant {
			w := flat(modules, a, b, d, c)
			if fit := l.beat(&w, p); fit > g.fit {
				g = guess{w, fit}
			}
		}
		if g.fit > least || v == said {
			l.tried = append(l.tried, g)
		}
	}
	slices.SortFunc(l.tried, func(a, b guess) int { return cmp.Compare(b.fit, a.fit) })
	l.tried = l.tried[:min(len(l.tried), 3)]
	for i := range l.tried {
		g := &l.tried[i]
		g.fit = l.match(&g.warp, l.pattern(g.modules).marks)
	}
	slices.SortFunc(l.tried, func(a, b guess) int { return cmp.Compare(b.fit, a.fit) })
	return l.tried
}

// opposite is where the middle of a fourth finder would be: on the line through
// the top right one along its side that leads down, and on the line through the
// bottom left one along its side that leads right.
func opposite(t triple) (vec, bool) {
	down := along(t.b, t.c.middle().sub(t.a.middle()))
	right := along(t.c, t.b.middle().sub(t.a.middle()))
	d, ok := meet(t.b.middle(), down, t.c.middle(), right)
	if !ok {
		return d, false
	}
	// Further than twice as far from the flat one is no view but an error.
	plain := t.b.middle().add(t.c.middle()).sub(t.a.middle())
	off, size := d.sub(plain), plain.sub(t.a.middle())
	return d, off.dot(off) < size.dot(size)/6
}

// along is the side of a finder that leads the most in a direction.
func along(f *finder, d vec) vec {
	u, v := inFrame(f, d)
	if math.Abs(u) > math.Abs(v) {
		return f.u
	}
	return f.v
}

// tryWarp samples and decodes with warps that fit better and better: as the finders
// have it, through the last alignment pattern, bent to all of them, refined.
func (l *look) tryWarp(g guess, t triple) (string, bool) {
	p := l.pattern(g.modules)
	if g.fit < 0.2 {
		return "", false
	}
	if g.fit > 0.8 && l.sample(&g.warp) { // held flat, as most are
		if text, ok := l.decode(l.grid.dark()); ok {
			return text, true
		}
	}
	if last := len(p.nodes) - 1; last > 0 {
		x := float64(p.nodes[last]) + 0.5
		far := min(max(3, 0.12*float64(g.modules)), 6)
		if at, fit := l.seek(&g.warp, x, x, far, g.plane(x, x)); fit > 0.7 {
			if w, ok := through(g.modules, t.a.middle(), t.b.middle(), t.c.middle(), at, x, x); ok {
				if fit := l.match(&w, p.marks); fit > g.fit-0.15 {
					g = guess{w, fit}
				}
			}
		}
	}
	if g.fit > 0.4 {
		if text, ok := l.bent(g.warp, p); ok {
			return text, true
		}
	}
	if l.over() {
		return "", false
	}
	w, fit := l.refine(g.warp, p.few)
	if fit < 0.35 {
		return "", false
	}
	return l.bent(w, p)
}

// bent reads with a flat warp, and bent to its alignment patterns.
func (l *look) bent(w warp, p *pattern) (string, bool) {
	if len(p.nodes) > 2 {
		l.bendTo(&w, p.nodes)
		if l.over() {
			return "", false
		}
	}
	return l.decodeAll(&w)
}
