package gate_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// happen lets the turnstile tell something.
func (r *rig) happen(events ...gate.TurnstileEvent) {
	for _, e := range events {
		r.ts.events <- e
		r.wait(time.Millisecond)
	}
}

// TestStaffButton: it is recorded before the turnstile moves, one press is one
// pulse in every mode, and who goes through is no tailgate.
func TestStaffButton(t *testing.T) {
	for _, mode := range []ticket.GateMode{ticket.ModeNormal, ticket.ModeClosed} {
		inBubble(t, nil, func(t *testing.T, r *rig) {
			if err := r.g.SetMode(t.Context(), mode, "test"); err != nil {
				t.Fatal(err)
			}
			before := 0
			r.ts.durable = func() { before = r.wire.events(ticket.EventStaff) }
			for press := 1; press <= 2; press++ {
				r.happen(gate.StaffPress)
				if r.ts.pulsed() != press || before != press {
					t.Fatalf("%s, press %d: %d pulses, %d records before the last", mode, press, r.ts.pulsed(), before)
				}
				if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalAdmit {
					t.Errorf("%s: shown %v", mode, signals)
				}
				r.wait(time.Second) // the fake lets a person through after each pulse
				if _, _, signals := r.ts.told(); signals[len(signals)-1] == gate.SignalAdmit {
					t.Errorf("%s: green after the passage", mode)
				}
			}
			r.happen(gate.StaffPress, gate.StaffPress)
			r.wait(time.Second)
			if n := r.wire.events(ticket.EventTailgate); n != 0 {
				t.Errorf("%s: %d tailgates", mode, n)
			}
			r.happen(gate.PassageIn)
			if n := r.wire.events(ticket.EventTailgate); n != 1 {
				t.Errorf("%s: %d tailgates by one more than staff let through", mode, n)
			}
		})
	}
}

// TestStaffButtonOfAHeldTurnstile: a relay that is held closes after the person.
func TestStaffButtonOfAHeldTurnstile(t *testing.T) {
	inBubble(t, func(r *rig) { r.o.Lanes[0].Hold = true }, func(t *testing.T, r *rig) {
		r.happen(gate.StaffPress)
		if opens, _, _ := r.ts.told(); opens != 1 || r.ts.pulsed() != 0 {
			t.Fatalf("%d opens, %d pulses", opens, r.ts.pulsed())
		}
		_, was, _ := r.ts.told()
		r.happen(gate.PassageIn)
		if _, idles, _ := r.ts.told(); idles != was+1 {
			t.Errorf("idle %d times", idles-was)
		}
	})
}

// TestStaffButtonWithoutARecord opens nothing (G2).
func TestStaffButtonWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, nil)
		r.mem.FailNext(kv.FailKept)
		r.happen(gate.StaffPress)
		if r.ts.pulsed() != 0 {
			t.Error("a pulse without a record")
		}
		if err := <-r.stopped; !errors.Is(err, kv.ErrUnknown) {
			t.Errorf("run: %v", err)
		}
	})
}

// TestEmergency: both changes are recorded, green is shown, the turnstile is not
// told anything else, and who flees is no tailgate.
func TestEmergency(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		_, was, _ := r.ts.told()
		r.happen(gate.EmergencyOn, gate.PassageIn, gate.PassageIn, gate.StaffPress)
		if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalOpen {
			t.Errorf("shown %v", signals)
		}
		opens, idles, _ := r.ts.told()
		if r.ts.pulsed() != 0 || opens != 0 || idles != was {
			t.Errorf("the gate moved a turnstile that an emergency holds: %d pulses, %d opens, %d idles", r.ts.pulsed(), opens, idles-was)
		}
		r.happen(gate.EmergencyOff, gate.PassageIn)
		if e, n := r.wire.events(ticket.EventEmergency), r.wire.events(ticket.EventTailgate); e != 2 || n != 1 {
			t.Errorf("%d events of the emergency, %d tailgates", e, n)
		}
		if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalIdle {
			t.Errorf("shown after the emergency %v", signals)
		}
	})
}

// TestLostLines: no ticket is claimed while they are lost, the gate is red, and
// when they are back it works without a restart.
func TestLostLines(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.ts.set(false)
		r.happen(gate.LinesLost)
		r.line(r.mint(1))
		r.ts.set(true)
		r.happen(gate.LinesBack)
		r.wait(3 * time.Second) // the red of the refusal
		r.line(r.mint(2))
		r.want("lost and back", r.reasons(), ticket.NotReady, ticket.OK)
		if n := r.wire.events(ticket.EventFault); n != 2 {
			t.Errorf("%d faults recorded, want its begin and its end", n)
		}
		if _, _, signals := r.ts.told(); !slices.Contains(signals, gate.SignalFault) || signals[len(signals)-1] != gate.SignalAdmit {
			t.Errorf("shown %v", signals)
		}
	})
}

// set makes the turnstile ready or not.
func (f *fakeTurnstile) set(ready bool) { f.mu.Lock(); f.notSet = !ready; f.mu.Unlock() }
