package pictures

import (
	"math"
	"math/rand/v2"
)

// harm is what comes between a symbol and the camera: beats between the screen's
// grid and the sensor's, and cracks in the glass.
type harm struct {
	moire        float64
	beatU, beatV float64 // waves a centimetre
	bow          float64 // of the waves: a lens bends them
	cracks       []crack
	hitU, hitV   float64 // where the glass was hit
}

// crack is a line from where the glass was hit, by the angle that it starts at.
type crack struct {
	angle  float64
	jagged noise
}

// newHarm gives nil where nothing is wrong. Its chances are its own, so that what a
// picture shows besides is the same.
func newHarm(h Held, s Spec, code float64) *harm {
	if h.Moire == 0 && h.Cracks == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x6861726d))
	way := rng.Float64() * 2 * math.Pi
	waves := between(rng, 1.2, 3)
	m := &harm{
		moire: h.Moire, beatU: waves * math.Cos(way), beatV: waves * math.Sin(way), bow: between(rng, -0.1, 0.1),
		hitU: between(rng, -0.6, 0.6) * code, hitV: between(rng, -0.6, 0.6) * code,
	}
	for i := range h.Cracks {
		angle := (float64(i) + rng.Float64()) * 2 * math.Pi / float64(h.Cracks)
		m.cracks = append(m.cracks, crack{angle, noise{rng.Uint64()}})
	}
	return m
}

// change is what is left of a place's reflectance and light.
func (m *harm) change(u, v, reflect, emit float64) (float64, float64) {
	if m == nil {
		return reflect, emit
	}
	if m.moire > 0 {
		wave := math.Sin(2 * math.Pi * (u*m.beatU + v*m.beatV + m.bow*(u*u+v*v)))
		emit *= 1 + m.moire*wave
	}
	du, dv := u-m.hitU, v-m.hitV
	away := math.Hypot(du, dv)
	for _, c := range m.cracks {
		angle := c.angle + 0.5*(c.jagged.at(away*1.5+3, 0.5)-0.5)
		aside := math.Abs(math.Remainder(math.Atan2(dv, du)-angle, 2*math.Pi)) * away
		if aside < 0.025 {
			return 0.5, emit * 0.3 // splinters scatter the hall's light and lose the screen's
		}
		if aside < 0.06 {
			emit *= 0.75
		}
	}
	return reflect, emit
}

// thumb is a finger that covers a share of the symbol's side, from the right.
func thumb(h Held, s Spec, code, skin float64) finger {
	rng := rand.New(rand.NewPCG(s.Seed, 0x7468756d))
	v := between(rng, -0.3, 0.3) * code
	tip := code/2 - h.Covered*code
	const r = 0.8
	return finger{au: code/2 + 5, av: v + 1.5, bu: tip + r, bv: v, r: r, skin: skin}
}
