package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The drivers of turnstiles.
const (
	DriverSim      = "sim"      // a file and simulated people
	DriverGPIOChip = "gpiochip" // the kernel's GPIO character device, on any board
	DriverRPIO     = "rpio"     // the registers of a Raspberry Pi 0 to 4
)

// Turnstile says what the relay, the lamps and the inputs hang on.
type Turnstile struct {
	Driver    string   `toml:"driver"`               // one of the drivers of turnstiles
	Release   Release  `toml:"release,omitempty"`    // default pulse
	Pulse     Duration `toml:"pulse,omitempty"`      // default 500ms
	Gap       Duration `toml:"gap,omitempty"`        // between two pulses; default 300ms
	HoldAfter Duration `toml:"hold_after,omitempty"` // hold: how long after the passage; default 0s
	MaxOn     Duration `toml:"max_on,omitempty"`     // the relay is never on for longer; default 15s
	ActiveLow []string `toml:"active_low,omitempty"` // the lines that are active at a low level
	Debounce  Duration `toml:"debounce,omitempty"`   // how long an input keeps a state before it counts; default 20ms

	// Pins says where each line is: BCM numbers on a Raspberry Pi, offsets on
	// another chip. A line that is not listed is not wired.
	Pins        map[string]int    `toml:"pins,omitempty"`
	Pull        map[string]string `toml:"pull,omitempty"`          // the resistors of inputs: up, down or none; default as the board has them
	Chip        string            `toml:"chip,omitempty"`          // gpiochip: the chip's label, as gpiodetect shows it
	AllowDevMem bool              `toml:"allow_dev_mem,omitempty"` // rpio: open the whole memory, as root

	File    string   `toml:"file,omitempty"`    // sim: each change of a line is appended here
	Inputs  []string `toml:"inputs,omitempty"`  // sim: the inputs that are wired; none by default
	Passage string   `toml:"passage,omitempty"` // sim: what its people do, auto (default), never or twice
}

// The inputs of a turnstile.
const (
	PassageIn  = "passage_in"
	PassageOut = "passage_out"
	Ready      = "ready"
	Alarm      = "alarm"
	Emergency  = "emergency"
	Staff      = "staff"
)

const (
	relay = "relay"
	light = "light"
)

func inputs() []string {
	return []string{PassageIn, PassageOut, Ready, Alarm, Emergency, Staff}
}
func outputs() []string        { return []string{relay, "red", "green", "amber", "buzzer", light} }
func (t Turnstile) gpio() bool { return t.Driver == DriverGPIOChip || t.Driver == DriverRPIO }

func (t *Turnstile) setDefaults() {
	*t = Turnstile{Release: ReleasePulse, Pulse: ms(500), Gap: ms(300), MaxOn: ms(15_000), Debounce: ms(20)}
}

// complete fills in what depends on the driver, and makes paths absolute.
func (t *Turnstile) complete(dir string) {
	resolve(&t.File, dir)
	if t.Driver == DriverSim && t.Passage == "" {
		t.Passage = "auto"
	}
}

// has reports whether an input is wired.
func (t Turnstile) has(input string) bool {
	if t.gpio() {
		_, wired := t.Pins[input]
		return wired
	}
	return slices.Contains(t.Inputs, input)
}

// Limits that a turnstile's driver has, too.
const (
	longestOn       = Duration(2 * time.Minute)
	shortestGap     = Duration(10 * time.Millisecond)
	longestDebounce = Duration(time.Second)
)

func (t *Turnstile) check(r *report, at string, l *Lane) {
	r.driver(at+".driver", t.Driver, DriverSim, DriverGPIOChip, DriverRPIO)
	r.positive(at+".pulse", t.Pulse)
	r.positive(at+".max_on", t.MaxOn)
	if t.MaxOn > longestOn {
		r.addf(at+".max_on", fmt.Sprintf("set it to at most %s", longestOn), "%s protects nothing", t.MaxOn)
	}
	if t.Gap < shortestGap || t.Gap > longestOn {
		r.addf(at+".gap", fmt.Sprintf("set it from %s to %s", shortestGap, longestOn), "%s is no gap that a turnstile sees", t.Gap)
	}
	if t.Debounce > longestDebounce {
		r.addf(at+".debounce", fmt.Sprintf("set it to at most %s", longestDebounce), "in %s a person has passed", t.Debounce)
	}
	if t.Release == ReleasePulse && t.Pulse > t.MaxOn {
		r.addf(at+".max_on", "set it to at least pulse", "%s is shorter than pulse %s", t.MaxOn, t.Pulse)
	}
	if t.Release == ReleasePulse && t.Pulse > l.PassageTimeout {
		r.addf(at+".pulse", "set it below passage_timeout", "%s is longer than passage_timeout %s", t.Pulse, l.PassageTimeout)
	}
	if t.Release == ReleaseHold && t.MaxOn < l.PassageTimeout+t.HoldAfter {
		r.addf(at+".max_on", "set it to at least passage_timeout + hold_after", "%s would close the turnstile before passage_timeout %s and hold_after %s are over", t.MaxOn, l.PassageTimeout, t.HoldAfter)
	}
	r.names(at+".inputs", t.Inputs, inputs())
	r.names(at+".active_low", t.ActiveLow, append(outputs(), inputs()...))
	t.foreign(r, at)
	switch {
	case t.Driver == DriverSim:
		r.required(at+".file", t.File, "name the file that each change of a line is appended to")
		r.oneOf(at+".passage", t.Passage, []string{"auto", "never", "twice"})
	case t.gpio():
		t.wiring(r, at)
	}
}

