package pictures

import (
	"math"
	"math/rand/v2"
)

// surface is a flat thing with the symbol on it. Places on it are centimetres
// right and down from the symbol's middle.
type surface interface {
	// at gives the reflectance and the emission of a place; hit is false beside the
	// thing.
	at(u, v float64) (reflect, emit float64, hit bool)

	// beside is how far a place lies outside the thing's outline, in centimetres;
	// negative within.
	beside(u, v float64) float64

	// code is the side of the symbol in centimetres.
	code() float64
}

// holding is a surface in space with the hand that holds it and the lamp that
// shines on it.
type holding struct {
	pose
	surface
	fingers []finger // before the surface
	arm     []finger // behind it
	lamp    glare
	harm    *harm
}

// glare is a lamp's mirror image: a soft ellipse and a fainter streak through it.
type glare struct{ u, v, r, strength, lean float64 }

func (g glare) at(u, v float64) float64 {
	if g.strength == 0 {
		return 0
	}
	du, dv := (u-g.u)/g.r, (v-g.v)/g.r
	streak := (u - g.u) + g.lean*(v-g.v)
	return g.strength * (math.Exp(-du*du-2*dv*dv) + 0.15*math.Exp(-streak*streak/2))
}

// finger is a rounded bar of skin from a to b.
type finger struct{ au, av, bu, bv, r, skin float64 }

// at gives the finger's reflectance: rounder things are darker at their edges.
func (f finger) at(u, v float64) (reflect float64, hit bool) {
	du, dv := f.bu-f.au, f.bv-f.av
	t := min(max(((u-f.au)*du+(v-f.av)*dv)/(du*du+dv*dv), 0), 1)
	pu, pv := u-f.au-t*du, v-f.av-t*dv
	d := (pu*pu + pv*pv) / (f.r * f.r)
	if d >= 1 {
		return 0, false
	}
	return f.skin * (0.35 + 0.65*math.Sqrt(1-d)), true
}

func newHolding(h Held, s Spec, rng *rand.Rand) *holding {
	o := &holding{}
	skin := between(rng, 0.12, 0.45)
	if h.On == Paper {
		o.surface = newPaper(h, rng)
		v := between(rng, 3.8, 4.6)
		o.fingers = []finger{{6.4, v + 2.4, 3.9, v, 1, skin}}
		o.arm = []finger{{5.5, 6, 9, 16, 2.6, skin * 0.8}}
	} else {
		o.surface = newPhone(h, rng)
		v := between(rng, 4.9, 6)
		o.fingers = []finger{{4.9, v + 1.6, 2.9, v, 0.95, skin}}
		for i := range 3 {
			down := v - 3 + 1.75*float64(i)
			o.fingers = append(o.fingers, finger{-5, down, -3.45, down - 0.1, 0.8, skin * 0.9})
		}
		o.arm = []finger{{0, 7, 2.5, 17, 3.4, skin * 0.7}}
	}
	if h.Covered > 0 {
		o.fingers = append(o.fingers, thumb(h, s, o.code(), skin))
	}
	o.harm = newHarm(h, s, o.code())
	half := o.code() / 2
	side := float64(1 - 2*rng.IntN(2))
	o.lamp = glare{
		u: side * half * between(rng, 0.9, 1.3), v: -half * between(rng, 0.7, 1.2),
		r: half * between(rng, 0.5, 0.8), strength: s.Glare, lean: between(rng, 0.3, 0.8),
	}
	o.pose = newPose(h, s, o.code(), rng)
	return o
}

// paint puts the holding before what the plane shows already.
func (o *holding) paint(p *plane, ambient float64) {
	for y := range p.h {
		for x := range p.w {
			at := &p.pix[y*p.w+x]
			u, v, ok := o.project(float64(x)+0.5, float64(y)+0.5)
			if !ok || math.Abs(u) > 14 || v < -12 || v > 22 {
				continue // neither the thing nor its shadow
			}
			hand := o.handNear(u, v)
			if o.beside(u, v) > margin && !hand {
				*at = float32(o.sample(u, v, float64(*at), ambient, false))
			} else {
				*at = o.pixel(float64(x), float64(y), *at, ambient, hand)
			}
		}
	}
}

// margin is how far from an edge all samples of a pixel see the same, in
// centimetres: more than the width of a pixel.
const margin = 0.3

func (o *holding) handNear(u, v float64) bool {
	for _, hand := range [][]finger{o.fingers, o.arm} {
		for _, f := range hand {
			f.r += margin
			if _, hit := f.at(u, v); hit {
				return true
			}
		}
	}
	return false
}

// pixel is the mean of the pixel's samples, before a background. Without hand, no
// part of it is near.
func (o *holding) pixel(x, y float64, behind float32, ambient float64, hand bool) float32 {
	sum := 0.0
	for sy := range samples {
		for sx := range samples {
			u, v, _ := o.project(x+(float64(sx)+0.5)/samples, y+(float64(sy)+0.5)/samples)
			sum += o.sample(u, v, float64(behind), ambient, hand)
		}
	}
	return float32(sum / (samples * samples))
}

func (o *holding) sample(u, v, behind, ambient float64, hand bool) float64 {
	if hand {
		if r, hit := foremost(o.fingers, u, v); hit {
			return r * ambient
		}
	}
	reflect, emit, hit := o.surface.at(u, v)
	if hit {
		reflect, emit = o.harm.change(u, v, reflect, emit)
		return reflect*ambient*o.facing() + emit + o.lamp.at(u, v)*(0.3+0.7*ambient)
	}
	if hand {
		if r, hit := foremost(o.arm, u, v); hit {
			behind = r * ambient
		}
	}
	// The shadow falls to the lower right, softly.
	return behind * (0.55 + 0.45*smooth(o.beside(u-0.5, v-0.7)/1.8))
}

// foremost is the first of some fingers at a place.
func foremost(fingers []finger, u, v float64) (reflect float64, hit bool) {
	for _, f := range fingers {
		if r, hit := f.at(u, v); hit {
			return r, true
		}
	}
	return 0, false
}
