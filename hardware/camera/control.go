package camera

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// control is a setting of a device.
type control struct {
	id          uint32
	name        string // as the device says
	least, most int
}

// Numbers of controls (v4l2-controls.h).
const (
	cidBrightness   = 0x00980900
	cidContrast     = 0x00980901
	cidWhiteAuto    = 0x0098090c
	cidGain         = 0x00980913
	cidPowerLine    = 0x00980918
	cidSharpness    = 0x0098091b
	cidBacklight    = 0x0098091c
	cidExposureAuto = 0x009a0901
	cidExposure     = 0x009a0902
	cidExposureRate = 0x009a0903
	cidFocus        = 0x009a090a
	cidFocusAuto    = 0x009a090c
)

// controlNames are the names that a configuration may use on every device,
// whatever its driver calls the control.
func controlNames() map[string]uint32 {
	return map[string]uint32{
		"brightness": cidBrightness, "contrast": cidContrast, "gain": cidGain, "sharpness": cidSharpness,
		"backlight": cidBacklight, "auto_white_balance": cidWhiteAuto,
		"power_line_frequency": cidPowerLine, // 0 off, 1 50 Hz, 2 60 Hz, 3 auto
		"auto_exposure":        cidExposureAuto,
		"exposure":             cidExposure, // 100 microseconds
		"exposure_priority":    cidExposureRate,
		"auto_focus":           cidFocusAuto, // 0 off, 1 on
		"focus":                cidFocus,
	}
}

// What automatic must be off for a control to be obeyed.
const (
	exposureManual = 1 // of auto_exposure, where 0 is automatic
	focusManual    = 0 // of auto_focus
)

// setControls sets the controls of the configuration. Trouble with one is told
// once, and is no reason to do without pictures.
func (c *V4L2) setControls(d device) {
	if len(c.o.Controls) == 0 {
		return
	}
	there := d.Controls()
	for _, s := range order(c.o.Controls, there) {
		err := s.set(d)
		if err == nil || c.told[s.name] {
			continue
		}
		c.told[s.name] = true
		c.log.Warn("camera's control is not set", "camera", c.name, "control", s.name, "value", s.value, "err", err)
	}
}

// setting is one control and what it is to be.
type setting struct {
	name  string
	value int
	on    *control // nil: the device has none of that name
	there []control
}

// order gives what is to be set, the automatics first: they are turned off where
// the configuration gives a value by hand and says nothing of them.
func order(want map[string]int, there []control) (all []setting) {
	byID := map[uint32]bool{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		s := setting{name: name, value: want[name], on: find(name, there), there: there}
		if s.on != nil {
			byID[s.on.id] = true
		}
		all = append(all, s)
	}
	for _, a := range []struct {
		value, auto uint32
		name        string
		off         int
	}{{cidExposure, cidExposureAuto, "auto_exposure", exposureManual}, {cidFocus, cidFocusAuto, "auto_focus", focusManual}} {
		if on := find(a.name, there); on != nil && byID[a.value] && !byID[a.auto] {
			all = append(all, setting{name: a.name, value: a.off, on: on})
		}
	}
	slices.SortStableFunc(all, func(a, b setting) int { return truth(!a.automatic(), !b.automatic()) })
	return all
}

func (s setting) automatic() bool {
	return s.on != nil && (s.on.id == cidExposureAuto || s.on.id == cidFocusAuto || s.on.id == cidWhiteAuto)
}

// find gives the control of a name: one of ours, a number, or the device's own
// name written as v4l2-ctl lists it.
func find(name string, there []control) *control {
	id, known := controlNames()[name]
	if n, err := strconv.ParseUint(name, 0, 32); err == nil {
		id, known = uint32(n), true
	}
	for i, c := range there {
		if known && c.id == id || !known && plainName(c.name) == plainName(name) {
			return &there[i]
		}
	}
	return nil
}

// plainName gives a name in lower case, with one _ for all that is no letter or
// digit: "Exposure Time, Absolute" is exposure_time_absolute.
func plainName(s string) string {
	parts := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(parts, "_")
}

func (s setting) set(d device) error {
	if err := s.check(); err != nil {
		return err
	}
	return d.SetControl(s.on.id, s.value)
}

// check returns an error when the device cannot do as the setting says.
func (s setting) check() error {
	if s.on == nil {
		names := make([]string, len(s.there))
		for i, c := range s.there {
			names[i] = plainName(c.name)
		}
		return fmt.Errorf("it has none of that name, but %q", names)
	}
	if s.value < s.on.least || s.value > s.on.most {
		return fmt.Errorf("it takes %d to %d", s.on.least, s.on.most)
	}
	return nil
}