// foreign finds keys that belong to another driver: somebody means them to work.
func (t *Turnstile) foreign(r *report, at string) {
	for _, k := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"pins", len(t.Pins) > 0, []string{DriverGPIOChip, DriverRPIO}},
		{"pull", len(t.Pull) > 0, []string{DriverGPIOChip, DriverRPIO}},
		{"chip", t.Chip != "", []string{DriverGPIOChip}},
		{"allow_dev_mem", t.AllowDevMem, []string{DriverRPIO}},
		{"file", t.File != "", []string{DriverSim}},
		{"inputs", len(t.Inputs) > 0, []string{DriverSim}},
		{"passage", t.Passage != "", []string{DriverSim}},
	} {
		known := t.Driver == DriverSim || t.gpio()
		if known && k.set && !slices.Contains(k.of, t.Driver) {
			r.addf(at+"."+k.name, "take it out, or change driver", "is for driver %s", strings.Join(k.of, " and "))
		}
	}
}

// wiring checks what hangs on pins.
func (t *Turnstile) wiring(r *report, at string) {
	if t.Driver == DriverGPIOChip {
		r.required(at+".chip", t.Chip, "name the chip by its label, as gpiodetect shows it: pinctrl-bcm2835 (Raspberry Pi 0 to 3), pinctrl-bcm2711 (4), pinctrl-rp1 (5)")
	}
	if _, ok := t.Pins[relay]; !ok {
		r.add(at+".pins."+relay, "missing: nothing would open", "name the pin that the relay is on")
	}
	lines := append(outputs(), inputs()...)
	by := map[int]string{}
	for _, line := range slices.Sorted(maps.Keys(t.Pins)) {
		key, pin := at+".pins."+line, t.Pins[line]
		r.line(key, line, lines)
		if other, taken := by[pin]; taken {
			r.addf(key, "give each line its own pin", "pin %d is also that of %s", pin, other)
		}
		by[pin] = line
		switch last := t.lastPin(); {
		case last > 0 && (pin < 0 || pin > last):
			r.addf(key, fmt.Sprintf("write the BCM number of a pin of the header, 0 to %d", last), "%d is none of its pins", pin)
		case pin < 0 || pin > lastOffset:
			r.addf(key, "write the line's offset on the chip", "%d is no offset", pin)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(t.Pull)) {
		key := at + ".pull." + line
		r.line(key, line, inputs())
		r.oneOf(key, t.Pull[line], []string{"up", "down", "none"})
		t.wired(r, key, line)
	}
	for i, line := range t.ActiveLow {
		t.wired(r, fmt.Sprintf("%s.active_low[%d]", at, i), line)
	}
}

// lastOffset is above what any chip has.
const lastOffset = 1023

// lastPin is the highest pin of a Raspberry Pi's header: those above belong to its
// card, its radio and its lamps. 0: it is not known which board this is.
func (t *Turnstile) lastPin() int {
	if t.Driver == DriverRPIO || strings.HasPrefix(t.Chip, "pinctrl-bcm") || t.Chip == "pinctrl-rp1" {
		return 27
	}
	return 0
}

// header names what the pins are on, so that two lanes can be compared: both
// drivers reach the same pins of a Raspberry Pi.
func (t *Turnstile) header() string {
	if t.lastPin() > 0 {
		return "the header"
	}
	return t.Chip
}

// wired finds a line that is spoken of and has no pin.
func (t *Turnstile) wired(r *report, key, line string) {
	if _, ok := t.Pins[line]; !ok && slices.Contains(append(outputs(), inputs()...), line) {
		r.addf(key, "add it to pins, or take it out here", "%s has no pin", line)
	}
}

// line checks a line's name.
func (r *report) line(key, name string, known []string) {
	if slices.Contains(known, name) {
		return
	}
	right := "write one of " + quoted(known)
	if best := Nearest(name, known); best != "" {
		right = "did you mean " + best + "?"
	}
	r.addf(key, right, "there is no line %s here", show(name))
}

// sharedPins finds pins that two lanes have.
func (g *Gate) sharedPins(r *report) {
	type place struct {
		header string
		pin    int
	}
	by := map[place]int{}
	for i := range g.Lanes {
		t := &g.Lanes[i].Turnstile
		if !t.gpio() {
			continue
		}
		for _, line := range slices.Sorted(maps.Keys(t.Pins)) {
			p := place{t.header(), t.Pins[line]}
			if j, taken := by[p]; taken && j != i {
				r.addf(fmt.Sprintf("lane[%d].turnstile.pins.%s", i, line), "give each line its own pin", "pin %d is also one of lane[%d]", p.pin, j)
			}
			by[p] = i
		}
	}
}
