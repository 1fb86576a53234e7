package pictures

import (
	"math"
	"math/rand/v2"
)

// A phone's measures in centimetres; its middle is phoneDrop below the symbol's.
const (
	phoneHalfWidth  = 3.6
	phoneHalfHeight = 7.5
	phoneDrop       = 0.7
	phoneCode       = 4.6 // side of the symbol
	rim, bezel      = 0.1, 0.32
)

// phone is a slab with a lit screen.
type phone struct {
	symbol [][]bool
	title  lettering
	dark   bool
	lines  []float64 // lengths of the lines of small print, centimetres
	cover  noise     // the picture in the place of a symbol that is not there
}

func newPhone(h Held, rng *rand.Rand) *phone {
	p := &phone{symbol: h.Symbol, title: newLettering(h.Title), dark: h.On == DarkPhone, cover: noise{rng.Uint64()}}
	for range 4 {
		p.lines = append(p.lines, between(rng, 1.6, 4.6))
	}
	return p
}

func (p *phone) code() float64 { return phoneCode }

func (p *phone) beside(u, v float64) float64 {
	return roundBox(u, v-phoneDrop, phoneHalfWidth, phoneHalfHeight, 0.95)
}

func (p *phone) at(u, v float64) (reflect, emit float64, hit bool) {
	d := p.beside(u, v)
	switch {
	case d > 0:
		return 0, 0, false
	case d > -rim:
		return 0.3, 0, true // metal
	case d > -bezel:
		return 0.02, 0, true
	}
	const glass = 0.03
	return glass, p.screen(u, v), true
}

// screen is the light of a place on the screen. White is brighter than paper.
func (p *phone) screen(u, v float64) float64 {
	ground, ink, white := 0.95, 0.12, 1.05
	if p.dark {
		ground, ink, white = 0.012, 0.7, 0.85
	}
	card := phoneCode / 2
	if n := len(p.symbol); n > 0 {
		card += 4 * phoneCode / float64(n) // the quiet zone
	}
	switch {
	case math.Abs(u) < card && math.Abs(v) < card:
		return p.card(u, v, white)
	case p.title.inkAt(u, v+card+0.75, 0.5) || p.print(u, v-card):
		return ink
	}
	return ground
}

// card is the square with the symbol, or else with some picture.
func (p *phone) card(u, v, white float64) float64 {
	switch {
	case len(p.symbol) == 0:
		return 0.05 + 0.7*p.cover.at(u*1.3+50, v*1.3+50)
	case moduleAt(p.symbol, u, v, phoneCode) == p.dark: // light, or dark in dark mode
		return white
	}
	return 0.015
}

// print is the status bar, the small print and the button below the symbol.
func (p *phone) print(u, below float64) bool {
	for i, length := range p.lines {
		top := 0.35 + 0.5*float64(i)
		if below > top && below < top+0.16 && u > -2.6 && u < -2.6+length {
			return true
		}
	}
	bar := below + 9.2 // the status bar is that far above
	if bar > 0 && bar < 0.16 && (u > 2 && u < 2.7 || u > -2.7 && u < -1.9) {
		return true
	}
	return roundBox(u, below-3.1, 1.7, 0.3, 0.3) < 0
}

// moduleAt tells whether the module at a place is dark; beside the symbol all is
// light.
func moduleAt(symbol [][]bool, u, v, side float64) bool {
	n := len(symbol)
	x := int(math.Floor((u/side + 0.5) * float64(n)))
	y := int(math.Floor((v/side + 0.5) * float64(n)))
	return y >= 0 && y < n && x >= 0 && x < len(symbol[y]) && symbol[y][x]
}

// roundBox is the distance of a place from a box with round corners about the
// origin; negative within.
func roundBox(u, v, halfWidth, halfHeight, radius float64) float64 {
	du := math.Abs(u) - halfWidth + radius
	dv := math.Abs(v) - halfHeight + radius
	if du > 0 && dv > 0 {
		return math.Sqrt(du*du+dv*dv) - radius
	}
	return max(du, dv) - radius
}
