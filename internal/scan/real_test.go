package scan_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"admitone/internal/pictures"
	"admitone/internal/qr"
	"admitone/internal/scan"
)

// a1 looks like the text of one of our tickets: 200 characters of QR's alphanumeric set.
func a1(seed uint64) string {
	const set = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := []byte("A1:")
	for len(b) < 200 {
		b = append(b, set[rnd.IntN(len(set))])
	}
	return string(b)
}

// harms are what can be wrong with what a gate sees, each from little to more than
// anybody reads. What it does to a picture is a function of the step.
var harms = []struct {
	name  string
	unit  string
	steps []float64
	do    func(s *pictures.Spec, h *pictures.Held, x float64)

	read int // how many of the three steps in the middle must be read
}{
	{"blur", "pixels", []float64{0.5, 1.5, 2, 2.5, 3}, func(s *pictures.Spec, _ *pictures.Held, x float64) { s.Blur = x }, 3},
	{"motion", "pixels", []float64{2, 5, 7, 9, 12}, func(s *pictures.Spec, _ *pictures.Held, x float64) { s.Motion = x }, 2},
	{"glare", "of white", []float64{0.2, 0.5, 1, 2, 4}, func(s *pictures.Spec, _ *pictures.Held, x float64) { s.Glare = x }, 2},
	{"low light", "of the light lost", []float64{0.9, 0.97, 0.985, 0.993, 0.997}, func(s *pictures.Spec, h *pictures.Held, x float64) {
		s.Dim, s.Noise, h.On = x, 5, pictures.Paper
	}, 3},
	{"noise", "grey levels", []float64{5, 15, 25, 35, 50}, func(s *pictures.Spec, _ *pictures.Held, x float64) { s.Noise = x }, 3},
	{"perspective", "degrees", []float64{15, 30, 40, 50, 57}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Tilt = x }, 3},
	{"moire", "of the light", []float64{0.2, 0.4, 0.6, 0.8, 0.95}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Moire = x }, 2},
	{"cracked glass", "cracks", []float64{3, 6, 9, 14, 20}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Cracks = int(x) }, 3},
	{"dark mode", "pixels of blur", []float64{0.5, 1, 1.5, 2, 2.5}, func(s *pictures.Spec, h *pictures.Held, x float64) {
		s.Blur, h.On = x, pictures.DarkPhone
	}, 3},
	{"covered", "of the side", []float64{0.05, 0.15, 0.25, 0.35, 0.5}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Covered = x }, 3},
	{"creased paper", "degrees", []float64{0, 15, 30, 40, 50}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.On, h.Tilt = pictures.Paper, x }, 3},
	{"tiny", "pixels a module", []float64{3, 2, 1.6, 1.3, 1.1}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Module = x }, 2},
	{"huge", "pixels a module", []float64{6, 7, 8, 9, 9.5}, func(_ *pictures.Spec, h *pictures.Held, x float64) { h.Module = x }, 3},
}

// perStep is how many pictures of each step there are, where the curves are drawn;
// the test looks at a few of them.
const perStep = 4

// frames is how many times a picture is shown: a second before the camera.
const frames = 15

// drawn is picture i of a step.
func drawn(do func(*pictures.Spec, *pictures.Held, float64), x float64, i int) (scan.Frame, string) {
	text := a1(uint64(i))
	symbol, _, err := qr.Encode(text)
	if err != nil {
		panic(err)
	}
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	h := pictures.Held{Symbol: symbol, Title: "ADMIT ONE", Tilt: 8, Turn: rnd.Float64()*40 - 20, X: rnd.Float64()*0.06 - 0.03}
	s := pictures.Spec{Seed: uint64(i + 1), Blur: 0.6, Noise: 3}
	do(&s, &h, x)
	s.Held = []pictures.Held{h}
	m := pictures.Draw(s)
	return scan.Frame{Pix: m.Pix, Stride: m.Stride, W: m.Rect.Dx(), H: m.Rect.Dy()}, text
}

