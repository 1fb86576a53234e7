package turnstile

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// inputs turns the changes that a driver sees into events: each input counts
// when it has kept its state for the debounce time.
type inputs struct {
	events   *events
	debounce time.Duration
	box      *mailbox[Change]
	held     func(on bool, at time.Time) // takes the emergency input, at once
	ready    atomic.Bool
	alarm    atomic.Bool

	state [lineCount]input
}

// input is one line's debouncing. A state counts from the time of its edge, so
// that a passage is seen even where its edges are read late and together.
type input struct {
	known   bool
	active  bool // what counts
	pending bool // the line is in the other state, since
	since   time.Time
}

func newInputs(ev *events, wired []Line, debounce time.Duration, held func(on bool, at time.Time)) *inputs {
	in := &inputs{events: ev, debounce: max(debounce, 0), box: newMailbox[Change](), held: held}
	in.ready.Store(!slices.Contains(wired, LineReady))
	return in
}

func (in *inputs) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-in.box.wake:
		case <-timer.C:
		}
		for _, c := range in.box.take() {
			in.change(c)
		}
		if next := in.settle(time.Now()); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

func (in *inputs) change(c Change) {
	if !c.Line.Input() {
		return
	}
	s := &in.state[c.Line]
	if !s.known {
		s.known, s.active = true, c.Active
		if c.Line != LineEmergency || c.Active {
			in.announce(c.Line, c.Active, c.At)
		}
		return
	}
	in.count(c.Line, c.At)
	switch {
	case c.Active == s.active:
		s.pending = false
	case !s.pending:
		s.pending, s.since = true, c.At
	}
	in.count(c.Line, c.At)
}

// count lets a pending state count if it has lasted long enough by now.
func (in *inputs) count(line Line, now time.Time) {
	s := &in.state[line]
	if !s.pending || now.Sub(s.since) < in.debounce {
		return
	}
	s.pending, s.active = false, !s.active
	in.announce(line, s.active, s.since)
	if s.active {
		in.pass(line, s.since)
	}
}

// settle counts what is due and gives the time when something is due next.
func (in *inputs) settle(now time.Time) (next time.Time) {
	for line := LinePassageIn; line < lineCount; line++ {
		in.count(line, now)
		if s := in.state[line]; s.pending {
			if due := s.since.Add(in.debounce); next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	return next
}

// announce tells the state of the inputs that are states: at the start and on
// each change. A passage is an edge, so it has no state to tell at the start.
func (in *inputs) announce(line Line, active bool, at time.Time) {
	kind := func(on, off Kind) Event {
		if active {
			return Event{Kind: on, At: at}
		}
		return Event{Kind: off, At: at}
	}
	switch line {
	case LineReady:
		in.ready.Store(active)
		in.events.emit(kind(ReadyOn, ReadyOff))
	case LineAlarm:
		in.alarm.Store(active)
		in.events.emit(kind(AlarmOn, AlarmOff))
	case LineEmergency:
		in.held(active, at)
	}
}

func (in *inputs) pass(line Line, at time.Time) {
	switch line {
	case LinePassageIn:
		in.events.emit(Event{Kind: PassageIn, At: at})
	case LinePassageOut:
		in.events.emit(Event{Kind: PassageOut, At: at})
	case LineStaff:
		in.events.emit(Event{Kind: StaffPress, At: at})
	}
}
