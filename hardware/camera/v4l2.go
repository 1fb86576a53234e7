package camera

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// V4L2Options say which device a V4L2 camera is, and how it is to work.
type V4L2Options struct {
	// Device is a video device; best a name below /dev/v4l/by-id that ends in
	// -video-index0: the numbers of /dev/video0 change with the order in which
	// devices are found, and the other indices carry no pictures.
	Device string

	Format        Format // 0: the best that the device offers
	Width, Height int    // pixels; 0: the best
	Rate          int    // frames a second to ask for; 0: 15

	// Controls are set each time the device is opened: by the name that
	// controlNames or the device has for it, or by its number ("0x009a0902").
	Controls map[string]int

	Deadline time.Duration // without a frame for this long it has stalled; default 2 s
	Log      *slog.Logger  // discarded where nil
}

// askBuffers are asked of the driver: one that it fills, one that is full, and one
// to spare. More would only hold frames that are out of date. It may give more, up
// to maxBuffers (VIDEO_MAX_FRAME).
const (
	askBuffers = 3
	maxBuffers = 32
)

// waitStep is how long one wait for a frame is: a stop waits for it to end. The
// library counts in whole seconds.
const waitStep = time.Second

// tooFast is the part of the time between two frames that must be over for a
// frame to be taken: a device that ignores the rate asked for is thinned out.
const tooFast = 0.6

// V4L2 is a camera of Video for Linux: a USB webcam, as a rule. Unplugged,
// stalled or broken, it is closed and opened again until it works.
type V4L2 struct {
	live
	o    V4L2Options
	wish wish
	open func(path string) (device, error)

	skip int             // how many of the best modes did not work
	weak int             // how often in a row the mode worked, and not for long
	late bool            // all buffers were full the last time
	told map[string]bool // trouble with controls that was told
}

// NewV4L2 returns a V4L2 camera and opens nothing. It returns an error when the
// options contradict themselves.
func NewV4L2(o V4L2Options) (*V4L2, error) { return newV4L2(o, openDevice) }

func newV4L2(o V4L2Options, open func(string) (device, error)) (*V4L2, error) {
	switch {
	case o.Device == "":
		return nil, errors.New("set up camera: no device is named")
	case (o.Width == 0) != (o.Height == 0) || o.Width < 0 || o.Height < 0:
		return nil, fmt.Errorf("set up camera %s: %d x %d is no size", o.Device, o.Width, o.Height)
	case o.Rate < 0 || o.Rate > maxRate:
		return nil, fmt.Errorf("set up camera %s: %d frames a second, want 1 to %d", o.Device, o.Rate, maxRate)
	}
	c := &V4L2{
		o: o, open: open, told: map[string]bool{},
		wish: wish{format: o.Format, width: o.Width, height: o.Height, rate: float64(o.Rate)},
	}
	c.init("camera "+o.Device, o.Deadline, o.Log)
	return c, nil
}

// Run implements Source. It returns an error only when it was run before.
func (c *V4L2) Run(ctx context.Context, out func(Frame)) error { return c.run(ctx, out, c.session) }

// session opens the device, sets it up, and takes frames until it fails or ctx
// ends. Whatever happens, the device is closed: with this library nothing less
// gives back what a half-started stream holds.
func (c *V4L2) session(ctx context.Context) (err error) {
	d, err := c.open(c.o.Device)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := d.Close(); cerr != nil {
			err = fmt.Errorf("%w; close: %w", err, cerr)
		}
	}()
	modes, err := offers(d, c.wish)
	if err != nil {
		return err
	}
	defer func() { c.learn(err) }()
	set, err := c.setUp(d, modes[c.skip%len(modes)])
	if err != nil {
		return err
	}
	return c.watch(ctx, d, set)
}

// A mode that did not last for steady, often in a row, is taken for one that does
// not work.
const (
	steady = time.Minute
	often  = 3
)

