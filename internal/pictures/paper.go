package pictures

import (
	"math"
	"math/rand/v2"
)

// A paper ticket's measures in centimetres; its middle is paperDrop below the
// symbol's.
const (
	paperHalfWidth  = 4.7
	paperHalfHeight = 7
	paperDrop       = 0.8
	paperCode       = 4.4 // side of the symbol
)

// paper is a printed sheet that was folded, and carried in a pocket.
type paper struct {
	symbol  [][]bool
	title   lettering
	lines   []float64 // lengths of the printed lines, centimetres
	creases []crease
	curl    float64 // how far the edges bend, centimetres
	fibre   noise
}

// crease is a fold along a line: (u, v) with u*nu + v*nv = at.
type crease struct{ nu, nv, at, depth float64 }

// off is the distance from the fold.
func (c crease) off(u, v float64) float64 { return u*c.nu + v*c.nv - c.at }

func newPaper(h Held, rng *rand.Rand) *paper {
	p := &paper{
		symbol: h.Symbol, title: newLettering(h.Title),
		curl: between(rng, -0.12, 0.12), fibre: noise{rng.Uint64()},
	}
	for range 6 {
		p.lines = append(p.lines, between(rng, 2.5, 7.5))
	}
	fold := func(angle, at, depth float64) {
		p.creases = append(p.creases, crease{math.Cos(angle), math.Sin(angle), at, depth})
	}
	fold(math.Pi/2+between(rng, -0.06, 0.06), between(rng, 0.2, 1.2), between(rng, 0.6, 1)) // folded in four
	fold(between(rng, -0.06, 0.06), between(rng, -0.6, 0.6), between(rng, 0.5, 0.9))
	for range 4 { // pocket
		fold(rng.Float64()*math.Pi, between(rng, -4, 4), between(rng, 0.1, 0.45))
	}
	return p
}

func (p *paper) code() float64 { return paperCode }

func (p *paper) beside(u, v float64) float64 {
	return roundBox(u, v-paperDrop, paperHalfWidth, paperHalfHeight, 0.08)
}

func (p *paper) at(u, v float64) (reflect, emit float64, hit bool) {
	light := 1.0
	for _, c := range p.creases {
		d := c.off(u, v)
		square := d * d
		bend := c.depth / (1 + square*square)
		light *= 1 + 0.2*bend*d/(math.Abs(d)+0.15) - 0.3*c.depth/(1+square*square/1.6e-5)
		u += 0.03 * bend * c.nu // each side of a fold comes nearer the other
		v += 0.03 * bend * c.nv
	}
	v += p.curl * (u / paperHalfWidth) * (u / paperHalfWidth)
	if p.beside(u, v) > 0 {
		return 0, 0, false
	}
	light *= 0.96 + 0.08*p.fibre.at(u*7, v*7)
	tone := 0.78
	if p.inked(u, v) {
		tone = 0.06
	}
	return tone * light, 0, true
}

func (p *paper) inked(u, v float64) bool {
	if moduleAt(p.symbol, u, v, paperCode) {
		return true
	}
	if p.title.inkAt(u, v+3.75, 0.75) {
		return true
	}
	if top := v + 5.3; top > 0 && top < 0.5 && math.Abs(u) < 4.1 {
		return true // a bar above the title
	}
	for i, length := range p.lines {
		top := 3.4 + 0.6*float64(i)
		if v > top && v < top+0.2 && u > -3.9 && u < -3.9+length {
			return math.Mod(u*7+float64(i)*3.3, 1.9) > 0.25 // words
		}
	}
	return false
}
