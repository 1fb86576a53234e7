package gate_test

import (
	"encoding/hex"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func TestHeldForTenSecondsIsOnePulse(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		text := r.mint(1)
		r.hold(10*time.Second, text)
		r.want("held", r.reasons(), ticket.OK)
		if r.ts.pulsed() != 1 {
			t.Fatalf("%d pulses", r.ts.pulsed())
		}
		r.wait(1600 * time.Millisecond) // longer than rearm
		r.hold(300*time.Millisecond, text)
		r.want("shown again", r.reasons(), ticket.OK, ticket.AlreadyUsed)
		v := r.last()
		if v.FirstGate != "North" || v.FirstSeen.IsZero() || v.Claim != "" || v.Ticket != (ticket.ID{1}).String() {
			t.Fatalf("refusal: %+v", v)
		}
		r.wantEnds(ticket.Admitted)
	})
}

func TestTwoAlternatingAreEachAdmittedOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.hold(10*time.Second, r.mint(1), r.mint(2))
		n := map[ticket.Reason]int{}
		for _, w := range r.reasons() {
			n[w]++
		}
		if n[ticket.OK] != 2 || n[ticket.AlreadyUsed] != 0 || n[ticket.Busy] > 1 || r.ts.pulsed() != 2 {
			t.Fatalf("%v, %d pulses", n, r.ts.pulsed())
		}
	})
}

func TestSecondTicketWaitsForThePassage(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(200 * time.Millisecond)
		r.line(r.mint(2))
		r.want("second", r.reasons(), ticket.OK, ticket.Busy)
		if len(r.wire.asked) != 1 {
			t.Fatal("the second ticket was claimed while the first had not passed")
		}
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		r.want("after the rotation", r.reasons(), ticket.OK, ticket.Busy, ticket.OK)
		r.wait(11500 * time.Millisecond)
		r.wantEnds(ticket.Admitted, ticket.Annulled)
	})
}

func TestDisplacedBusyTicketEndsDark(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		for i := range 3 {
			r.line(r.mint(byte(i + 1)))
			r.wait(100 * time.Millisecond)
		}
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		r.want("the last one shown", r.reasons(), ticket.OK, ticket.Busy, ticket.Busy, ticket.OK)
		if r.last().Ticket != (ticket.ID{3}).String() {
			t.Fatalf("decided %s, want the last one shown", r.last().Ticket)
		}
	})
}

func TestFamilyOfFour(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		for i := range 4 {
			r.line(r.mint(byte(i + 1)))
			r.wait(time.Second)
		}
		r.want("family", r.reasons(), ticket.OK, ticket.OK, ticket.OK, ticket.OK)
		r.wantEnds(ticket.Admitted, ticket.Admitted, ticket.Admitted, ticket.Admitted)
	})
}

func TestNoPassageAnnulsAndFrees(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		text := r.mint(1)
		r.line(text)
		r.wait(10500 * time.Millisecond)
		if _, idles, _ := r.ts.told(); idles == 0 {
			t.Fatal("the relay was not set idle at the passage time-out")
		}
		r.wantEnds()
		r.wait(time.Second)
		r.wantEnds(ticket.Annulled)
		r.line(text)
		r.want("after annul", r.reasons(), ticket.OK, ticket.OK)
		second := r.wire.claims(ticket.Pending)
		if after := second[len(second)-1].After; len(after) != 1 {
			t.Fatalf("the new claim names %v as freed", after)
		}
	})
}

func TestLatePassageIsAnAdmission(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(20 * time.Second)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		r.wantEnds(ticket.Annulled, ticket.Admitted)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		if r.wire.events(ticket.EventTailgate) != 1 {
			t.Fatal("a passage without a claim is no event")
		}
		r.wantEnds(ticket.Annulled, ticket.Admitted)
	})
}

func TestPassageAfterLateWindowIsATailgate(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(42 * time.Second)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		r.wantEnds(ticket.Annulled)
		if r.wire.events(ticket.EventTailgate) != 1 {
			t.Fatal("no tailgate")
		}
	})
}

