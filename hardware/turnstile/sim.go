package turnstile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Passage is what people do at a simulated turnstile.
type Passage string

// The passages. Auto, never and twice last: they say what follows when the
// relay becomes active. Now and exit happen once, at once, and change nothing
// of what lasts.
const (
	PassageAuto  Passage = "auto"  // one person enters, SimOptions.Delay after the relay became active
	PassageNever Passage = "never" // nobody enters
	PassageTwice Passage = "twice" // two people enter, one after the other
	PassageNow   Passage = "now"   // one person enters, relay or not
	PassageExit  Passage = "exit"  // one person leaves
)

// How a simulated passage goes.
const (
	DefaultPassageDelay = 200 * time.Millisecond
	passageWidth        = 100 * time.Millisecond // the contact is closed for so long, and open for so long before the next
)

// ErrClosed is returned by a driver that was closed.
var ErrClosed = errors.New("turnstile driver closed")

// SimOptions of a simulated turnstile.
type SimOptions struct {
	// Path is the file that gets one line for each change of each output:
	//
	//	{"mono_ns":81234567890,"line":"relay","active":true}
	//
	// mono_ns is CLOCK_MONOTONIC. Where the file shows a line active at the
	// end, left by a process that was killed, active=false is written first.
	// The file is created if absent, and locked: it has one turnstile at a
	// time. Empty: Trace.
	Path string

	// Trace gets the lines instead of a file, one Write each; nil: nobody does.
	Trace io.Writer

	// ActiveLow names the lines that are active at low level.
	ActiveLow []Line

	// Inputs names the inputs that are wired. Ready is active at first, the
	// others are not.
	Inputs []Line

	// Passage is auto (the default), never or twice.
	Passage Passage

	// Delay is from the relay's activation to the passage; default 200 ms.
	Delay time.Duration
}

// Sim is a simulated turnstile. Every line has a level behind it, high or low,
// so that polarity is simulated too.
type Sim struct {
	inputs  []Line
	delay   time.Duration
	changes *mailbox[Change]

	mu        sync.Mutex
	trace     *trace
	closed    bool
	passage   Passage
	activeLow [lineCount]bool
	high      [lineCount]bool    // the level
	broken    [lineCount]error   // what Set answers
	contacts  [lineCount]contact // of passages
}

// contact is a passage contact with those who are to go through.
type contact struct {
	waiting []time.Time // when, at the earliest, in the order of their coming
	turning bool        // somebody goes through, or is waited for
}

// NewSim opens a simulated turnstile with every output inactive.
func NewSim(o SimOptions) (*Sim, error) {
	s := &Sim{inputs: slices.Clone(o.Inputs), delay: o.Delay, changes: newMailbox[Change](), passage: PassageAuto}
	if s.delay == 0 {
		s.delay = DefaultPassageDelay
	}
	if o.Passage != "" {
		if !o.Passage.lasts() {
			return nil, fmt.Errorf("open simulated turnstile: passage %q is none of auto, never, twice", o.Passage)
		}
		s.passage = o.Passage
	}
	for _, line := range s.inputs {
		if !line.Input() {
			return nil, fmt.Errorf("open simulated turnstile: %v is no input", line)
		}
	}
	for _, line := range o.ActiveLow {
		if line >= lineCount {
			return nil, fmt.Errorf("open simulated turnstile: there is no %v", line)
		}
		s.activeLow[line], s.high[line] = true, true
	}
	s.put(LineReady, true)
	var err error
	if s.trace, err = openTrace(o); err != nil {
		return nil, fmt.Errorf("open simulated turnstile: %w", err)
	}
	for _, line := range s.inputs {
		s.changes.put(Change{Line: line, Active: s.active(line), At: time.Now()})
	}
	return s, nil
}

func (p Passage) lasts() bool { return p == PassageAuto || p == PassageNever || p == PassageTwice }

func (s *Sim) active(line Line) bool { return s.high[line] != s.activeLow[line] }

func (s *Sim) put(line Line, active bool) { s.high[line] = active != s.activeLow[line] }