// learn makes room for the next best mode when one does not work, as for want of
// USB bandwidth: on a Raspberry Pi such a stream may start and then stall. What is
// plugged in anew begins with the best.
func (c *V4L2) learn(err error) {
	lived := c.health.lived()
	var mode modeError
	switch {
	case errors.Is(err, errGone):
		c.skip, c.weak = 0, 0
	case !errors.As(err, &mode):
	case lived >= steady:
		c.weak = 0
	case lived == 0 || c.weak+1 >= often:
		c.skip, c.weak = c.skip+1, 0
	default:
		c.weak++
	}
}

// setUp sets format, rate and controls, and starts the stream.
func (c *V4L2) setUp(d device, m Mode) (layout, error) {
	set, err := d.SetFormat(m.Format, m.Width, m.Height)
	if err != nil {
		return set, fmt.Errorf("set %v: %w", m, err)
	}
	if err := set.check(); err != nil {
		return set, modeError{fmt.Errorf("asked for %v, it set %v %w", m, set, err)}
	}
	if got := (Mode{Format: set.format, Width: set.w, Height: set.h}); !c.wish.fits(got) {
		return set, modeError{fmt.Errorf("asked for %v, it set %v", m, set)}
	}
	ask := c.wish.ask()
	if m.Rate > 0 {
		ask = min(ask, m.Rate)
	}
	rate := d.SetRate(ask)
	c.setControls(d)
	if err := d.Start(askBuffers); err != nil {
		return set, fmt.Errorf("start %v: %w", m, err)
	}
	is := Mode{Format: set.format, Width: set.w, Height: set.h, Rate: rate}
	c.as = fmt.Sprintf("%v of %s", is, d.Name())
	return set, nil
}

// watch takes frames until one does not come in time, or too many are bad.
func (c *V4L2) watch(ctx context.Context, d device, set layout) error {
	for ctx.Err() == nil {
		left, err := c.patience()
		if err != nil {
			return err
		}
		err = d.Wait(min(waitStep, left))
		if errors.Is(err, errQuiet) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for a frame: %w", err)
		}
		if err := c.take(ctx, d, set); err != nil {
			return err
		}
		if err := c.unreadable(); err != nil {
			return err
		}
	}
	return errStopped
}

// take takes the newest frame of the device, copies it, and gives its buffer
// back: not before, because the driver writes into it at once.
func (c *V4L2) take(ctx context.Context, d device, set layout) error {
	data, index, n, err := newest(d)
	switch {
	case errors.Is(err, errQuiet):
		return c.spoilt(ctx, errNoFrame)
	case err != nil:
		return fmt.Errorf("take a frame: %w", err)
	}
	// Where all buffers were full, nobody knows how long they have been: this process
	// had no processor to run on. The frame after them is better, unless that
	// happens to be late again.
	c.late = n >= askBuffers && !c.late
	since, some := c.health.since()
	pass := c.late || some && since < time.Duration(tooFast/c.wish.ask()*float64(time.Second))
	s := c.box.empty()
	s.at = time.Now()
	var bad error
	if !pass {
		bad = set.copy(s, data)
	}
	if err := d.Release(index); err != nil {
		c.box.give(s)
		return fmt.Errorf("give a frame back: %w", err)
	}
	switch {
	case pass:
		c.box.give(s)
	case bad != nil:
		c.box.give(s)
		return c.spoilt(ctx, bad)
	default:
		c.arrived(s)
	}
	return nil
}

// newest takes all frames that are ready and keeps the last; an empty one only
// where there is no other. It gives their number. The buffer of the one it gives
// is to be released.
func newest(d device) (data []byte, index uint32, n int, err error) {
	data, index, err = d.Frame()
	for n = 1; err == nil && n < maxBuffers; n++ {
		next, i, nextErr := d.Frame()
		if errors.Is(nextErr, errQuiet) {
			return data, index, n, nil
		}
		if nextErr != nil {
			return nil, 0, n, nextErr
		}
		old := index
		if len(next) == 0 && len(data) > 0 {
			old = i
		} else {
			data, index = next, i
		}
		err = d.Release(old)
	}
	return data, index, n, err
}
