package pictures

import (
	"math"
	"math/rand/v2"
)

// vec is a point or direction in space, in centimetres: right, down, away from the
// camera.
type vec struct{ x, y, z float64 }

func (a vec) dot(b vec) float64 { return a.x*b.x + a.y*b.y + a.z*b.z }

func (a vec) cross(b vec) vec {
	return vec{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

// turned is the vector rotated about a unit axis (Rodrigues' formula).
func (a vec) turned(axis vec, angle float64) vec {
	s, c := math.Sincos(angle)
	cr, d := axis.cross(a), axis.dot(a)*(1-c)
	return vec{a.x*c + cr.x*s + axis.x*d, a.y*c + cr.y*s + axis.y*d, a.z*c + cr.z*s + axis.z*d}
}

// pose is where a surface is: a pinhole camera at the origin looks along z.
type pose struct {
	cx, cy, focal float64 // pixels
	origin        vec     // the symbol's middle
	right, down   vec     // unit vectors in the surface
	normal        vec
}

// usualModules is the side of a version 8 symbol, the largest that tickets have: a
// thing without a symbol is held as far away as one with it.
const usualModules = 49

// focalLength of the camera, in frame widths: a webcam's 49 degrees.
const focalLength = 1.1

func newPose(h Held, s Spec, code float64, rng *rand.Rand) pose {
	p := pose{cx: float64(s.Width) / 2, cy: float64(s.Height) / 2, focal: focalLength * float64(s.Width)}
	module := h.Module
	if module == 0 {
		module = defaultModule
	}
	modules := len(h.Symbol)
	if modules == 0 {
		modules = usualModules
	}
	z := p.focal * code / (module * float64(modules))
	p.origin = vec{h.X * float64(s.Width) * z / p.focal, h.Y * float64(s.Height) * z / p.focal, z}

	turn := h.Turn * math.Pi / 180
	p.right = vec{math.Cos(turn), math.Sin(turn), 0}
	p.down = vec{-math.Sin(turn), math.Cos(turn), 0}
	way := rng.Float64() * 2 * math.Pi
	axis := vec{math.Cos(way), math.Sin(way), 0}
	tilt := h.Tilt * math.Pi / 180
	p.right, p.down = p.right.turned(axis, tilt), p.down.turned(axis, tilt)
	p.normal = p.right.cross(p.down)
	return p
}

// project gives the place on the surface that a point of the picture shows, and
// false where the line of sight misses the surface's plane.
func (p *pose) project(x, y float64) (u, v float64, ok bool) {
	ray := vec{(x - p.cx) / p.focal, (y - p.cy) / p.focal, 1}
	along := p.normal.dot(ray)
	if along < 1e-6 {
		return 0, 0, false
	}
	t := p.normal.dot(p.origin) / along
	d := vec{ray.x*t - p.origin.x, ray.y*t - p.origin.y, ray.z*t - p.origin.z}
	return d.dot(p.right), d.dot(p.down), true
}

// facing is how much of the hall's light falls on the surface, which comes from
// above and behind the camera.
func (p *pose) facing() float64 {
	return min(max(0.75+0.35*p.normal.z-0.5*p.normal.y, 0.3), 1.1)
}
