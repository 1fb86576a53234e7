package gate_test

import (
	"testing"
	"time"

	"admitone/internal/ticket"
)

func TestModes(t *testing.T) {
	test := func(tk *ticket.Ticket) { tk.Test = true }
	inBubble(t, nil, func(t *testing.T, r *rig) {
		set := func(m ticket.GateMode) {
			t.Helper()
			if err := r.g.SetMode(t.Context(), m, "test"); err != nil {
				t.Fatal(err)
			}
			r.wait(2 * time.Second)
		}
		set(ticket.ModeClosed)
		r.line(r.mint(1))
		r.want("closed", r.reasons(), ticket.Closed)
		r.crash()
		r.line(r.mint(1))
		r.want("closed after a restart", r.reasons(), ticket.Closed, ticket.Closed)

		set(ticket.ModeFree)
		r.wait(time.Minute)
		if opens, _, _ := r.ts.told(); opens < 12 {
			t.Fatalf("the relay was renewed %d times in a minute of free", opens)
		}
		r.line(r.mint(2))
		r.line(r.mint(3, test))
		r.line("junk")
		if v := r.last(); v.Reason != ticket.OK || v.Ticket != (ticket.ID{2}).String() || v.GateMode != ticket.ModeFree {
			t.Fatalf("free: %+v", v)
		}
		r.wait(2 * time.Second)
		r.line(r.mint(2))
		if v := r.last(); v.Reason != ticket.OK || v.FirstGate != "North" {
			t.Fatalf("free, again: %+v", v)
		}
		spent := r.wire.claims(ticket.Admitted)
		if len(spent) != 1 || spent[0].Reason != ticket.Free || spent[0].Rev != 0 {
			t.Fatalf("spent %+v", spent)
		}

		set(ticket.ModeTest)
		if _, idles, _ := r.ts.told(); idles == 0 {
			t.Fatal("leaving free left the relay on")
		}
		pulses := r.ts.pulsed()
		r.line(r.mint(4))
		if v := r.last(); v.Reason != ticket.OK || r.ts.pulsed() != pulses {
			t.Fatalf("test, a sold ticket: %+v, %d pulses", v, r.ts.pulsed()-pulses)
		}
		r.line(r.mint(5, test))
		if v := r.last(); v.Reason != ticket.OK || r.ts.pulsed() != pulses+1 {
			t.Fatalf("test ticket: %+v", v)
		}
		r.wait(31 * time.Minute)
		if s, _ := r.g.Status(t.Context()); s.Mode != ticket.ModeNormal {
			t.Fatalf("mode %s after 30 minutes of test", s.Mode)
		}
		r.line(r.mint(4))
		if r.last().Reason != ticket.OK {
			t.Fatalf("the test spent a sold ticket: %+v", r.last())
		}
	})
}

func TestTestModeEndsAtOpening(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.wait(23*time.Hour - 10*time.Minute)
		if err := r.g.SetMode(t.Context(), ticket.ModeTest, "test"); err != nil {
			t.Fatal(err)
		}
		r.wait(9 * time.Minute)
		if s, _ := r.g.Status(t.Context()); s.Mode != ticket.ModeTest {
			t.Fatalf("mode %s before the opening", s.Mode)
		}
		r.wait(2 * time.Minute)
		if s, _ := r.g.Status(t.Context()); s.Mode != ticket.ModeNormal {
			t.Fatalf("mode %s after the opening", s.Mode)
		}
	})
}
