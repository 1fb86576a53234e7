package turnstile

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var emergencyInputs = []Line{LineEmergency, LineStaff}

// TestEmergencyHoldsTheRelay: the relay is active for as long as the input is,
// beyond every limit, and the event comes after the relay.
func TestEmergencyHoldsTheRelay(t *testing.T) {
	inBubble(t, Options{MaxOn: 3 * sec, Debounce: 20 * ms}, emergencyInputs, func(t *testing.T, r *rig) {
		r.b.input(LineEmergency, false)
		r.b.input(LineStaff, false)
		r.wait(sec)
		r.wantKinds() // nothing to tell at the start
		r.b.input(LineEmergency, true)
		r.wait(time.Minute)
		r.b.input(LineEmergency, false)
		r.wait(sec)
		r.wantEdges([]edge{{LineRelay, true, sec + 20*ms}, {LineRelay, false, 61*sec + 20*ms}}, LineRelay)
		r.wantKinds(PulseBegin, EmergencyOn, PulseEnd, EmergencyOff)
		if n := r.b.sets[LineRelay]; n < 60 {
			t.Errorf("a driver with a limit of its own heard of %d writes in a minute", n)
		}
	})
}

// TestEmergencyAtTheStart: somebody pressed it while the process was away.
func TestEmergencyAtTheStart(t *testing.T) {
	inBubble(t, Options{}, emergencyInputs, func(t *testing.T, r *rig) {
		r.b.input(LineEmergency, true)
		r.wait(sec)
		r.wantKinds(PulseBegin, EmergencyOn)
		if !r.b.isActive(LineRelay) {
			t.Error("the relay is inactive in an emergency")
		}
	})
}

// TestCommandsInAnEmergency: nothing closes the turnstile, opening it has no
// edge, and what was asked for beyond the emergency's end is kept.
func TestCommandsInAnEmergency(t *testing.T) {
	inBubble(t, Options{MaxOn: 10 * sec, Debounce: -1}, emergencyInputs, func(t *testing.T, r *rig) {
		r.b.input(LineEmergency, false)
		r.mustPulse(sec)
		r.mustPulse(sec) // waits, and is dropped
		r.b.input(LineEmergency, true)
		r.wait(5 * sec)
		o := r.mustPulse(sec)
		if err := r.Idle(); err != nil {
			t.Error(err)
		}
		r.wait(5 * sec)
		if got := r.mustOpen(3 * sec); got != o {
			t.Errorf("opening %v in an emergency that is %v", got, o)
		}
		r.b.input(LineEmergency, false)
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 13 * sec}}, LineRelay)
		r.wantKinds(PulseBegin, PulseDropped, EmergencyOn, EmergencyOff, PulseEnd)
	})
}

// TestEmergencyOverAFault: it is tried again until the turnstile is open.
func TestEmergencyOverAFault(t *testing.T) {
	inBubble(t, Options{Debounce: -1}, emergencyInputs, func(t *testing.T, r *rig) {
		r.b.failing(func(line Line, active bool) error { return errors.New("stuck") })
		r.b.input(LineEmergency, true)
		r.wait(sec)
		if _, err := r.Pulse(sec); err == nil {
			t.Error("a pulse of a relay that cannot move")
		}
		r.b.failing(nil)
		r.wait(relayRetry)
		if !r.b.isActive(LineRelay) {
			t.Error("the relay is inactive in an emergency")
		}
		r.wantKinds(Fault, EmergencyOn, FaultOff, PulseBegin)
	})
}

func TestStaffButton(t *testing.T) {
	inBubble(t, Options{Debounce: 20 * ms}, emergencyInputs, func(t *testing.T, r *rig) {
		for _, pressed := range []bool{true, false, true, false, true} { // held at the start: nobody pressed
			r.b.input(LineStaff, pressed)
			r.wait(sec)
		}
		r.wantKinds(StaffPress, StaffPress)
		if len(r.b.of(LineRelay)) > 0 {
			t.Error("the button moved the relay before it was recorded")
		}
	})
}

// supervised is a bench that can be lost.
type supervised struct {
	*bench
	notify func(error)
}

func (s *supervised) Notify(f func(error)) { s.notify = f }

// TestLostDriver: an opening ends, nothing opens, no line is called faulty, and
// when the lines are back the lamps show what they should.
func TestLostDriver(t *testing.T) {
	var s *supervised
	wrap := func(b *bench) Lines { s = &supervised{bench: b}; return s }
	overLines(t, wrap, Options{MaxOn: 10 * sec}, nil, func(t *testing.T, r *rig) {
		s.notify(nil)
		r.Show(SignalFault)
		r.mustOpen(5 * sec)
		r.wait(sec)
		why := errors.New("killed")
		r.b.failing(func(Line, bool) error { return ErrLost })
		s.notify(why)
		s.notify(why)
		r.wait(sec)
		if r.Ready() || r.Lost() == nil {
			t.Error("ready without lines")
		}
		if _, err := r.Pulse(sec); !errors.Is(err, ErrLost) {
			t.Errorf("pulse without lines: %v", err)
		}
		r.wait(5 * sec)

		r.b.failing(nil)
		r.b.release() // what opens the lines anew opens them inactive
		s.notify(nil)
		r.wait(relayRetry)
		if !r.b.isActive(LineRed) || r.b.isActive(LineRelay) || !r.Ready() {
			t.Errorf("after it came back: %v", r.b.active)
		}
		got := kinds(r.drain())
		if !slices.Equal(got, []Kind{PulseBegin, DriverLost, DriverBack, PulseEnd}) {
			t.Errorf("events %v", got)
		}
	})
}
