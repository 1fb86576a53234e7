package scan

import (
	"github.com/makiuchi-d/gozxing"
)

// decodeAll samples a symbol once and judges its modules in several ways.
func (l *look) decodeAll(w *warp) (string, bool) {
	if !l.sample(w) {
		return "", false
	}
	n := w.modules
	if text, ok := l.decode(l.grid.dark()); ok {
		return text, true
	}
	for _, v := range [...]struct {
		radius  int
		sharpen float32
	}{{4, 0.12}, {6, 0.35}} {
		if l.over() {
			return "", false
		}
		l.spend(20 * n * n)
		if text, ok := l.decode(l.grid.local(v.radius, v.sharpen)); ok {
			return text, true
		}
	}
	return "", false
}

// decode gives the text of a matrix of modules. A panic on the way is that
// symbol's alone: the others in the frame are still read.
func (l *look) decode(m *gozxing.BitMatrix) (text string, ok bool) {
	n := m.GetWidth()
	l.spend(30 * n * n)
	err := contain(func() error {
		res, err := l.decoder.Decode(m, hints())
		if err != nil {
			return err
		}
		text, ok = plain(res)
		return nil
	})
	return text, ok && err == nil
}

// hints are gozxing's settings. It otherwise guesses how bytes are to be read;
// with ISO 8859-1 each byte becomes the rune of its number, which plain undoes.
func hints() map[gozxing.DecodeHintType]any {
	return map[gozxing.DecodeHintType]any{
		gozxing.DecodeHintType_CHARACTER_SET: "ISO8859_1",
	}
}
