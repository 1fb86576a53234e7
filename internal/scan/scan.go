// Package scan turns a grey picture into the texts of the QR codes in it. It is
// pure: no files, no devices, no clock.
//
// The picture is read where it lies: it is not copied unless its rows are padded.
// Only the second look, for light codes on dark, works on a negative, in a buffer
// that is kept. What leaves the reader is texts and nothing else: a picture cannot make
// it panic, and symbols that a scanner would have to interpret (structured append,
// ECI, FNC1) are not read at all, so that one symbol has one text.
package scan

import (
	"fmt"
)

// Frame is a grey picture: H rows of W pixels, one byte each, 0 black to 255
// white. Row y begins at Pix[y*Stride].
type Frame struct {
	Pix          []byte
	Stride, W, H int // pixels, which are bytes
}

// maxSide is the largest width or height of a frame in pixels: past any camera,
// and small enough that products of two sides fit into an int of 32 bits.
const maxSide = 1 << 15

// check returns an error when the frame is not what it says.
func (f Frame) check() error {
	switch {
	case f.W < 1 || f.H < 1:
		return fmt.Errorf("read frame: %d x %d pixels is no picture", f.W, f.H)
	case f.W > maxSide || f.H > maxSide:
		return fmt.Errorf("read frame: %d x %d pixels, at most %d each way", f.W, f.H, maxSide)
	case f.Stride < f.W:
		return fmt.Errorf("read frame: rows of %d pixels are %d bytes apart", f.W, f.Stride)
	case len(f.Pix) < f.W || (len(f.Pix)-f.W)/f.Stride < f.H-1:
		return fmt.Errorf("read frame: cut off, %d bytes for %d rows of %d", len(f.Pix), f.H, f.Stride)
	}
	return nil
}

// Options are what a reader can be told.
type Options struct {
	// LightOnly leaves out the look for light codes on a dark ground, as phones in
	// dark mode show them; it saves half of an empty frame's time.
	LightOnly bool
}

// Reader reads frames, one at a time: it keeps its buffers between them, so one
// goroutine owns it.
type Reader struct {
	opts   Options
	packed []byte // a frame without its padding, or its negative
}

// New returns a reader.
func New(o Options) *Reader { return &Reader{opts: o} }

// Read returns the texts of all codes that it finds in the frame, each once, in
// no order that means anything. A frame in which it finds none gives none: that
// is no error. An error means that the frame is no frame, or that the decoder
// broke on it; the reader is good for the next frame all the same.
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
		texts, err = r.look(f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	return texts, nil
}

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
