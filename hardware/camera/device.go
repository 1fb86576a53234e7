package camera

import (
	"errors"
	"fmt"
	"time"
)

// device is a video device as this package needs it. All calls come from one
// goroutine; Close comes once, after all others.
type device interface {
	Name() string                    // what it calls itself
	Formats() []Format               // all that it offers
	Sizes(Format) []sizes            // none: it does not say
	Rate(f Format, w, h int) float64 // frames a second at most; 0: it does not say

	SetFormat(f Format, w, h int) (layout, error) // gives what the driver has set, which may be another
	SetRate(rate float64) float64                 // gives what it has set; 0: it does not say
	Controls() []control
	SetControl(id uint32, value int) error

	Start(buffers int) error
	Wait(d time.Duration) error                    // errQuiet when no frame came
	Frame() (data []byte, index uint32, err error) // errQuiet when there is none
	Release(index uint32) error                    // of a frame: its data are the driver's again
	Close() error
}

// Errors of devices and their frames.
var (
	errQuiet   = errors.New("no frame yet")
	errGone    = errors.New("it was unplugged")
	errNoFrame = errors.New("woken without a frame")
	errEmpty   = errors.New("an empty frame")
)

// layout is how the frames of a device lie in memory.
type layout struct {
	format Format
	w, h   int // pixels
	stride int // bytes from row to row; JPEG has none
	size   int // bytes of a frame, of JPEG at most
}

// String gives the layout as in "YUYV 1280x720".
func (l layout) String() string { return Mode{Format: l.format, Width: l.w, Height: l.h}.String() }

// check returns an error when a layout is none that can be worked with.
func (l layout) check() error {
	n := l.format.bytes()
	switch {
	case n == 0 && !l.format.jpeg():
		return errors.New("which is not read here")
	case l.w < 2 || l.h < 2 || l.w > MaxSide || l.h > MaxSide || l.w*l.h > maxLivePixels:
		return errors.New("which is no size of a picture")
	case n > 0 && (l.stride < l.w*n || l.stride > 4*MaxSide):
		return fmt.Errorf("with rows %d bytes apart", l.stride)
	}
	return nil
}

// copy copies a frame out of the device's memory as grey, or as the JPEG that it
// is. It returns an error when the frame is not what the layout says.
//
// A YUYV frame could be read where it lies, every second byte being brightness.
// But it must be copied anyhow before its buffer goes back, codes are read in
// packed rows, and picking out the brightness makes that copy half as long.
func (l layout) copy(to *shot, p []byte) error {
	to.w, to.h, to.jpeg = l.w, l.h, l.format.jpeg()
	if len(p) == 0 {
		return errEmpty
	}
	if to.jpeg {
		return l.copyJPEG(to, p)
	}
	// Some drivers count the padding at a frame's end.
	if n := l.stride * l.h; len(p) != n && (len(p) != l.size || l.size < n) {
		return fmt.Errorf("it said %v, which is %d bytes, and sent %d", l, n, len(p))
	}
	n := l.w * l.h
	if cap(to.data) < n {
		to.data = make([]byte, n)
	}
	to.data = to.data[:n]
	for y := range l.h {
		to, from := to.data[y*l.w:][:l.w], p[y*l.stride:]
		if l.format == FormatGrey {
			copy(to, from)
			continue
		}
		pickLuma(to, from[:2*l.w])
	}
	return nil
}

// pickLuma picks the brightness out of a row of YUYV: Y0 U Y1 V.
func pickLuma(to, from []byte) {
	for len(to) >= 4 && len(from) >= 8 { // in fours, which the compiler checks once
		t, f := to[:4:4], from[:8:8]
		t[0], t[1], t[2], t[3] = f[0], f[2], f[4], f[6]
		to, from = to[4:], from[8:]
	}
	for i := range to {
		to[i] = from[2*i]
	}
}

// copyJPEG copies a JPEG that says the size which the device was set to.
func (l layout) copyJPEG(to *shot, p []byte) error {
	var h jpegHeader
	var err error
	if to.data, h, err = appendJPEG(to.data[:0], p); err != nil {
		return err
	}
	if h.w != l.w || h.h != l.h {
		return fmt.Errorf("it said %v and sent %dx%d", l, h.w, h.h)
	}
	return nil
}
