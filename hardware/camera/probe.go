package camera

import (
	"context"
	"fmt"
	"time"
)

// Offer is what a video device says of itself.
type Offer struct {
	Device   string   // its name, driver and place on the bus
	Modes    []Mode   // those that fit the options, the best first
	Controls []string // name and range, as in "exposure_time_absolute 3 to 2047"
	Refused  []string // controls of the options that it cannot set so, and why
}

// Probe opens a device, asks what it offers, and closes it; nothing is set. It
// returns an error that says why the device cannot be a camera with these options.
func Probe(o V4L2Options) (Offer, error) {
	c, err := NewV4L2(o)
	if err != nil {
		return Offer{}, err
	}
	return c.probe()
}

func (c *V4L2) probe() (o Offer, err error) {
	d, err := c.open(c.o.Device)
	if err != nil {
		return o, fmt.Errorf("%s: %w", c.name, err)
	}
	defer func() {
		if cerr := d.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("%s: close: %w", c.name, cerr)
		}
	}()
	o.Device = d.Name()
	there := d.Controls()
	for _, s := range there {
		o.Controls = append(o.Controls, fmt.Sprintf("%s %d to %d", plainName(s.name), s.least, s.most))
	}
	for _, s := range order(c.o.Controls, there) {
		if err := s.check(); err != nil {
			o.Refused = append(o.Refused, fmt.Sprintf("%s = %d: %v", s.name, s.value, err))
		}
	}
	if o.Modes, err = offers(d, c.wish); err != nil {
		return o, fmt.Errorf("%s: %w", c.name, err)
	}
	return o, nil
}

// Measure runs a camera until it has given frames for a while, or for patience,
// and gives the frames a second. It returns the camera's State as an error when
// there were less than two of them.
func Measure(ctx context.Context, s Source, while, patience time.Duration) (rate float64, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	n := 0
	var first, last time.Time
	err = s.Run(ctx, func(f Frame) {
		if n++; n == 1 {
			first = f.Captured
		}
		if last = f.Captured; last.Sub(first) >= while {
			stop()
		}
	})
	switch {
	case err != nil:
		return 0, err
	case n < 2 && s.State() != nil:
		return 0, s.State()
	case n < 2:
		return 0, fmt.Errorf("%d frames in %v", n, patience)
	}
	return float64(n-1) / last.Sub(first).Seconds(), nil
}
