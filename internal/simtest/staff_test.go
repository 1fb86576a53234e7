package simtest

import (
	"context"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// A revocation reaches gates over a network that loses a fifth of everything, and
// those that were away when they are back.
func TestRevocationOverABadNetwork(t *testing.T) {
	simulate(t, 1, setup{gates: 3, link: wiretest.Link{Delay: 20 * time.Millisecond, Drop: 0.1}}, func(w *World) {
		away := w.gates[2]
		away.Cut()
		w.Wait(10 * time.Second)
		var revoked []Ticket
		for range 20 {
			tk := w.Mint()
			revoked = append(revoked, tk)
			if err := w.ledger.Revoke(context.Background(), tk.Unit.Format, tk.Unit.Ticket, true, "office"); err != nil {
				t.Fatal(err)
			}
			w.Wait(2 * time.Second)
		}
		w.Wait(10 * time.Second) // what was lost on the way shows by the head
		for _, tk := range revoked {
			for _, g := range w.gates[:2] {
				g.Look(0, tk)
				w.Wait(2 * time.Second)
				w.want(g, tk, ticket.Revoked)
			}
		}
		w.Heal()
		w.check()
		for _, tk := range revoked {
			away.Look(0, tk)
			w.Wait(2 * time.Second)
			w.want(away, tk, ticket.Revoked)
		}
	})
}

// A revocation reaches connected gates within 2 s.
func TestRevocationWithinTwoSeconds(t *testing.T) {
	simulate(t, 1, setup{gates: 3, link: wiretest.Link{Delay: 100 * time.Millisecond}}, func(w *World) {
		tk := w.Mint()
		if err := w.ledger.Revoke(context.Background(), tk.Unit.Format, tk.Unit.Ticket, true, "office"); err != nil {
			t.Fatal(err)
		}
		w.Wait(2 * time.Second)
		for _, g := range w.gates {
			if !g.View(tk.Unit).Revoked {
				w.Errorf("%s does not know of it", g.id)
			}
			g.Look(0, tk)
			w.Wait(time.Second)
			w.want(g, tk, ticket.Revoked)
		}
	})
}

// Gates that are cut off change the day by the programme they have.
func TestChangingDayWhileOffline(t *testing.T) {
	simulate(t, 1, setup{gates: 1, link: near, day: 2 * time.Hour}, func(w *World) {
		w.cutAll()
		w.Wait(10 * time.Second)
		g := w.gates[0]
		first, early, next, stale := w.Mint(), w.MintFor(tomorrow), w.MintFor(tomorrow), w.Mint()
		g.Look(0, first)
		w.Wait(3 * time.Second)
		g.Look(0, early)
		w.Wait(61 * time.Minute)
		g.Look(0, next)
		w.Wait(3 * time.Second)
		g.Look(0, stale)
		w.Wait(3 * time.Second)
		w.want(g, first, ticket.OK)
		w.want(g, early, ticket.WrongEvent)
		w.want(g, next, ticket.OK)
		w.want(g, stale, ticket.WrongEvent)
		w.Heal()
		w.check()
	})
}

// A gate wakes days in the past, with nobody there to tell it the time. Its claims
// are corrected once when the ledger is back, and the order of conflicts follows
// the corrected times.
func TestClockWrongByDaysWhileOffline(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near}, func(w *World) {
		a, b := w.gates[0], w.gates[1]
		w.cutAll()
		w.Wait(10 * time.Second)
		b.PowerCut()
		b.Clock(-3*24*time.Hour, false)
		b.Up()
		early, late := w.Mint(), w.Mint()
		b.Look(0, early)
		a.Look(0, late)
		w.Wait(10 * time.Second)
		a.Look(0, early)
		b.Look(0, late)
		w.Wait(10 * time.Second)
		for _, tk := range []Ticket{early, late} {
			w.want(a, tk, ticket.OK)
			w.want(b, tk, ticket.OK)
		}
		if v := b.Last(early); v.Clock != ticket.Untrusted {
			w.Errorf("the clock is %s", v.Clock)
		}
		w.healAll() // but the clock: the ledger tells the time
		w.Wait(levelWithin)
		w.checkOrder(early, b, a)
		w.checkOrder(late, a, b)
		c, _, err := b.proc.store.Find(b.Claim(early))
		if off := c.Claimed.Time().Sub(w.notes.fired[c.ID]).Abs(); err != nil || c.Claimed.Class != ticket.Trusted || off > 100*time.Millisecond {
			w.Errorf("corrected to %s (%s), %s off: %v", c.Claimed.Time(), c.Claimed.Class, off, err)
		}
		w.Heal()
		w.check()
		w.permute(10)
		w.checkShown()
	})
}

// checkOrder: a ticket has a conflict, of one gate first and the other after it.
func (w *World) checkOrder(tk Ticket, before, after *Gate) {
	w.t.Helper()
	c, err := w.ledger.Conflict(context.Background(), ticket.ConflictID(tk.Unit))
	if err != nil || c.First.Gate != before.place || len(c.Others) != 1 || c.Others[0].Gate != after.place || !c.Ordered {
		w.Errorf("conflict %+v (%v), want %s before %s", c, err, before.place, after.place)
	}
}

// A supervisor releases the overdue claim of a gate that died. Where that gate
// comes back with a late result, the result counts.
func TestReleaseOfAnOverdueClaim(t *testing.T) {
	for name, reboot := range map[string]bool{"it never fired": false, "nobody knows": true} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, setup{gates: 2, link: wiretest.Link{Delay: 50 * time.Millisecond}}, func(w *World) {
				a, b, tk := w.gates[0], w.gates[1], w.Mint()
				a.Look(0, tk)
				w.Wait(150 * time.Millisecond) // published, not answered
				if a.Kill(); reboot {
					a.PowerCut()
				}
				b.Look(0, tk)
				w.Wait(30 * time.Second)
				b.Look(0, tk)
				w.Wait(3 * time.Second)
				w.want(b, tk, ticket.InProgress, ticket.AlreadyUsed, ticket.AlreadyUsed)
				claims := w.ledger.Claims(tk.Unit)
				if len(claims) != 1 || len(w.ledger.AllAlarms(ledger.AlarmOverdue)) != 1 {
					t.Fatalf("claims %+v, alarms %+v", claims, w.ledger.AllAlarms(ledger.AlarmOverdue))
				}
				if err := w.Release(claims[0].Claim.ID); err != nil {
					t.Fatal(err)
				}
				w.Wait(3 * time.Second)
				b.Look(0, tk)
				w.Wait(3 * time.Second)
				if b.Last(tk).Reason != ticket.OK {
					w.Errorf("after the release: %+v", b.Said(tk))
				}
				w.Heal()
				w.check()
				conflicts := tidy(w.ledger.AllConflicts())
				if reboot && (len(conflicts) != 1 || conflicts[0].Certain) || !reboot && len(conflicts) > 0 {
					w.Errorf("conflicts: %+v", conflicts)
				}
				w.checkShown()
			})
		})
	}
}
