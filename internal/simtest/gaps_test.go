package simtest

import (
	"slices"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// A store is lost when the network had lost some of its records: others hold what
// stands beyond positions that nobody has. It counts, a double through it is
// reported, and every run ends at its head, once everybody has been asked.
func TestStoreLostWithRecordsBeyondAGap(t *testing.T) {
	for name, there := range map[string]bool{"held by the ledger": true, "held by a peer": false} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, setup{gates: 3, link: near}, func(w *World) {
				a, b, away := w.gates[0], w.gates[1], w.gates[2]
				nowhere, beyond := w.Mint(), w.Mint()
				away.Cut()
				if !there {
					w.ledger.Cut()
				}
				w.Wait(10 * time.Second)
				a.Hang()
				a.Look(0, nowhere)
				w.Wait(3 * time.Second)
				a.Heal()
				a.Passage(0, time.Second)
				a.Look(0, beyond)
				w.Wait(15 * time.Millisecond) // its claim is published, and nothing was fetched or uploaded yet
				run := a.proc.store.Run()
				a.PutBack(nil)
				away.Look(0, beyond)
				w.Wait(3 * time.Second)
				w.want(away, beyond, ticket.OK)
				held, err := b.proc.store.Tops(a.id)
				if err != nil || !slices.ContainsFunc(held, func(p ticket.StreamPos) bool { return p.Run == run && p.Pos > 3 }) {
					w.Errorf("the peer holds %v of run %s (%v)", held, run, err)
				}
				w.Heal()
				w.check()
				if s := w.ledger.Streams()[ticket.Stream{Source: a.id, Run: run}]; s.Aside == 0 || s.High != s.Head {
					w.Errorf("the run that was lost stands at %+v, want some positions that are nowhere, and its head reached", s)
				}
				all := w.ledger.AllConflicts()
				if len(all) != 1 || all[0].Ticket != beyond.Unit.Ticket.String() {
					w.Errorf("conflicts: %+v", all)
				}
				w.checkShown()
			})
		})
	}
}
