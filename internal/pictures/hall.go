package pictures

import (
	"math"
	"math/rand/v2"
)

// hall is the background: far behind the ticket, and so out of focus.
type hall struct {
	floor, ceiling float64 // reflectance at the bottom and at the top
	blobs          []blob  // people, bags, doors
	lamps          []blob
	grain          noise
}

// blob is a soft ellipse, in frame heights from the frame's top left.
type blob struct{ x, y, rx, ry, level float64 }

// at is the blob's cover of a point, 0 to 1.
func (b blob) at(x, y float64) float64 {
	dx, dy := (x-b.x)/b.rx, (y-b.y)/b.ry
	d := dx*dx + dy*dy
	return 1 / (1 + d*d*d)
}

func newHall(rng *rand.Rand) *hall {
	h := &hall{floor: between(rng, 0.05, 0.12), ceiling: between(rng, 0.12, 0.3), grain: noise{rng.Uint64()}}
	for range 9 { // people stand, so they are higher than wide
		w := between(rng, 0.05, 0.16)
		h.blobs = append(h.blobs, blob{
			x: rng.Float64() * 1.8, y: between(rng, 0.35, 0.95), rx: w, ry: w * between(rng, 1.5, 3.5),
			level: between(rng, 0.02, 0.35),
		})
	}
	first := rng.Float64() * 0.4
	for i := range 4 { // a row of lamps
		h.lamps = append(h.lamps, blob{
			x: first + 0.45*float64(i), y: between(rng, 0.05, 0.12), rx: 0.09, ry: 0.03, level: 1.1,
		})
	}
	return h
}

// coarse is the distance of the places where the hall is worked out, in pixels: it
// is out of focus by more than that.
const coarse = 4

func (h *hall) fill(p *plane, ambient float64) {
	grid := newPlane(p.w/coarse+2, p.h/coarse+2)
	scale := coarse / float64(p.h)
	for y := range grid.h {
		for x := range grid.w {
			grid.pix[y*grid.w+x] = float32(ambient * h.at(float64(x)*scale, float64(y)*scale))
		}
	}
	for y := range p.h {
		for x := range p.w {
			p.pix[y*p.w+x] = grid.at(float64(x)/coarse, float64(y)/coarse)
		}
	}
}

func (h *hall) at(x, y float64) float64 {
	v := h.ceiling + (h.floor-h.ceiling)*smooth(y)
	for _, b := range h.blobs {
		v += (b.level - v) * b.at(x, y)
	}
	for _, l := range h.lamps {
		v += l.level * l.at(x, y)
	}
	return v * (0.85 + 0.3*h.grain.at(x*9, y*9))
}

// noise is a smooth random function of the plane, 0 to 1, with features of about
// one unit.
type noise struct{ seed uint64 }

func (n noise) at(x, y float64) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	ix, iy := int64(fx), int64(fy)
	tx, ty := smooth(x-fx), smooth(y-fy)
	top := n.corner(ix, iy)*(1-tx) + n.corner(ix+1, iy)*tx
	bottom := n.corner(ix, iy+1)*(1-tx) + n.corner(ix+1, iy+1)*tx
	return top*(1-ty) + bottom*ty
}

// corner hashes a grid point as splitmix64 does.
func (n noise) corner(x, y int64) float64 {
	z := n.seed + uint64(x)*0x9e3779b97f4a7c15 + uint64(y)*0xc2b2ae3d27d4eb4f
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// smooth goes from 0 to 1 as t does, level at both ends.
func smooth(t float64) float64 {
	t = min(max(t, 0), 1)
	return t * t * (3 - 2*t)
}

func between(rng *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
