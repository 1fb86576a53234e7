package camera

import "fmt"

// Offer is what a video device says of itself.
type Offer struct {
	Device   string   // its name, driver and place on the bus
	Modes    []Mode   // those that fit the options, the best first
	Controls []string // name and range, as in "exposure_time_absolute 3 to 2047"
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
	for _, s := range d.Controls() {
		o.Controls = append(o.Controls, fmt.Sprintf("%s %d to %d", plainName(s.name), s.least, s.most))
	}
	if o.Modes, err = offers(d, c.wish); err != nil {
		return o, fmt.Errorf("%s: %w", c.name, err)
	}
	return o, nil
}
