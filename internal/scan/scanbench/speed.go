package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"admitone/internal/qr"
	"admitone/internal/scan"
)

// bare shows a frame to gozxing without copying it.
type bare struct {
	gozxing.LuminanceSourceBase
	pix []byte
}

func (b *bare) GetRow(y int, _ []byte) ([]byte, error) { return b.pix[y*b.Width:][:b.Width], nil }
func (b *bare) GetMatrix() []byte                      { return b.pix }
func (b *bare) Invert() gozxing.LuminanceSource        { return gozxing.LuminanceSourceInvert(b) }
func (b *bare) String() string                         { return gozxing.LuminanceSourceString(b) }

// gozxingRead reads a frame with gozxing as it comes: its HybridBinarizer, dark
// codes alone, and its detector.
func gozxingRead(f scan.Frame, harder bool) bool {
	src := &bare{gozxing.LuminanceSourceBase{Width: f.W, Height: f.H}, f.Pix}
	bitmap, err := gozxing.NewBinaryBitmap(gozxing.NewHybridBinarizer(src))
	if err != nil {
		return false
	}
	hints := map[gozxing.DecodeHintType]any{}
	if harder {
		hints[gozxing.DecodeHintType_TRY_HARDER] = true
	}
	_, err = qrcode.NewQRCodeReader().Decode(bitmap, hints)
	return err == nil
}

// empty is a wall with the grain of a camera.
func empty() scan.Frame {
	f := scan.Frame{Pix: make([]byte, 1280*720), Stride: 1280, W: 1280, H: 720}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range f.Pix {
		f.Pix[i] = byte(100 + i%1280/16 + int(rnd.Uint32()%8))
	}
	return f
}

// easy is a code that takes up a quarter of the frame.
func easy() (scan.Frame, error) {
	f := empty()
	img, err := qr.Image("A1:"+fmt.Sprintf("%0200d", 7), 8)
	if err != nil {
		return f, err
	}
	b := img.Bounds()
	for y := range b.Dy() {
		copy(f.Pix[(y+(720-b.Dy())/2)*f.Stride+(1280-b.Dx())/2:], img.Pix[y*img.Stride:][:b.Dx()])
	}
	return f, nil
}

// printSpeed compares times of one run: the least of many, taken in turns.
func printSpeed(w io.Writer) error {
	code, err := easy()
	if err != nil {
		return err
	}
	r := scan.New(scan.Options{})
	for _, c := range []struct {
		name   string
		frame  scan.Frame
		harder bool
		texts  int
	}{{"an empty frame", empty(), false, 0}, {"an easy code", code, true, 1}} {
		ours, theirs := time.Hour, time.Hour
		for range 200 {
			began := time.Now()
			texts, err := r.Read(c.frame)
			ours = min(ours, time.Since(began))
			if err != nil || len(texts) != c.texts {
				return fmt.Errorf("%s gave %d texts, %v", c.name, len(texts), err)
			}
			began = time.Now()
			if gozxingRead(c.frame, c.harder) != (c.texts == 1) {
				return fmt.Errorf("gozxing reads %s otherwise", c.name)
			}
			theirs = min(theirs, time.Since(began))
		}
		allocs := testing.AllocsPerRun(50, func() { _, _ = r.Read(c.frame) })
		fmt.Fprintf(w, "%s of 1280x720: %.2f ms, gozxing %.2f ms: %.2f times; %v allocations\n",
			c.name, ms(ours), ms(theirs), float64(ours)/float64(theirs), allocs)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
