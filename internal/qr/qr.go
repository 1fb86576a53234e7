// Package qr draws texts as QR symbols: as modules, as a grey picture, as a PNG
// and as a sheet to print. It is for tickets that this system mints; reading is
// the scanner's.
package qr

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"github.com/makiuchi-d/gozxing/qrcode/encoder"
)

const (
	// QuietZone is the white margin that a symbol needs on each side, in modules
	// (ISO/IEC 18004, 6.3.8).
	QuietZone = 4

	// MaxText is the most bytes that Encode takes: more than any ticket has.
	MaxText = 512

	// MaxScale is the most pixels a module may have in a picture, so that no
	// request for one takes up the memory.
	MaxScale = 64
)

// Modules is a square symbol without its quiet zone: Modules[y][x] is true where
// the module is dark.
type Modules [][]bool

// Encode gives the smallest symbol of the text at error correction level M, and
// its version (1 to 40; the side has 17 + 4*version modules). It uses one
// segment, without ECI, FNC1 or structured append: alphanumeric where the text
// allows, as all a1 tickets do, else bytes.
func Encode(text string) (Modules, int, error) {
	if text == "" || len(text) > MaxText {
		return nil, 0, fmt.Errorf("encode QR symbol: text of %d bytes, want 1 to %d", len(text), MaxText)
	}
	code, err := encoder.Encoder_encodeWithoutHint(text, decoder.ErrorCorrectionLevel_M)
	if err != nil {
		return nil, 0, fmt.Errorf("encode QR symbol: %w", err)
	}
	matrix := code.GetMatrix()
	modules := make(Modules, matrix.GetHeight())
	for y := range modules {
		modules[y] = make([]bool, matrix.GetWidth())
		for x := range modules[y] {
			modules[y][x] = matrix.Get(x, y) == 1
		}
	}
	return modules, code.GetVersion().GetVersionNumber(), nil
}

// Image draws the text's symbol in black on white with its quiet zone, each
// module scale × scale pixels (1 to MaxScale).
func Image(text string, scale int) (*image.Gray, error) {
	if scale < 1 || scale > MaxScale {
		return nil, fmt.Errorf("draw QR symbol: scale %d, want 1 to %d", scale, MaxScale)
	}
	modules, _, err := Encode(text)
	if err != nil {
		return nil, err
	}
	side := (len(modules) + 2*QuietZone) * scale
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	for y, row := range modules {
		for x, dark := range row {
			if dark {
				square(img, (x+QuietZone)*scale, (y+QuietZone)*scale, scale)
			}
		}
	}
	return img, nil
}

func square(img *image.Gray, x, y, side int) {
	for dy := range side {
		row := img.Pix[(y+dy)*img.Stride+x:][:side]
		for dx := range row {
			row[dx] = 0
		}
	}
}

// PNG writes the picture of Image as a PNG of one bit a pixel.
func PNG(w io.Writer, text string, scale int) error {
	grey, err := Image(text, scale)
	if err != nil {
		return err
	}
	img := image.NewPaletted(grey.Rect, color.Palette{color.Black, color.White})
	for i, p := range grey.Pix {
		img.Pix[i] = p & 1
	}
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(w, img); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	return nil
}
