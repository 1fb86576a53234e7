package turnstile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Driver names a driver.
type Driver string

// The drivers.
const (
	DriverGPIOChip Driver = "gpiochip" // the kernel's GPIO character device
	DriverRPIO     Driver = "rpio"     // the registers of a Raspberry Pi 0 to 4
	DriverSim      Driver = "sim"      // a file and people by script
)

// Pull is the resistor that a board connects to an input.
type Pull string

// The pulls. An input that has none named keeps the one that it has.
const (
	PullUp   Pull = "up"
	PullDown Pull = "down"
	PullNone Pull = "none"
)

// ErrHeld is returned by Open when somebody else holds a line; it may be a process
// that is about to end.
var ErrHeld = errors.New("in use")

// Wiring says which driver has the lines and what each of them hangs on. It is all
// that a keeper is told.
type Wiring struct {
	Driver    Driver `json:"driver"`
	ActiveLow []Line `json:"active_low,omitempty"` // active at low level

	Chip        string        `json:"chip,omitempty"`          // gpiochip: the chip's label
	AllowDevMem bool          `json:"allow_dev_mem,omitempty"` // rpio: the whole memory may be opened, as root
	Pins        map[Line]int  `json:"pins,omitempty"`          // gpiochip: offsets on the chip; rpio: BCM numbers
	Pull        map[Line]Pull `json:"pull,omitempty"`          // of inputs
	Debounce    time.Duration `json:"debounce,omitempty"`      // gpiochip: in the kernel

	File    string  `json:"file,omitempty"`    // sim: the trace
	Inputs  []Line  `json:"inputs,omitempty"`  // sim: what is wired
	Passage Passage `json:"passage,omitempty"` // sim: what people do
}

// Open opens the driver that a wiring names, every output inactive. It is the
// whole of what makes lines idle: open and close. An error names the line and the
// remedy; ErrHeld is in it when a further try may succeed.
func Open(w Wiring) (Lines, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("open turnstile: %w", err)
	}
	var lines Lines
	var err error
	switch w.Driver {
	case DriverGPIOChip:
		lines, err = openGPIOChip(w)
	case DriverRPIO:
		lines, err = openRPIO(w)
	default:
		lines, err = NewSim(SimOptions{Path: w.File, ActiveLow: w.ActiveLow, Inputs: w.Inputs, Passage: w.Passage})
	}
	if err != nil {
		return nil, fmt.Errorf("open turnstile: %w", err)
	}
	return lines, nil
}

// check finds what no driver could work with, for a wiring that no configuration
// has checked.
func (w Wiring) check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch w.Driver {
	case DriverSim:
		return nil // NewSim checks the rest
	case DriverGPIOChip, DriverRPIO:
	default:
		return fmt.Errorf("there is no driver %q", w.Driver)
	}
	if _, ok := w.Pins[LineRelay]; !ok {
		add("no pin for %v", LineRelay)
	}
	by := map[int]Line{}
	for _, line := range w.lines() {
		pin := w.Pins[line]
		if other, taken := by[pin]; taken {
			add("pin %d is for %v and for %v", pin, other, line)
		}
		by[pin] = line
		if line >= lineCount || pin < 0 {
			add("%v cannot be on pin %d", line, pin)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(w.Pull)) {
		if p := w.Pull[line]; !line.Input() || p != PullUp && p != PullDown && p != PullNone {
			add("%v cannot have pull %q", line, p)
		}
	}
	return errors.Join(errs...)
}

// lines are those that are wired to pins: the relay first, for it is what must be
// idle soonest.
func (w Wiring) lines() []Line { return slices.Sorted(maps.Keys(w.Pins)) }

// inputs are those that are wired.
func (w Wiring) inputs() []Line {
	if w.Driver == DriverSim {
		return slices.Clone(w.Inputs)
	}
	return slices.DeleteFunc(w.lines(), func(l Line) bool { return !l.Input() })
}

func (w Wiring) activeLow(line Line) bool { return slices.Contains(w.ActiveLow, line) }
