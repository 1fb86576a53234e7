package pictures

import (
	"bytes"
	"image"
	"math"
	"math/rand/v2"
	"testing"
)

// checks is a symbol of n x n modules in squares of 7, too coarse to blur away.
func checks(n int) [][]bool {
	s := make([][]bool, n)
	for y := range s {
		s[y] = make([]bool, n)
		for x := range s[y] {
			s[y][x] = (x/7+y/7)%2 == 0
		}
	}
	return s
}

func spec() Spec {
	return Spec{
		Seed: 7, Width: 160, Height: 120, Blur: 0.5, Noise: 2,
		Held: []Held{{Symbol: checks(49), Title: "A", Module: 1.2, Tilt: 10, Turn: 5}},
	}
}

func TestASpecIsAPicture(t *testing.T) {
	a, b := Draw(spec()), Draw(spec())
	if !bytes.Equal(a.Pix, b.Pix) {
		t.Error("the same spec gave two pictures")
	}
	other := spec()
	other.Seed++
	if bytes.Equal(a.Pix, Draw(other).Pix) {
		t.Error("another seed gave the same picture")
	}
	if size := Draw(Spec{}).Rect.Size(); size != image.Pt(640, 480) {
		t.Errorf("the usual picture is %v", size)
	}
}

// A module in the middle is as large in the picture as the spec says, and turns
// clockwise.
func TestModulesHaveTheirSizeAndTurn(t *testing.T) {
	for _, on := range []Medium{Phone, DarkPhone, Paper} {
		for _, turn := range []float64{0, 90, 30} {
			h := Held{Symbol: checks(49), On: on, Module: 4, Turn: turn, X: 0.1, Y: -0.05}
			s := Spec{Width: 640, Height: 480}
			o := newHolding(h, s, rand.New(rand.NewPCG(1, 2)))
			sin, cos := math.Sincos(turn * math.Pi / 180)
			edge := 4.0 * 49 / 2 // from the symbol's middle to its right edge, pixels
			u, v, ok := o.project(320+64+edge*cos, 240-24+edge*sin)
			if !ok || math.Abs(u-o.code()/2) > 1e-9 || math.Abs(v) > 1e-9 {
				t.Errorf("medium %d, turn %v: the right edge is at (%.3f, %.3f) of %.3f", on, turn, u, v, o.code()/2)
			}
		}
	}
}

// A tilt makes one side of the symbol larger than the other, and keeps its middle.
func TestTiltIsPerspective(t *testing.T) {
	h := Held{Symbol: checks(49), Tilt: 30}
	o := newHolding(h, Spec{Width: 640, Height: 480}, rand.New(rand.NewPCG(1, 2)))
	if u, v, _ := o.project(320, 240); math.Abs(u)+math.Abs(v) > 1e-9 {
		t.Errorf("the middle is at (%.3f, %.3f)", u, v)
	}
	distances := make([]float64, 0, 8)
	for i := range 8 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 4)
		u, v, _ := o.project(320+100*cos, 240+100*sin)
		distances = append(distances, math.Hypot(u, v))
	}
	widest := 0.0
	for i := range 4 {
		widest = max(widest, math.Abs(distances[i]/distances[i+4]-1))
	}
	if widest < 0.05 {
		t.Errorf("opposite sides differ by %.3f only", widest)
	}
}

func mean(m *image.Gray, r image.Rectangle) (mean, deviation float64) {
	var sum, squares float64
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			v := float64(m.GrayAt(x, y).Y)
			sum, squares = sum+v, squares+v*v
		}
	}
	n := float64(r.Dx() * r.Dy())
	mean = sum / n
	return mean, math.Sqrt(max(squares/n-mean*mean, 0))
}