// Of generated pictures of tickets as many are read as were when this was written,
// and none gives another text. With CURVES in the environment the read rates are
// printed, beside gozxing's as it comes.
func TestReadRates(t *testing.T) {
	_, curves := os.LookupEnv("CURVES")
	for _, k := range harms {
		sum, line, theirs := 0, "", ""
		steps, pictures := k.steps[1:4], 1
		if curves {
			steps, pictures = k.steps, perStep
		}
		for _, x := range steps {
			one, all, old := 0, 0, 0
			for i := range pictures {
				f, text := drawn(k.do, x, i)
				r := scan.New(scan.Options{})
				for frame := range frames {
					got, err := r.Read(f)
					if err != nil || len(got) > 1 || len(got) == 1 && got[0] != text {
						t.Fatalf("%s %v, picture %d: read %q, %v", k.name, x, i, got, err)
					}
					if len(got) == 1 {
						all++
						if frame == 0 {
							one++
						}
						break
					}
				}
				if curves && zxing(f) == text {
					old++
				}
			}
			sum += all
			line += fmt.Sprintf(" %v: %d, %d |", x, one, all)
			theirs += fmt.Sprintf(" %d", old)
		}
		if !curves && sum < k.read {
			t.Errorf("%s: %d of %d read, want %d", k.name, sum, len(steps), k.read)
		}
		if curves {
			fmt.Printf("%-14s (%s) of %d:%s sum %d; gozxing%s\n", k.name, k.unit, perStep, line, sum, theirs)
		}
	}
}

// zxing reads a frame with gozxing as it comes, and gives "" where it does not.
func zxing(f scan.Frame) string {
	src := &bare{gozxing.LuminanceSourceBase{Width: f.W, Height: f.H}, f.Pix}
	bitmap, err := gozxing.NewBinaryBitmap(gozxing.NewHybridBinarizer(src))
	if err != nil {
		return ""
	}
	res, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_TRY_HARDER: true})
	if err != nil {
		return ""
	}
	return res.GetText()
}

// bare shows a frame to gozxing without copying it.
type bare struct {
	gozxing.LuminanceSourceBase
	pix []byte
}

func (b *bare) GetRow(y int, _ []byte) ([]byte, error) { return b.pix[y*b.Width:][:b.Width], nil }
func (b *bare) GetMatrix() []byte                      { return b.pix }
func (b *bare) Invert() gozxing.LuminanceSource        { return gozxing.LuminanceSourceInvert(b) }
func (b *bare) String() string                         { return gozxing.LuminanceSourceString(b) }

// A ticket is read whichever way it is turned, in the first frame: on a phone each
// time, and on paper, in dark mode or mirrored in turn.
func TestEveryRotation(t *testing.T) {
	text := a1(1)
	symbol, _, err := qr.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	mirrored := make([][]bool, len(symbol))
	for y := range symbol {
		mirrored[y] = slices.Clone(symbol[y])
		slices.Reverse(mirrored[y])
	}
	others := []pictures.Held{{Symbol: symbol, On: pictures.Paper}, {Symbol: symbol, On: pictures.DarkPhone}, {Symbol: mirrored}}
	for turn := 0; turn < 360; turn += 15 {
		for i, h := range []pictures.Held{{Symbol: symbol}, others[turn/15%3]} {
			h.Turn, h.Module, h.Tilt = float64(turn), 4, 12
			s := pictures.Spec{Seed: uint64(turn), Width: 360, Height: 320, Blur: 0.6, Noise: 2.5, Held: []pictures.Held{h}}
			m := pictures.Draw(s)
			got, err := scan.New(scan.Options{}).Read(scan.Frame{Pix: m.Pix, Stride: m.Stride, W: m.Rect.Dx(), H: m.Rect.Dy()})
			if err != nil || len(got) != 1 || got[0] != text {
				t.Errorf("turned by %d, picture %d: read %q, %v", turn, i, got, err)
			}
		}
	}
}