func TestFiveAnnulmentsMakeTheSensorSuspect(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		for i := range 6 {
			r.line(r.mint(byte(i + 1)))
			r.wait(12 * time.Second)
		}
		a := ticket.Annulled
		r.wantEnds(a, a, a, a, a, ticket.Admitted)
		s, err := r.g.Status(t.Context())
		if err != nil || !s.Lanes[0].Suspect || s.Note() == "" {
			t.Fatalf("status %+v %v", s, err)
		}
		r.line(r.mint(9))
		r.wait(time.Second)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		if s, _ = r.g.Status(t.Context()); s.Lanes[0].Suspect {
			t.Fatal("still suspect after a passage")
		}
	})
}

func TestExitSettlesNoEntry(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(time.Second)
		r.ts.events <- gate.PassageOut
		r.wait(11 * time.Second)
		r.wantEnds(ticket.Annulled)
	})
}

func TestCreditsSettleTheOldestFirst(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0; r.o.Lanes[0].Credits = 2 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(300 * time.Millisecond)
		r.line(r.mint(2))
		r.wait(300 * time.Millisecond)
		r.line(r.mint(3))
		r.want("credits", r.reasons(), ticket.OK, ticket.OK, ticket.Busy)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		admitted := r.wire.claims(ticket.Admitted)
		if len(admitted) != 1 || admitted[0].Unit.Ticket != (ticket.ID{1}) {
			t.Fatalf("settled %+v", admitted)
		}
		r.want("credits", r.reasons(), ticket.OK, ticket.OK, ticket.Busy, ticket.OK)
	})
}

func TestWithoutASensorThePulseIsTheResult(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0; r.o.Lanes[0].Sensor = false }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(400 * time.Millisecond)
		r.wantEnds()
		r.wait(200 * time.Millisecond)
		r.wantEnds(ticket.Admitted)
	})
}

func TestKeep(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0; r.o.Lanes[0].Keep = true }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(12 * time.Second)
		r.wantEnds(ticket.Admitted)
	})
}

func TestNotReadyRefusesBeforeClaiming(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.notSet = true }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.want("not ready", r.reasons(), ticket.NotReady)
		if len(r.wire.asked) != 0 {
			t.Fatal("claimed")
		}
	})
}

func TestOfflineChecks(t *testing.T) {
	expired := func(tk *ticket.Ticket) { tk.Expires = time.Now().Add(-time.Hour) }
	early := func(tk *ticket.Ticket) { tk.NotBefore = time.Now().Add(time.Hour) }
	inBubble(t, nil, func(t *testing.T, r *rig) {
		for i, c := range []struct {
			text string
			want ticket.Reason
		}{
			{"hello", ticket.Invalid}, {"", ticket.Invalid}, {r.mint(1) + " ", ticket.Invalid}, {"\n" + r.mint(1), ticket.Invalid},
			{r.mint(2, expired), ticket.Expired}, {r.mint(3, early), ticket.NotYetValid},
			{r.mint(4, func(tk *ticket.Ticket) { tk.Event = "f" }), ticket.WrongEvent},
			{r.mint(5, func(tk *ticket.Ticket) { tk.Event = "nowhere" }), ticket.Unknown},
			{r.mint(6, func(tk *ticket.Ticket) { tk.Test = true }), ticket.TestTicket},
			{r.mint(7), ticket.OK},
		} {
			r.line(c.text)
			if got := r.last(); got.Reason != c.want || len(r.reasons()) != i+1 {
				t.Fatalf("%q: %+v, want %s", c.text, got, c.want)
			}
		}
		if len(r.wire.asked) != 1 || r.ts.pulsed() != 1 {
			t.Fatal("a bad ticket was claimed")
		}
	})
}

func TestThousandBadOnesThenAGoodOne(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		before := r.mem.Commits()
		for i := range 1000 {
			r.line("junk \x00\x1b[31m " + string(rune('a'+i%26)) + hex.EncodeToString([]byte{byte(i), byte(i >> 8)}))
		}
		if n := r.mem.Commits() - before; n != 0 {
			t.Fatalf("bad codes cost %d commits", n)
		}
		r.line(r.mint(1))
		if r.last().Reason != ticket.OK {
			t.Fatalf("the good one: %+v", r.last())
		}
		r.wait(3 * time.Second)
		s, _ := r.g.Status(t.Context())
		if s.Lanes[0].Shown != 0 {
			t.Fatalf("%d presentations are still kept", s.Lanes[0].Shown)
		}
	})
}

