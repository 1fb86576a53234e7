package gate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/ticket"
)

// Several readers of a lane at once: the camera holds a ticket in view while a
// scanner reads it, and another scanner, before, in and after the decision. It is
// one presentation: one claim, one pulse, one verdict; shown anew it is used.
func TestOneTicketAtSeveralReadersIsOnePresentation(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		text := r.mint(1)
		for range 3 { // in one instant, before the loop has seen any
			r.g.Look(0, gate.Look{Text: text, At: time.Now()})
			r.g.Look(0, gate.Look{Text: text, At: time.Now(), Line: true})
		}
		synctest.Wait()
		for range 20 { // never unread for rearm by all of them together
			r.hold(300*time.Millisecond, text)
			r.line(text)
			r.wait(1300 * time.Millisecond)
			r.line(text)
			r.wait(200 * time.Millisecond)
		}
		r.want("at camera and scanners", r.reasons(), ticket.OK)
		if r.ts.pulsed() != 1 || len(r.wire.asked) != 1 {
			t.Fatalf("%d pulses, %d claims", r.ts.pulsed(), len(r.wire.asked))
		}
		r.wait(1600 * time.Millisecond) // longer than rearm
		r.hold(300*time.Millisecond, text)
		r.line(text)
		r.want("shown anew", r.reasons(), ticket.OK, ticket.AlreadyUsed)
		r.wantEnds(ticket.Admitted)
	})
}

// A look that a scanner cut short is another thing than the ticket that the camera
// has in view: it is refused by itself and costs the ticket nothing.
func TestCutLookCostsTheTicketInViewNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		text := r.mint(1)
		r.g.Look(0, gate.Look{Text: text, At: time.Now(), Line: true, Cut: true}) // whole, but who knows
		synctest.Wait()
		r.want("cut", r.reasons(), ticket.Invalid)
		r.hold(300*time.Millisecond, text)
		r.want("then seen whole", r.reasons(), ticket.Invalid, ticket.OK)
	})
}

// Two lanes are two presentations: the second to read the ticket refuses it.
func TestOneTicketAtTwoLanesIsTwoPresentations(t *testing.T) {
	second := &fakeTurnstile{events: make(chan gate.TurnstileEvent, 16), passage: 200 * time.Millisecond}
	inBubble(t, func(r *rig) {
		second.events = make(chan gate.TurnstileEvent, 16) // of the bubble
		r.o.Lanes = append(r.o.Lanes, gate.LaneOptions{Name: "2", Sensor: true, Turnstile: second})
	}, func(t *testing.T, r *rig) {
		text := r.mint(1)
		r.line(text)
		r.wait(time.Second)
		r.g.Look(1, gate.Look{Text: text, At: time.Now(), Line: true})
		r.wait(time.Second)
		r.want("at two lanes", r.reasons(), ticket.OK, ticket.AlreadyUsed)
		if r.ts.pulsed() != 1 || second.pulsed() != 0 {
			t.Fatalf("%d and %d pulses", r.ts.pulsed(), second.pulsed())
		}
	})
}

// What the note says first: what keeps the gate from deciding, then what it lost.
func TestNoteNamesALostDevice(t *testing.T) {
	s := gate.Status{
		Programme: 1, Clock: ticket.Untrusted, Lanes: []gate.LaneStatus{{Name: "1", Ready: true}},
		Devices: []gate.DeviceStatus{{Name: "lane 1: camera", State: gate.DeviceOK}, {Name: "lane 1: reader 1 (serial)", State: "open /dev/ttyACM0: unplugged"}},
	}
	if got := s.Note(); got != "lane 1: reader 1 (serial): open /dev/ttyACM0: unplugged" {
		t.Errorf("note %q", got)
	}
	s.Devices[1].State = gate.DeviceOK
	if got := s.Note(); got != "clock untrusted" {
		t.Errorf("note %q", got)
	}
	s.Devices[1].State, s.Lanes[0].Ready = "unplugged", false
	if got := s.Note(); got != "lane 1: turnstile is not ready" {
		t.Errorf("note %q", got)
	}
}
