package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// ChildOptions say where a Child's pictures come from: of Command and Path, one.
type ChildOptions struct {
	// Command is a program and its arguments, which writes motion JPEG to its
	// standard output: ["rpicam-vid", "--timeout", "0", "--nopreview", "--codec",
	// "mjpeg", "--width", "1280", "--height", "720", "--framerate", "15", "--flush",
	// "--output", "-"]. No shell is in between.
	Command []string

	// Path is a Unix socket that is connected to and then read, or a FIFO: the
	// program is somebody else's to start.
	Path string

	Deadline time.Duration // without a picture for this long it has stalled; default 2 s
	Log      *slog.Logger  // discarded where nil
}

// Child is a camera behind a program that delivers motion JPEG, such as a CSI
// camera's rpicam-vid. A program that ends or stalls is killed, with all that it
// has started, and started again.
type Child struct {
	live
	open func() (stream, error)
}

// stream is where motion JPEG is read from. Close ends all that belongs to it; an
// error of Close says why the stream ended, where that is known.
type stream interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// NewChild returns a Child camera and starts nothing. It returns an error when
// not one of command and path is given.
func NewChild(o ChildOptions) (*Child, error) {
	if (len(o.Command) == 0) == (o.Path == "") {
		return nil, errors.New("set up child camera: either a command or a path")
	}
	c := &Child{}
	name := "camera " + o.Path
	if o.Path == "" {
		name = "camera child " + o.Command[0]
		c.open = func() (stream, error) { return startCommand(o.Command) }
	} else {
		c.open = func() (stream, error) { return openPath(o.Path) }
	}
	c.init(name, o.Deadline, o.Log)
	return c, nil
}

// Run implements Source. It returns an error only when it was run before.
func (c *Child) Run(ctx context.Context, out func(Frame)) error { return c.run(ctx, out, c.session) }

// session opens the stream and reads pictures until it ends, stalls, or ctx ends.
func (c *Child) session(ctx context.Context) error {
	src, err := c.open()
	if err != nil {
		return err
	}
	c.as = "motion JPEG"
	interrupt := context.AfterFunc(ctx, func() { _ = src.SetReadDeadline(time.Unix(1, 0)) })
	err = c.read(ctx, src)
	interrupt()
	if why := src.Close(); why != nil {
		err = fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

// maxNoise is how many bytes without a picture are too many: a program that
// writes something else, and fast, is not read until the deadline.
const maxNoise = 4 * maxJPEG

// read takes pictures out of the stream.
func (c *Child) read(ctx context.Context, src stream) error {
	var s splitter
	var bad error
	noise := 0                  // bytes since the last picture
	buf := make([]byte, 64<<10) // as much as a pipe holds
	for ctx.Err() == nil {
		left, err := c.patience()
		if err != nil {
			return err
		}
		if err := src.SetReadDeadline(time.Now().Add(left)); err != nil {
			return fmt.Errorf("read pictures: %w", err)
		}
		if ctx.Err() != nil { // its interruption may just have been overwritten
			break
		}
		n, err := src.Read(buf)
		dropped := s.dropped
		noise += n
		s.take(buf[:n], func(p []byte) {
			noise = 0
			if bad == nil {
				bad = c.picture(ctx, p)
			}
		})
		for range s.dropped - dropped {
			bad = errors.Join(bad, c.spoilt(ctx, errCutPicture))
		}
		switch {
		case bad != nil:
			return bad
		case noise > maxNoise:
			return errNoise
		case isTimeout(err):
		case errors.Is(err, io.EOF):
			return errEnded
		case err != nil:
			return fmt.Errorf("read pictures: %w", err)
		}
		if err := c.unreadable(); err != nil {
			return err
		}
	}
	return errStopped
}

// Errors of a stream.
var (
	errEnded      = errors.New("its pictures ended")
	errCutPicture = errors.New("a picture that is cut, too long, or none")
	errNoise      = fmt.Errorf("no picture in %d bytes", maxNoise)
)

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// picture takes one picture of the stream. It gives an error when there were too
// many bad ones.
func (c *Child) picture(ctx context.Context, p []byte) error {
	s := c.box.empty()
	data, h, err := appendJPEG(s.data[:0], p)
	*s = shot{data: data, jpeg: true, w: h.w, h: h.h, at: time.Now()}
	if err != nil {
		c.box.give(s)
		return c.spoilt(ctx, err)
	}
	c.arrived(s)
	return nil
}
