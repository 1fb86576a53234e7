package main

import (
	"context"
	"fmt"
	"log/slog"

	"admitone/hardware/reader"
	"admitone/internal/config"
	"admitone/internal/gate"
)

// device is a reader or a camera as the status names it.
type device struct {
	name  string
	state func() error // nil while it works
}

// openReader makes the reader that a configuration names.
func openReader(c config.Reader, log *slog.Logger) (*reader.Line, error) {
	switch c.Driver {
	case config.DriverSerial:
		return reader.NewSerial(reader.SerialOptions{Path: c.Path, Baud: c.Baud, Log: log})
	case config.DriverEvdev:
		return reader.NewEvdev(reader.EvdevOptions{Path: c.Path, Layout: c.Layout, Log: log})
	case config.DriverLine:
		return reader.NewLine(reader.LineOptions{Path: c.Path, Log: log})
	}
	return nil, fmt.Errorf("open reader: there is no driver %q", c.Driver)
}

// tell has the status tell how a device stands, if the device knows.
func (l *laneDevices) tell(name string, dev any) {
	if s, ok := dev.(interface{ State() error }); ok {
		l.devices = append(l.devices, device{name, s.State})
	}
}

// status is how the gate and its devices stand.
func (d *daemon) status(ctx context.Context) (gate.Status, error) {
	s, err := d.gate.Status(ctx)
	if err != nil {
		return s, err
	}
	for i, l := range d.lanes {
		for _, dev := range l.devices {
			state := gate.DeviceOK
			if err := dev.state(); err != nil {
				state = err.Error()
			}
			s.Devices = append(s.Devices, gate.DeviceStatus{Name: fmt.Sprintf("lane %s: %s", d.gate.LaneName(i), dev.name), State: state})
		}
	}
	return s, nil
}