// Each number of a spec does what it says, in the middle of a checked symbol or in
// the hall beside.
func TestEffects(t *testing.T) {
	draw := func(change func(*Spec)) *image.Gray {
		s := Spec{Seed: 3, Width: 320, Height: 240, Held: []Held{{Symbol: checks(49), Module: 2}}}
		change(&s)
		return Draw(s)
	}
	code, hall := image.Rect(120, 80, 200, 160), image.Rect(2, 100, 40, 200)
	plain := draw(func(*Spec) {})
	_, contrast := mean(plain, code)
	hallLight, hallGrain := mean(plain, hall)

	if _, c := mean(draw(func(s *Spec) { s.Blur = 8 }), code); c > contrast*0.8 {
		t.Errorf("blur leaves %.0f of a contrast of %.0f", c, contrast)
	}
	if _, c := mean(draw(func(s *Spec) { s.Motion = 30 }), code); c > contrast*0.8 {
		t.Errorf("motion leaves %.0f of a contrast of %.0f", c, contrast)
	}
	if _, g := mean(draw(func(s *Spec) { s.Noise = 20 }), hall); g < hallGrain+5 {
		t.Errorf("noise makes the hall's %.1f into %.1f", hallGrain, g)
	}
	if l, _ := mean(draw(func(s *Spec) { s.Dim = 0.9 }), hall); l > hallLight*0.8 {
		t.Errorf("dim light leaves %.0f of %.0f", l, hallLight)
	}
	if _, c := mean(draw(func(s *Spec) { s.Dim = 0.9 }), code); c < contrast*0.8 {
		t.Errorf("a phone does not shine in dim light: contrast %.0f of %.0f", c, contrast)
	}
	glary := draw(func(s *Spec) { s.Glare = 1 })
	brighter := 0
	for i := range glary.Pix {
		if int(glary.Pix[i]) > int(plain.Pix[i])+40 {
			brighter++
		}
	}
	if share := float64(brighter) / float64(len(glary.Pix)); share < 0.005 || share > 0.3 {
		t.Errorf("glare brightens %.3f of the picture", share)
	}
	dark := draw(func(s *Spec) { s.Held[0].On = DarkPhone })
	at := func(m *image.Gray) int { return int(m.GrayAt(160-49, 120-49).Y) } // a dark module, and the ground beside
	if at(plain) > 128 || at(dark) < 128 {
		t.Errorf("a dark module is %d, in dark mode %d", at(plain), at(dark))
	}
}

// What comes between symbol and camera changes the symbol and leaves the rest.
func TestHarm(t *testing.T) {
	draw := func(change func(*Held)) *image.Gray {
		s := Spec{Seed: 3, Width: 320, Height: 240, Held: []Held{{Symbol: checks(49), Module: 2}}}
		change(&s.Held[0])
		return Draw(s)
	}
	plain := draw(func(*Held) {})
	code, hall := image.Rect(120, 80, 200, 160), image.Rect(2, 2, 30, 30)
	changed := func(m *image.Gray, r image.Rectangle) (share float64) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				if d := int(m.GrayAt(x, y).Y) - int(plain.GrayAt(x, y).Y); d*d > 400 {
					share += 1 / float64(r.Dx()*r.Dy())
				}
			}
		}
		return share
	}
	for name, c := range map[string]struct {
		change      func(*Held)
		least, most float64
	}{
		"moire":   {func(h *Held) { h.Moire = 0.6 }, 0.15, 0.6},
		"cracks":  {func(h *Held) { h.Cracks = 9 }, 0.01, 0.4},
		"covered": {func(h *Held) { h.Covered = 0.5 }, 0.05, 0.5},
	} {
		m := draw(c.change)
		if share := changed(m, code); share < c.least || share > c.most {
			t.Errorf("%s changes %.3f of the symbol", name, share)
		}
		if share := changed(m, hall); share > 0 {
			t.Errorf("%s changes %.3f of the hall", name, share)
		}
	}
}

func TestThingsWithoutASymbolAndOddOnes(t *testing.T) {
	for _, on := range []Medium{Phone, DarkPhone, Paper} {
		for _, symbol := range [][][]bool{nil, {}, {{true}}, {{true, false}, {}}} {
			m := Draw(Spec{Width: 80, Height: 60, Held: []Held{{Symbol: symbol, On: on, Title: "Ä\n\x00"}}})
			if m.Rect.Size() != image.Pt(80, 60) {
				t.Errorf("medium %d: %v", on, m.Rect)
			}
		}
	}
}
