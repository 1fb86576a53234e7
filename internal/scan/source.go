package scan

import (
	"fmt"

	"github.com/makiuchi-d/gozxing"
)

// grey shows a frame to gozxing without copying it.
type grey struct {
	gozxing.LuminanceSourceBase // neither cropped nor rotated
	pix                         []byte
	stride                      int
	pack                        *[]byte // where rows are put together if they are padded
}

func newGrey(f Frame, pack *[]byte) *grey {
	return &grey{
		LuminanceSourceBase: gozxing.LuminanceSourceBase{Width: f.W, Height: f.H},
		pix:                 f.Pix, stride: f.Stride, pack: pack,
	}
}

// GetRow returns row y of the frame itself. The buffer offered is not used, and
// the row must not be written to.
func (g *grey) GetRow(y int, _ []byte) ([]byte, error) {
	if y < 0 || y >= g.Height {
		return nil, fmt.Errorf("row %d of %d", y, g.Height)
	}
	at := y * g.stride
	return g.pix[at : at+g.Width : at+g.Width], nil
}

// GetMatrix returns all rows without gaps: the frame itself where it has none.
// Padded rows are put together in a buffer that outlives the frame, because
// gozxing's binarizer knows no stride.
func (g *grey) GetMatrix() []byte {
	n := g.Width * g.Height
	if g.stride == g.Width {
		return g.pix[:n:n]
	}
	out := grow(g.pack, n)
	for y := range g.Height {
		copy(out[y*g.Width:], g.pix[y*g.stride:][:g.Width])
	}
	return out
}

// grow makes a buffer n bytes long; what was in it is lost.
func grow(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}

// Invert is part of gozxing's interface. Nothing here calls it: it would take a new
// picture each time.
func (g *grey) Invert() gozxing.LuminanceSource { return gozxing.LuminanceSourceInvert(g) }

// String is part of gozxing's interface.
func (g *grey) String() string { return gozxing.LuminanceSourceString(g) }
