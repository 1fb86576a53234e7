// Package camera gives grey frames: from a video device (V4L2), from a program
// that writes motion JPEG (Child), from a folder of pictures, as a rehearsal
// shows them (Folder), and from picture files.
//
// A camera is never the end of anything: what is unplugged, stalls, lies or sends
// noise is closed and opened again, with a growing pause, and State says why there
// are no pictures meanwhile. Each loss is logged once, and its end once.
//
// The package stands alone: it imports nothing else of this project, and builds
// for any system. Video devices are Linux's.
package camera

import (
	"context"
	"time"
)

// Frame is a grey picture: H rows of W pixels, one byte each, 0 black to 255
// white. Row y begins at Pix[y*Stride].
type Frame struct {
	Pix          []byte
	Stride, W, H int // pixels, which are bytes

	// Captured is the moment the picture was taken. It carries the monotonic clock,
	// so that the time since is right when the wall clock is set. Zero for a file.
	Captured time.Time
}

// Source is a camera. Run calls out with one frame after another, from one
// goroutine, until ctx is cancelled, and then returns nil. A frame and its pixels
// belong to out until it returns, and to the source afterwards: what is to outlive
// the call must be copied. While out is busy frames are dropped, never queued.
type Source interface {
	Run(ctx context.Context, out func(Frame)) error

	// State is nil while frames come, and says why they do not otherwise. Any
	// goroutine may ask.
	State() error
}

// The largest frame that a gate works on. What is larger is averaged down.
const (
	MaxWidth  = 1280 // pixels
	MaxHeight = 720
)

// The frame that darkness has, there being no picture to take the size from.
const (
	darkWidth  = 640 // pixels
	darkHeight = 480
)
