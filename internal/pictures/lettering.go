package pictures

import (
	"image"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// lettering is one line of text as a mask.
type lettering struct{ mask *image.Alpha }

func newLettering(text string) lettering {
	face := basicfont.Face7x13
	width := font.MeasureString(face, text).Ceil()
	l := lettering{image.NewAlpha(image.Rect(0, 0, width, face.Height))}
	d := font.Drawer{Dst: l.mask, Src: image.Opaque, Face: face, Dot: fixed.P(0, face.Ascent)}
	d.DrawString(text)
	return l
}

// inkAt tells whether there is ink at a place right of and below the line's middle,
// the letters being height high.
func (l lettering) inkAt(u, v, height float64) bool {
	size := l.mask.Rect.Size()
	scale := float64(size.Y) / height
	x, y := u*scale+float64(size.X)/2, v*scale+float64(size.Y)/2
	if x < 0 || y < 0 {
		return false
	}
	return l.mask.AlphaAt(int(x), int(y)).A > 127
}
