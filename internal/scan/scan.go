// Package scan turns a grey picture into the texts of the QR codes in it. It is
// pure: no files, no devices, no clock.
//
// The way there: the picture is parted into dark and light by the contrast nearby
// (threshold.go); runs along its rows lead to finder patterns (finder.go), rays from
// their middles to their corners (ring.go); three of them that agree frame a symbol
// (triple.go), whose size and perspective are tried and refined until the timing
// pattern fits (symbol.go, fit.go, version.go), bent to its alignment patterns where
// the paper is (align.go, surface.go, warp.go), and sampled (sample.go). From there
// gozxing's decoder takes over, with a square of modules. What fails is tried again
// in other ways, within a budget that is counted in work (ladder.go).
//
// The picture is read where it lies, grey or YUYV; all else lives in memory that is
// kept from frame to frame. What leaves the reader is texts and nothing else: a
// picture cannot make it panic, and symbols that a scanner would have to interpret
// (structured append, ECI, FNC1) are not read at all, so that one symbol has one
// text.
package scan

import (
	"fmt"
)

// minSymbol is the side of the smallest symbol, version 1, in modules (ISO/IEC
// 18004): a smaller picture cannot show one.
const minSymbol = 21

// Frame is a grey picture: H rows of W pixels, 0 black to 255 white. Pixel (x, y)
// is Pix[y*Stride + x*Step].
type Frame struct {
	Pix          []byte
	Stride, W, H int // bytes, pixels, pixels
	Step         int // bytes from one pixel to the next: 1, or 0, is grey; 2 is YUYV
}

// maxSide is the largest width or height of a frame in pixels: past any camera,
// and small enough that the work on two sides' product fits into an int of 32 bits.
const maxSide = 1 << 13

// check returns an error when the frame is not what it says.
func (f Frame) check() error {
	switch {
	case f.W < 1 || f.H < 1:
		return fmt.Errorf("read frame: %d x %d pixels is no picture", f.W, f.H)
	case f.W > maxSide || f.H > maxSide:
		return fmt.Errorf("read frame: %d x %d pixels, at most %d each way", f.W, f.H, maxSide)
	case f.Step < 0 || f.Step > 2:
		return fmt.Errorf("read frame: pixels %d bytes apart", f.Step)
	case f.Stride < f.W*max(f.Step, 1):
		return fmt.Errorf("read frame: rows of %d pixels are %d bytes apart", f.W, f.Stride)
	case len(f.Pix) < f.W*max(f.Step, 1) || (len(f.Pix)-f.W*max(f.Step, 1))/f.Stride < f.H-1:
		return fmt.Errorf("read frame: cut off, %d bytes for %d rows of %d", len(f.Pix), f.H, f.Stride)
	}
	return nil
}

// Options are what a reader can be told.
type Options struct {
	// LightOnly leaves out light codes on a dark ground, as phones in dark mode show
	// them.
	LightOnly bool
}

// Reader reads frames, one at a time and by one goroutine: it keeps its memory
// between them, what it found last and how, and what is to be tried next.
type Reader struct {
	opts Options
	look *look
	ladder
}

// New returns a reader.
func New(o Options) *Reader { return &Reader{opts: o, look: newLook()} }

// Read returns the texts of all codes that it finds in the frame, each once, in an
// order that depends on the frames alone. A frame in which it finds none gives none:
// that is no error. An error means that the frame is no frame, or that the reader
// broke on it; it is good for the next frame all the same.
//
// A code that one frame does not give another may, even if nothing moves: what
// takes long is spread over frames.
//
// A text is the bytes that were encoded, which may be any.
func (r *Reader) Read(f Frame) (texts []string, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.W < minSymbol || f.H < minSymbol {
		return nil, nil
	}
	err = contain(func() error {
		texts = r.climb(f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	return texts, nil
}

// Work is how much the last Read took, in units of about a nanosecond on a fast
// processor. It is counted, not measured: a frame takes the same everywhere.
func (r *Reader) Work() int { return r.look.work }

// contain runs fn and makes an error of a panic in it: a library that was made
// for well-formed pictures sits behind it, and a camera sees everything.
func contain(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder broke: %v", p)
		}
	}()
	return fn()
}
