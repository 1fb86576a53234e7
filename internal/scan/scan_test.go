package scan

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
)

// ticketText looks like one of our tickets: 200 characters of QR's alphanumeric set.
var ticketText = "A1:" + strings.Repeat("6BF5W0$K3E8%4Z*C+O-P./:7Q", 8)[:197]

// canvas is a frame to paint symbols on.
func canvas(w, h int, ground byte) Frame {
	f := Frame{Pix: make([]byte, w*h), Stride: w, W: w, H: h}
	for i := range f.Pix {
		f.Pix[i] = ground
	}
	return f
}

// paint draws a text's symbol with its quiet zone at (x, y), scale pixels a module.
func paint(t testing.TB, f Frame, text string, x, y, scale int, dark, light byte, hints map[gozxing.EncodeHintType]any) {
	t.Helper()
	code, err := encoder.Encoder_encode(text, decoder.ErrorCorrectionLevel_M, hints)
	if err != nil {
		t.Fatal(err)
	}
	m, n := code.GetMatrix(), code.GetMatrix().GetWidth()
	for py := range (n + 8) * scale {
		for px := range (n + 8) * scale {
			mx, my, c := px/scale-4, py/scale-4, light
			if mx >= 0 && my >= 0 && mx < n && my < n && m.Get(mx, my) == 1 {
				c = dark
			}
			f.Pix[(y+py)*f.Stride+x+px] = c
		}
	}
}

func mustRead(t testing.TB, f Frame) []string {
	t.Helper()
	texts, err := New(Options{}).Read(f)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	return texts
}

func TestReadsOneCode(t *testing.T) {
	f := canvas(640, 480, 90)
	paint(t, f, ticketText, 150, 60, 5, 20, 230, nil)
	if got := mustRead(t, f); !slices.Equal(got, []string{ticketText}) {
		t.Errorf("read %q", got)
	}
}

func TestReadsLightOnDark(t *testing.T) {
	f := canvas(640, 480, 60)
	paint(t, f, ticketText, 150, 60, 5, 240, 15, nil)
	if got := mustRead(t, f); !slices.Equal(got, []string{ticketText}) {
		t.Errorf("read %q", got)
	}
	got, err := New(Options{LightOnly: true}).Read(f)
	if err != nil || len(got) != 0 {
		t.Errorf("with LightOnly read %q, %v", got, err)
	}
}

func TestReadsAllCodesOfAFrame(t *testing.T) {
	f := canvas(1280, 720, 120)
	want := []string{ticketText, "A1:FIRST", "A1:FOURTH", "A1:SECOND"} // sorted
	paint(t, f, want[1], 40, 40, 6, 10, 240, nil)
	paint(t, f, want[3], 400, 60, 6, 30, 220, nil)
	paint(t, f, want[2], 60, 400, 8, 10, 250, nil)
	paint(t, f, want[0], 700, 250, 6, 20, 200, nil)
	if got := mustRead(t, f); !slices.Equal(got, want) {
		t.Errorf("read %q", got)
	}
}

// A symbol without right angles, and a finder pattern beside it.
func TestReadsASlantedCode(t *testing.T) {
	straight := canvas(640, 480, 230)
	paint(t, straight, "A1:SLANTED", 100, 150, 6, 20, 230, nil)
	f := canvas(640, 480, 230)
	for y := range f.H {
		for x := range f.W {
			if from := x + y/3 - 80; from >= 0 && from < f.W {
				f.Pix[y*f.Stride+x] = straight.Pix[y*f.Stride+from]
			}
		}
	}
	finderPattern(f, 500, 40, 10)
	if got := mustRead(t, f); !slices.Equal(got, []string{"A1:SLANTED"}) {
		t.Errorf("read %q", got)
	}
}

func TestSameTextTwiceInAFrameIsGivenOnce(t *testing.T) {
	f := canvas(1280, 720, 120)
	paint(t, f, "A1:TWIN", 100, 100, 6, 10, 240, nil)
	paint(t, f, "A1:TWIN", 700, 300, 6, 10, 240, nil)
	if got := mustRead(t, f); !slices.Equal(got, []string{"A1:TWIN"}) {
		t.Errorf("read %q", got)
	}
}