// High gives a line's level, whatever its polarity.
func (s *Sim) High(line Line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.high[line]
}

// Active tells whether a line is active.
func (s *Sim) Active(line Line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active(line)
}

// Set implements Lines.
func (s *Sim) Set(line Line, active bool) error {
	if !line.Output() {
		return fmt.Errorf("%v is no output", line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.broken[line] != nil {
		return s.broken[line]
	}
	return s.drive(line, active)
}

// drive changes an output's level and writes that down.
func (s *Sim) drive(line Line, active bool) error {
	if s.active(line) == active {
		return nil
	}
	s.put(line, active)
	if line == LineRelay && active {
		s.people()
	}
	return s.trace.write(line, active)
}

// people are those who go through when the relay becomes active.
func (s *Sim) people() {
	switch s.passage {
	case PassageAuto:
		s.pass(LinePassageIn, s.delay)
	case PassageTwice:
		s.pass(LinePassageIn, s.delay)
		s.pass(LinePassageIn, s.delay)
	}
}

// pass closes a passage contact after a delay, or as soon as it can close again.
func (s *Sim) pass(line Line, delay time.Duration) {
	if !slices.Contains(s.inputs, line) {
		return
	}
	c := &s.contacts[line]
	c.waiting = append(c.waiting, time.Now().Add(delay))
	if !c.turning {
		c.turning = true
		s.turn(line)
	}
}

// turn lets the next person through. Each step follows the one before it by a
// timer of its own: on a machine that stands still for a moment, the contact
// still stays closed, and open, for as long as a person needs.
func (s *Sim) turn(line Line) {
	c := &s.contacts[line]
	if len(c.waiting) == 0 {
		c.turning = false
		return
	}
	begin := c.waiting[0]
	c.waiting = c.waiting[1:]
	open := func() {
		s.input(line, false)
		s.after(passageWidth, func() { s.turn(line) })
	}
	closed := func() {
		s.input(line, true)
		s.after(passageWidth, open)
	}
	if d := time.Until(begin); d > 0 {
		s.after(d, closed)
	} else {
		closed()
	}
}

// after calls f later, with the lock held.
func (s *Sim) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	})
}

func (s *Sim) input(line Line, active bool) {
	if s.closed || s.active(line) == active {
		return
	}
	s.put(line, active)
	s.changes.put(Change{Line: line, Active: active, At: time.Now()})
}

// SetPassage changes what people do: from the next activation of the relay on,
// or at once for PassageNow and PassageExit. It returns an error when the
// contact that this needs is not wired.
func (s *Sim) SetPassage(p Passage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := LinePassageIn
	switch {
	case p.lasts():
		s.passage = p
		return nil
	case p == PassageExit:
		line = LinePassageOut
	case p != PassageNow:
		return fmt.Errorf("set passage: %q is none of auto, never, twice, now, exit", p)
	}
	if !slices.Contains(s.inputs, line) {
		return fmt.Errorf("set passage %s: %v is not wired", p, line)
	}
	s.pass(line, 0)
	return nil
}

// SetInput makes an input active or inactive. It returns an error when the
// input is not wired.
func (s *Sim) SetInput(line Line, active bool) error {
	if !slices.Contains(s.inputs, line) {
		return fmt.Errorf("set input: %v is not wired", line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.input(line, active)
	return nil
}

// Break makes Set answer err for an output, and leave its level, until it is
// called with nil.
func (s *Sim) Break(line Line, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[line] = err
}

// Inputs implements Lines.
func (s *Sim) Inputs() []Line { return slices.Clone(s.inputs) }

// Watch implements Lines.
func (s *Sim) Watch(ctx context.Context, changed func(Change)) error {
	for {
		for _, c := range s.changes.take() {
			changed(c)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changes.wake:
		}
	}
}

// Close implements Lines. It may be called more than once.
func (s *Sim) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	var errs []error
	for line := LineRelay; line.Output(); line++ {
		errs = append(errs, s.drive(line, false))
	}
	s.closed = true
	return errors.Join(append(errs, s.trace.close())...)
}
