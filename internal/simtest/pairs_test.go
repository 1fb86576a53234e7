package simtest

import (
	"fmt"
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// Two claims at once on one ticket, at two gates: one winner each, and the loser
// cites the winner's time and place. With the ledger, and with peers only.
func TestTwoClaimsAtOnce(t *testing.T) {
	const lanes = 25
	for _, c := range []struct {
		name   string
		rounds int
		ledger bool
		link   wiretest.Link
	}{
		{"with the ledger", rounds * 6 / 10, true, wiretest.Link{Delay: time.Millisecond, Jitter: 3 * time.Millisecond}},
		{"with peers only", rounds * 4 / 10, false, wiretest.Link{Delay: time.Millisecond, Jitter: 3 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			simulate(t, 1, setup{gates: 2, lanes: lanes, link: c.link}, func(w *World) {
				if !c.ledger {
					w.ledger.Cut()
					w.Wait(10 * time.Second)
				}
				won := map[int]int{}
				for range c.rounds / lanes {
					w.wave(lanes, won)
				}
				if won[0] == 0 || won[1] == 0 {
					t.Errorf("one gate never won: %v", won)
				}
				w.Heal()
				w.check()
				if n := len(w.ledger.AllConflicts()); n != 0 {
					t.Errorf("%d conflicts", n)
				}
			})
		})
	}
}

// wave shows one new ticket at each lane of both gates, at the same instant.
func (w *World) wave(lanes int, won map[int]int) {
	w.t.Helper()
	tickets := make([]Ticket, lanes)
	for i := range tickets {
		tickets[i] = w.Mint()
	}
	for i, tk := range tickets {
		w.gates[0].Look(i, tk)
		w.gates[1].Look(i, tk)
	}
	w.Wait(2 * time.Second)
	for _, tk := range tickets {
		if err := w.oneWinner(tk, won); err != nil {
			w.Errorf("ticket %s: %v\n%+v\n%+v", tk.Unit.Ticket, err, w.gates[0].Said(tk), w.gates[1].Said(tk))
		}
	}
	for _, g := range w.gates {
		g.mu.Lock()
		g.verdicts = nil
		g.mu.Unlock()
	}
}

func (w *World) oneWinner(tk Ticket, won map[int]int) error {
	a, b := w.gates[0].Last(tk), w.gates[1].Last(tk)
	n, winner, loser := 0, a, b
	if b.Reason == ticket.OK {
		n, winner, loser = 1, b, a
	}
	won[n]++
	claim, ok, err := w.gates[n].proc.store.Find(w.gates[n].Claim(tk))
	switch {
	case err != nil || !ok:
		return fmt.Errorf("find claim: %v", err)
	case winner.Reason != ticket.OK || loser.Reason != ticket.AlreadyUsed:
		return fmt.Errorf("%s and %s", winner.Reason, loser.Reason)
	case loser.FirstGate != winner.Gate || !loser.FirstSeen.Equal(claim.Claimed.Time()):
		return fmt.Errorf("the loser cites %s at %s, the winner is %s at %s", loser.FirstGate, loser.FirstSeen, winner.Gate, claim.Claimed.Time())
	}
	return nil
}

// Whoever waited behind another person, and shows the ticket again as it turns
// green, is not shown red after it.
func TestShownAgainAsItTurnsGreen(t *testing.T) {
	simulate(t, 1, setup{gates: 1, link: near}, func(w *World) {
		g, before, tk := w.gates[0], w.Mint(), w.Mint()
		g.Passage(0, 4*time.Second)
		g.Look(0, before)
		w.Wait(time.Second)
		g.Look(0, tk)
		for g.Last(tk).Reason != ticket.OK {
			w.Wait(time.Millisecond)
		}
		g.Look(0, tk)
		w.Wait(6 * time.Second)
		w.want(g, tk, ticket.Busy, ticket.OK)
		w.Heal()
		w.check()
	})
}
