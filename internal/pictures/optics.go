package pictures

import (
	"image"
	"math"
	"math/rand/v2"
)

// blur is a Gaussian of the standard deviation sigma, in pixels.
func (p *plane) blur(sigma float64) {
	if sigma <= 0 {
		return
	}
	n := int(math.Ceil(3 * sigma))
	kernel := make([]float32, 2*n+1)
	sum := float32(0)
	for i := range kernel {
		d := float64(i-n) / sigma
		kernel[i] = float32(math.Exp(-d * d / 2))
		sum += kernel[i]
	}
	for i := range kernel {
		kernel[i] /= sum
	}
	p.convolve(kernel, 1, 0)
	p.convolve(kernel, 0, 1)
}

// convolve applies a kernel along a direction; beyond the edges the picture goes
// on as it ends.
func (p *plane) convolve(kernel []float32, dx, dy int) {
	n := len(kernel) / 2
	out := make([]float32, len(p.pix))
	for y := range p.h {
		for x := range p.w {
			sum := float32(0)
			for i, k := range kernel {
				sum += k * p.clamped(x+(i-n)*dx, y+(i-n)*dy)
			}
			out[y*p.w+x] = sum
		}
	}
	p.pix = out
}

func (p *plane) clamped(x, y int) float32 {
	return p.pix[min(max(y, 0), p.h-1)*p.w+min(max(x, 0), p.w-1)]
}

// smear is a straight movement of the camera while the shutter is open, length
// pixels long.
func (p *plane) smear(length, angle float64) {
	if length <= 0 {
		return
	}
	steps := int(math.Ceil(2*length)) + 1
	dy, dx := math.Sincos(angle)
	out := make([]float32, len(p.pix))
	for y := range p.h {
		for x := range p.w {
			sum := float32(0)
			for i := range steps {
				t := length * (float64(i)/float64(steps-1) - 0.5)
				sum += p.at(float64(x)+t*dx, float64(y)+t*dy)
			}
			out[y*p.w+x] = sum / float32(steps)
		}
	}
	p.pix = out
}

// at interpolates between four pixels.
func (p *plane) at(x, y float64) float32 {
	fx, fy := math.Floor(x), math.Floor(y)
	tx, ty := float32(x-fx), float32(y-fy)
	ix, iy := int(fx), int(fy)
	top := p.clamped(ix, iy)*(1-tx) + p.clamped(ix+1, iy)*tx
	bottom := p.clamped(ix, iy+1)*(1-tx) + p.clamped(ix+1, iy+1)*tx
	return top*(1-ty) + bottom*ty
}

// What a camera's automatic exposure aims at, and how far it goes. The darker the
// scene, the more of its own noise it shows.
const (
	aim        = 0.3 // mean of linear light
	leastGain  = 0.5
	mostGain   = 4.0
	vignetting = 0.25 // of the light is lost in the corners
)

// expose is the sensor: exposure, vignetting, the usual gamma, noise.
func (p *plane) expose(noise float64, rng *rand.Rand) *image.Gray {
	mean := 0.0
	for _, v := range p.pix {
		mean += float64(v)
	}
	mean /= float64(len(p.pix))
	gain := min(max(aim/(mean+1e-6), leastGain), mostGain)
	noise *= math.Sqrt(max(gain, 1))

	out := image.NewGray(image.Rect(0, 0, p.w, p.h))
	half := math.Hypot(float64(p.w), float64(p.h)) / 2
	for y := range p.h {
		for x := range p.w {
			r := math.Hypot(float64(x)-float64(p.w)/2, float64(y)-float64(p.h)/2) / half
			light := float64(p.pix[y*p.w+x]) * gain * (1 - vignetting*r*r)
			level := 255 * math.Pow(min(max(light, 0), 1), 1/2.2)
			level += noise * rng.NormFloat64()
			out.Pix[y*out.Stride+x] = uint8(min(max(math.Round(level), 0), 255))
		}
	}
	return out
}
