package simtest

import (
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// The uplink of a venue's broker is cut: the gates behind it go on refusing each
// other's tickets.
func TestVenueWithoutUplink(t *testing.T) {
	simulate(t, 1, setup{gates: 3, sites: []string{"north", "north", ""}, link: near}, func(w *World) {
		a, b, far := w.gates[0], w.gates[1], w.gates[2]
		w.net.SetUplink("north", wiretest.Link{Cut: true})
		w.Wait(10 * time.Second)
		var used []Ticket
		for range 30 {
			tk := w.Mint()
			used = append(used, tk)
			a.Look(0, tk)
			w.Wait(time.Second)
			b.Look(0, tk)
			w.Wait(time.Second)
			w.want(a, tk, ticket.OK)
			w.want(b, tk, ticket.AlreadyUsed)
			if v := b.Last(tk); v.FirstGate != a.place || v.FirstSeen.IsZero() {
				w.Errorf("%s cites %q at %s", b.id, v.FirstGate, v.FirstSeen)
			}
		}
		far.Look(0, used[0]) // nobody could tell it
		w.Wait(time.Second)
		w.want(far, used[0], ticket.OK)
		w.Heal()
		w.check()
		if n := len(w.ledger.AllConflicts()); n != 1 {
			w.Errorf("%d conflicts, want the one at the far gate", n)
		}
		w.checkShown()
	})
}

// A gate that joins late, with a fresh store and the ledger gone, catches up from
// its peers before it trusts its ignorance, and refuses what they admitted.
func TestGateThatJoinsLateCatchesUpFromPeers(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near}, func(w *World) {
		w.rush(60 * time.Second)
		w.Wait(2 * time.Second)
		used := len(w.minted)
		w.ledger.Cut()
		w.Wait(10 * time.Second)
		late := w.AddGate("")
		late.Look(0, w.minted[0]) // before it knows anything
		late.WaitReady(50 * time.Second)
		w.Wait(time.Second)
		for _, tk := range w.minted[:used] {
			late.Look(0, tk)
			w.Wait(time.Second)
			if v := late.Last(tk); v.Reason != ticket.AlreadyUsed || v.FirstGate == "" {
				w.Errorf("ticket %s at the late gate: %s, first at %q", tk.Unit.Ticket, v.Reason, v.FirstGate)
			}
		}
		w.Heal()
		w.check()
		w.checkShown()
	})
}