func TestNothingToReadIsNoError(t *testing.T) {
	noise := canvas(640, 480, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(r.Uint32())
	}
	for name, f := range map[string]Frame{
		"dark": canvas(640, 480, 0), "white": canvas(640, 480, 255), "noise": noise,
		"two pixels": canvas(2, 2, 9), "a strip": canvas(2000, 3, 7), "small": canvas(30, 30, 7),
	} {
		if got, err := New(Options{}).Read(f); err != nil || len(got) != 0 {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
}

func TestBadFramesAreErrors(t *testing.T) {
	pix := make([]byte, 640*480)
	r := New(Options{})
	for name, f := range map[string]Frame{
		"zero":             {},
		"no pixels":        {Stride: 640, W: 640, H: 480},
		"negative":         {Pix: pix, Stride: -640, W: -640, H: -480},
		"no pixel wide":    {Pix: pix, Stride: 1, W: 0, H: 480},
		"no pixel high":    {Pix: pix, Stride: 640, W: 640, H: 0},
		"step":             {Pix: pix, Stride: 640, W: 640, H: 480, Step: 3},
		"step negative":    {Pix: pix, Stride: 640, W: 640, H: 480, Step: -1},
		"cut off yuyv":     {Pix: pix, Stride: 640, W: 320, H: 481, Step: 2},
		"stride of yuyv":   {Pix: pix, Stride: 639, W: 320, H: 480, Step: 2},
		"stride too small": {Pix: pix, Stride: 639, W: 640, H: 480},
		"stride zero":      {Pix: pix, W: 640, H: 480},
		"cut off":          {Pix: pix[:len(pix)-1], Stride: 640, W: 640, H: 480},
		"stride too large": {Pix: pix, Stride: 641, W: 640, H: 480},
		"stride overflows": {Pix: pix, Stride: math.MaxInt, W: 640, H: 480},
		"size overflows":   {Pix: pix, Stride: math.MaxInt, W: math.MaxInt, H: math.MaxInt},
	} {
		if got, err := r.Read(f); err == nil {
			t.Errorf("%s: read %q without an error", name, got)
		}
	}
	good := canvas(640, 480, 90)
	paint(t, good, ticketText, 150, 60, 5, 20, 230, nil)
	if got, err := r.Read(good); err != nil || len(got) != 1 {
		t.Errorf("the good frame after them: %q, %v", got, err)
	}
}

func TestPaddedRows(t *testing.T) {
	f := canvas(640, 480, 90)
	paint(t, f, ticketText, 150, 60, 5, 20, 230, nil)
	wide := Frame{Pix: make([]byte, 1000*480-360), Stride: 1000, W: 640, H: 480}
	for y := range 480 {
		copy(wide.Pix[y*1000:], f.Pix[y*640:][:640])
	}
	// A code in the padding is not in the frame.
	pad := Frame{Pix: wide.Pix[640:], Stride: 1000, W: 360, H: 480}
	paint(t, pad, "A1:PADDING", 20, 20, 5, 10, 240, nil)
	if got := mustRead(t, wide); !slices.Equal(got, []string{ticketText}) {
		t.Errorf("read %q", got)
	}
}

// YUYV is read where it lies: its grey bytes, whatever the colours beside them are.
func TestReadsYUYVInPlace(t *testing.T) {
	grey := canvas(640, 480, 90)
	paint(t, grey, ticketText, 150, 60, 5, 20, 230, nil)
	const stride = 2*640 + 14
	f := Frame{Pix: make([]byte, stride*479+2*640), Stride: stride, W: 640, H: 480, Step: 2}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range f.Pix {
		f.Pix[i] = byte(rnd.Uint32())
	}
	for y := range 480 {
		for x := range 640 {
			f.Pix[y*stride+2*x] = grey.Pix[y*640+x]
		}
	}
	if got := mustRead(t, f); !slices.Equal(got, []string{ticketText}) {
		t.Errorf("read %q", got)
	}
}

// A symbol may fill the picture to its edges, or have modules of a pixel.
func TestSymbolWithoutAMargin(t *testing.T) {
	for _, scale := range []int{1, 2, 4} {
		m := modules(t, ticketText)
		n := m.GetWidth()
		f := canvas(n*scale, n*scale, 230)
		for y := range f.H {
			for x := range f.W {
				if m.Get(x/scale, y/scale) {
					f.Pix[y*f.Stride+x] = 20
				}
			}
		}
		r, got := New(Options{}), []string(nil)
		for range 2 * len(dear) {
			texts, err := r.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			if len(texts) > 0 {
				got = texts
				break
			}
		}
		if !slices.Equal(got, []string{ticketText}) {
			t.Errorf("%d pixels a module: read %q", scale, got)
		}
	}
}

func finderPattern(f Frame, x, y, scale int) {
	for py := range 7 * scale {
		for px := range 7 * scale {
			ring := max(abs(px/scale-3), abs(py/scale-3))
			if ring != 2 {
				f.Pix[(y+py)*f.Stride+x+px] = 0
			}
		}
	}
}

func BenchmarkEmptyFrame(b *testing.B) {
	f := canvas(1280, 720, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range f.Pix {
		f.Pix[i] = byte(100 + i%1280/16 + int(r.Uint32()%8))
	}
	benchmark(b, f, 0)
}

func BenchmarkEasyCode(b *testing.B) {
	f := canvas(1280, 720, 90)
	paint(b, f, ticketText, 300, 30, 11, 20, 230, nil)
	benchmark(b, f, 1)
}

func benchmark(b *testing.B, f Frame, texts int) {
	r := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if got, err := r.Read(f); err != nil || len(got) != texts {
			b.Fatalf("read %q, %v", got, err)
		}
	}
}
