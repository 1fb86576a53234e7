package scan

import (
	"math/rand/v2"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
)

// Any bytes as any frame: an error if and only if the frame is none, and never
// more work than the budget.
func FuzzRead(f *testing.F) {
	code := canvas(116, 116, 200)
	paint(f, code, "A1:FUZZ", 0, 0, 4, 10, 240, nil)
	f.Add(code.Pix, uint16(116), uint8(0), false)
	f.Add(code.Pix, uint16(58), uint8(0), true)
	f.Add([]byte{1, 2, 3}, uint16(1), uint8(0), false)
	f.Add(make([]byte, 64*64), uint16(60), uint8(4), false)
	r := New(Options{})
	f.Fuzz(func(t *testing.T, pix []byte, w uint16, pad uint8, yuyv bool) {
		if w%2 == 0 && len(pix) > 0 { // half of them are large enough to show something
			w = minSymbol + w%40
			for len(pix) < minSymbol*(int(w)*2+255) {
				pix = append(pix, pix...)
			}
			pix = pix[:minSymbol*(int(w)*2+255)]
		}
		fr := Frame{Pix: pix, W: int(w), Step: 1}
		if yuyv {
			fr.Step = 2
		}
		fr.Stride = fr.W*fr.Step + int(pad)
		fr.H = (len(pix) + int(pad)) / max(fr.Stride, 1)
		_, err := r.Read(fr)
		if bad := fr.check() != nil; bad != (err != nil) {
			t.Errorf("bad frame: %v, read: %v", bad, err)
		}
		if r.Work() > r.look.most*3/2 {
			t.Errorf("%d units of work, the budget is %d", r.Work(), r.look.most)
		}
	})
}

// Any bytes as the modules of any symbol: the decoder does not break, and what
// comes is a text.
func FuzzModules(f *testing.F) {
	for _, text := range []string{"A1:FUZZ", ticketText} {
		m := modules(f, text)
		data := []byte{byte(m.GetWidth()-17) / 4}
		for y := range m.GetHeight() {
			for x := range m.GetWidth() {
				if i := y*m.GetWidth() + x; i%8 == 0 {
					data = append(data, 0)
				}
				if m.Get(x, y) {
					data[len(data)-1] |= 1 << ((y*m.GetWidth() + x) % 8)
				}
			}
		}
		f.Add(data)
	}
	l := newLook()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		l.grid.n = 17 + 4*(1+int(data[0])%40)
		m := l.grid.blank()
		for i := range min(8*len(data[1:]), l.grid.n*l.grid.n) {
			if data[1+i/8]>>(i%8)&1 != 0 {
				m.Set(i%l.grid.n, i/l.grid.n)
			}
		}
		if err := contain(func() error { _, err := l.decoder.Decode(m, hints()); return plainError(err) }); err != nil {
			t.Error(err)
		}
	})
}

// plainError is nil for what a decoder may say of a matrix.
func plainError(err error) error {
	if _, ok := err.(gozxing.ReaderException); ok {
		return nil
	}
	return err
}

// modules is the symbol of a text.
func modules(t testing.TB, text string) *gozxing.BitMatrix {
	t.Helper()
	code, err := encoder.Encoder_encode(text, decoder.ErrorCorrectionLevel_M, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := code.GetMatrix()
	m := newLook().sized(from.GetWidth())
	for y := range from.GetHeight() {
		for x := range from.GetWidth() {
			if from.Get(x, y) == 1 {
				m.Set(x, y)
			}
		}
	}
	return m
}

// A changed module never yields another text: each alone, and any number at once.
func TestChangedModulesGiveNoOtherText(t *testing.T) {
	l := newLook()
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{"A1:SMALL", ticketText} {
		clean := modules(t, text)
		n := clean.GetWidth()
		copied := func() *gozxing.BitMatrix {
			m := l.sized(n)
			for i := range n * n {
				if clean.Get(i%n, i/n) {
					m.Set(i%n, i/n)
				}
			}
			return m
		}
		for i := range n * n {
			m := copied()
			m.Flip(i%n, i/n)
			if got, ok := l.decode(m); !ok || got != text {
				t.Errorf("module %d of %d changed: %q, %v", i, n*n, got, ok)
			}
		}
		read := 0
		for i := range 1200 {
			m := copied()
			for range 1 + i*n*n/1200/12 {
				m.Flip(rnd.IntN(n), rnd.IntN(n))
			}
			switch got, ok := l.decode(m); {
			case ok && got != text:
				t.Fatalf("round %d gave %q", i, got)
			case ok:
				read++
			}
		}
		if read < 120 || read > 1080 {
			t.Errorf("%d of 1200 damaged symbols read: no test", read)
		}
	}
}

func (l *look) sized(n int) *gozxing.BitMatrix {
	l.grid.n = n
	return l.grid.blank()
}
