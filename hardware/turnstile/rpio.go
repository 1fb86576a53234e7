package turnstile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pollEvery is how often the inputs of rpio are read. Its edge detection locks a
// Raspberry Pi up (go-rpio issues 35, 46 and 82), a passage lasts 100 ms and more.
const pollEvery = 5 * time.Millisecond

// readBackTries bounds how often a level is read until it is what was written: the
// pad follows the register within some bus cycles, a long wire a little later.
const readBackTries = 100

// bank is a row of pins as their registers show them: no call can fail, and a
// level that is written counts for a pin that is an input as soon as it becomes an
// output.
type bank interface {
	write(pin int, high bool)
	read(pin int) (high bool)
	output(pin int)
	input(pin int)
	pull(pin int, p Pull)
}

// registers is the driver rpio: lines on the registers of a board. They keep their
// levels when the process ends, so that nothing but a further Open makes a relay
// idle that a killed process left active.
type registers struct {
	bank bank
	w    Wiring

	mu     sync.Mutex
	closed bool
}

// newRegisters makes every output idle. The level comes before the direction: the
// other way round, the pin would show for a moment what it was left at.
func newRegisters(b bank, w Wiring) (*registers, error) {
	r := &registers{bank: b, w: w}
	for _, line := range w.lines() {
		if !line.Output() {
			continue
		}
		pin := w.Pins[line]
		b.write(pin, w.activeLow(line))
		b.output(pin)
		if err := r.readBack(line, w.activeLow(line)); err != nil {
			return nil, err
		}
	}
	for _, line := range w.inputs() {
		if p, ok := w.Pull[line]; ok {
			b.pull(w.Pins[line], p)
		}
		b.input(w.Pins[line])
	}
	return r, nil
}

// Set implements Lines.
func (r *registers) Set(line Line, active bool) error {
	if !line.Output() {
		return fmt.Errorf("%v is no output", line)
	}
	pin, wired := r.w.Pins[line]
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return ErrClosed
	case !wired:
		return nil
	}
	high := active != r.w.activeLow(line)
	r.bank.write(pin, high)
	return r.readBack(line, high)
}

func (r *registers) readBack(line Line, high bool) error {
	for range readBackTries {
		if r.bank.read(r.w.Pins[line]) == high {
			return nil
		}
	}
	level := map[bool]string{true: "low", false: "high"}[high]
	return fmt.Errorf("pin %d (%v) stays %s: look for a short circuit, or for something else that drives it", r.w.Pins[line], line, level)
}

// Inputs implements Lines.
func (r *registers) Inputs() []Line { return r.w.inputs() }

// Watch implements Lines. The turnstile debounces what it tells.
func (r *registers) Watch(ctx context.Context, changed func(Change)) error {
	inputs := r.Inputs()
	if len(inputs) == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var was [lineCount]bool
	for first := true; ; first = false {
		for _, line := range inputs {
			active := r.bank.read(r.w.Pins[line]) != r.w.activeLow(line)
			if first || active != was[line] {
				was[line] = active
				changed(Change{Line: line, Active: active, At: time.Now()})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Close implements Lines. The pins stay outputs, at their idle level: as an input
// a pin would have the level of its pull, which may be the relay's active one.
func (r *registers) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, line := range r.w.lines() {
		if !line.Output() {
			continue
		}
		r.bank.write(r.w.Pins[line], r.w.activeLow(line))
		errs = append(errs, r.readBack(line, r.w.activeLow(line)))
	}
	return errors.Join(errs...)
}