func TestChangingDayByProgrammeWhileOffline(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		tomorrow := func(tk *ticket.Ticket) { tk.Event = "f" }
		r.line(r.mint(1, tomorrow))
		r.wait(23*time.Hour + time.Minute)
		r.line(r.mint(1, tomorrow))
		r.wait(time.Second)
		r.line(r.mint(2))
		r.want("day change", r.reasons(), ticket.WrongEvent, ticket.OK, ticket.WrongEvent)
	})
}

func TestUntrustedClockStaysWithTheLastEventOverARestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.wait(time.Second)
		r.ntp, r.boot, r.wall = false, ticket.BootID{2}, -400*24*time.Hour
		r.crash()
		r.line(r.mint(1))
		v := r.last()
		if v.Reason != ticket.OK || v.Clock != ticket.Untrusted {
			t.Fatalf("%+v", v)
		}
		if c := r.wire.claims(ticket.Pending); c[0].Claimed.Class != ticket.Untrusted {
			t.Fatal("the claim says its clock was trusted")
		}
		r.line(r.mint(2, func(tk *ticket.Ticket) { tk.Event = "f" }))
		if r.last().Reason != ticket.WrongEvent && r.last().Reason != ticket.Busy {
			t.Fatalf("another event: %+v", r.last())
		}
		// The ledger's time corrects the claims of this boot, once.
		r.g.LedgerTime(time.Now().UnixNano(), int64(10*time.Millisecond))
		r.wait(time.Second)
		r.g.LedgerTime(time.Now().UnixNano(), int64(time.Millisecond))
		r.wait(time.Second)
		n := 0
		for _, s := range []ticket.State{ticket.Pending, ticket.Admitted} {
			for _, c := range r.wire.claims(s) {
				if c.Claimed.Class == ticket.Trusted && c.Rev > 0 {
					n++
					if off := time.Until(c.Claimed.Time()) + 2*time.Second; off < -time.Second || off > time.Second {
						t.Fatalf("corrected to %s", c.Claimed.Time())
					}
				}
			}
		}
		if n == 0 {
			t.Fatal("no claim was corrected")
		}
	})
}

func TestFailedCommitOpensNothingAndEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, nil)
		r.mem.FailNext(kv.FailKept)
		r.line(r.mint(1))
		r.want("failed commit", r.reasons(), ticket.Fault)
		if r.ts.pulsed() != 0 {
			t.Fatal("the relay opened without a durable claim")
		}
		if err := <-r.stopped; !errors.Is(err, kv.ErrUnknown) {
			t.Fatalf("run: %v", err)
		}
		r.mem = r.mem.Crash()
		r.start()
		// The write was kept after all: the claim never fired, so it is free again.
		r.line(r.mint(1))
		if r.last().Reason != ticket.OK {
			t.Fatalf("after the restart: %+v", r.last())
		}
		r.stop()
	})
}

func TestEveryPulseHasADurableClaim(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.ts.durable = func() {
			n := 0 // a view of the memory store shows what is committed only
			err := r.mem.View(func(tx kv.Tx) error {
				return tx.Scan("open", nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
			})
			if err != nil || n != 1 {
				t.Errorf("at the pulse %d claims are durable, %v", n, err)
			}
		}
		for i := range 5 {
			r.line(r.mint(byte(i + 1)))
			r.wait(time.Second)
		}
		if r.ts.pulsed() != 5 {
			t.Fatalf("%d pulses", r.ts.pulsed())
		}
	})
}

func TestRestartSettlesOpenClaims(t *testing.T) {
	for name, c := range map[string]struct {
		mark, reboot bool
		want         ticket.State
	}{
		"never fired, same boot": {false, false, ticket.Refused},
		"fired, same boot":       {true, false, ticket.Presumed},
		"rebooted":               {false, true, ticket.Presumed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) { r.wire.link = ticket.Link{Up: true}; r.ts.passage = 0 }, func(t *testing.T, r *rig) {
				r.line(r.mint(1)) // asked, not answered
				if c.mark {
					r.wait(500 * time.Millisecond) // fires at the end of the patience
				}
				if fired := r.ts.pulsed() == 1; fired != c.mark {
					t.Fatalf("fired: %v", fired)
				}
				if c.reboot {
					r.boot, r.marks = ticket.BootID{2}, fakeMarks{}
				}
				r.crash()
				r.wantEnds(c.want)
			})
		})
	}
}
