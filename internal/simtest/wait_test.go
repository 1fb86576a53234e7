package simtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

var near = wiretest.Link{Delay: time.Millisecond, Jitter: time.Millisecond}

// reasons gives what a gate said about a ticket.
func (g *Gate) reasons(tk Ticket) (out []ticket.Reason) {
	for _, v := range g.Said(tk) {
		out = append(out, v.Reason)
	}
	return out
}

func (w *World) want(g *Gate, tk Ticket, want ...ticket.Reason) {
	w.t.Helper()
	if got := g.reasons(tk); !slices.Equal(got, want) {
		w.Errorf("%s said %v about %s, want %v", g.id, got, tk.Unit.Ticket, want)
	}
}

// withAndWithout runs a scenario with the ledger there, and with the ledger gone
// and the broker there.
func withAndWithout(t *testing.T, s setup, f func(w *World)) {
	for name, there := range map[string]bool{"with the ledger": true, "with peers only": false} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, s, func(w *World) {
				if !there {
					w.ledger.Cut()
					w.Wait(10 * time.Second)
				}
				f(w)
				w.Heal()
				w.check()
				w.checkShown()
			})
		})
	}
}

func TestTwoHundredMillisecondsApart(t *testing.T) {
	withAndWithout(t, setup{gates: 2, link: near}, func(w *World) {
		tk, a, b := w.Mint(), w.gates[0], w.gates[1]
		a.Passage(0, 1500*time.Millisecond)
		a.Look(0, tk)
		w.Wait(200 * time.Millisecond)
		b.Look(0, tk)
		w.Wait(time.Second)
		w.want(a, tk, ticket.OK)
		w.want(b, tk, ticket.InProgress)
		w.Wait(2 * time.Second)
		w.want(b, tk, ticket.InProgress, ticket.AlreadyUsed)
		claim, _, err := a.proc.store.Find(a.Claim(tk))
		if v := b.Last(tk); err != nil || v.FirstGate != a.place || !v.FirstSeen.Equal(claim.Claimed.Time()) {
			w.Errorf("%s cites %s at %s, want %s at %s", b.id, v.FirstGate, v.FirstSeen, a.place, claim.Claimed.Time())
		}
	})
}

// An ask whose answer was lost is echoed: the same claim, the same answer, and
// nothing changes.
func TestLostAnswerIsEchoed(t *testing.T) {
	simulate(t, 1, setup{gates: 1, link: near}, func(w *World) {
		g, tk := w.gates[0], w.Mint()
		lose := true
		w.ledger.set(func(l *Ledger) { l.hold = func(ticket.Source) bool { was := lose; lose = false; return was } })
		g.Look(0, tk)
		w.Wait(time.Second)
		w.want(g, tk, ticket.OK)
		v, stats := g.Last(tk), g.proc.wire.Stats()
		if !v.Online || v.Took < 130*time.Millisecond || v.Took > 160*time.Millisecond || stats.Asked != 1 || stats.Repeated != 1 {
			w.Errorf("%+v, %+v: want the answer to the repeat, at a third of the patience", v, stats)
		}
		w.Wait(time.Minute)
		id := g.Claim(tk)
		recs, _, _, _, err := g.proc.store.Read(g.proc.store.Stream(), id.Pos-1, 1, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		before := ledgertest.Dump(t, w.ledger.mem)
		for range 3 {
			r, err := w.ledger.Ledger.Ask(context.Background(), g.id, ledger.Ask{Claim: id, Unit: tk.Unit, Records: recs})
			if err != nil || r.Claim != id || r.Answer != ticket.AnswerFirst {
				w.Errorf("asked again: %+v, %v", r, err)
			}
		}
		if d := ledgertest.Diff(before, ledgertest.Dump(t, w.ledger.mem)); len(d) > 0 {
			w.Errorf("a repeated ask changed %v", d)
		}
		w.Heal()
		w.check()
	})
}

// No rotation within the time: annulled at the gate, the ledger and the peers; the
// ticket then works at another gate.
func TestNoRotationFreesTheTicket(t *testing.T) {
	withAndWithout(t, setup{gates: 3, link: near}, func(w *World) {
		tk, a, b := w.Mint(), w.gates[0], w.gates[1]
		a.Passage(0, -1)
		a.Look(0, tk)
		w.Wait(11500 * time.Millisecond)
		id := a.Claim(tk)
		for _, g := range w.gates {
			if k, ok := g.View(tk.Unit).Find(id); !ok || k.Claim.State != ticket.Annulled {
				w.Errorf("at %s the claim is %s", g.id, k.Claim.State)
			}
		}
		b.Look(0, tk)
		w.Wait(2 * time.Second)
		w.want(b, tk, ticket.OK)
	})
}

// Two gates that wait do not both open on an annul.
func TestTwoWaitingGatesDoNotBothOpen(t *testing.T) {
	withAndWithout(t, setup{gates: 4, link: near}, func(w *World) {
		for range 5 {
			tk := w.Mint()
			w.gates[0].Passage(0, -1)
			w.gates[0].Look(0, tk)
			w.Wait(time.Second)
			for _, g := range w.gates[1:] {
				g.Hold(0, tk, 14*time.Second)
			}
			w.Wait(20 * time.Second)
			opened := 0
			for _, g := range w.gates[1:] {
				said := g.reasons(tk)
				switch last := said[len(said)-1]; {
				case said[0] != ticket.InProgress:
					w.Errorf("%s did not wait: %v", g.id, said)
				case last == ticket.OK:
					opened++
				case last != ticket.AlreadyUsed:
					w.Errorf("%s: %v", g.id, said)
				}
			}
			if opened != 1 {
				w.Errorf("%d gates opened on an annul", opened)
			}
			w.gates[0].Passage(0, 200*time.Millisecond) // or its sensor becomes suspect
			w.gates[0].Look(0, w.Mint())
			w.Wait(time.Second)
		}
		if w.reached()[pathHerd] == 0 {
			w.Errorf("there was no herd")
		}
	})
}

// A rotation that comes late is kept as an admission, and is a conflict where the
// ticket was used meanwhile.
func TestLateRotation(t *testing.T) {
	withAndWithout(t, setup{gates: 2, link: near}, func(w *World) {
		a, b := w.gates[0], w.gates[1]
		kept, used := w.Mint(), w.Mint()
		a.Passage(0, 20*time.Second)
		a.Look(0, kept)
		w.Wait(30 * time.Second)
		if k, _ := b.View(kept.Unit).Find(a.Claim(kept)); k.Claim.State != ticket.Admitted {
			w.Errorf("the late passage is %s", k.Claim.State)
		}
		a.Look(0, used)
		w.Wait(13 * time.Second)
		b.Look(0, used)
		w.Wait(20 * time.Second)
		w.want(b, used, ticket.OK)
		w.Heal()
		all := w.ledger.AllConflicts()
		if len(all) != 1 || all[0].Ticket != used.Unit.Ticket.String() || !all[0].Certain || all[0].First.Gate != a.place {
			w.Errorf("conflicts: %+v", all)
		}
		a.Passage(0, 200*time.Millisecond)
	})
}
