package simtest

import (
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// A gate whose store is lost, or put back from an old copy, notices, catches up
// before it trusts its ignorance, and refuses what it had admitted. No number is
// used twice (the notes compare the contents of every revision).
func TestLostStore(t *testing.T) {
	for name, old := range map[string]bool{"lost": false, "put back from an old copy": true} {
		t.Run(name, func(t *testing.T) {
			withAndWithout(t, setup{gates: 3, link: near}, func(w *World) {
				g := w.gates[0]
				admit := func(n int) (out []Ticket) {
					for range n {
						out = append(out, w.Mint())
						g.Look(0, out[len(out)-1])
						w.Wait(time.Second)
						w.want(g, out[len(out)-1], ticket.OK)
					}
					return out
				}
				before := admit(5)
				var backup *kv.Mem
				if old {
					backup = g.Backup()
				}
				used := append(before, admit(10)...)
				w.Wait(10 * time.Second)
				g.PutBack(backup)
				w.Wait(45 * time.Second)
				if s := g.Status(); s.Amnesia || s.Programme == 0 {
					w.Errorf("not caught up: %+v", s)
				}
				for _, tk := range used {
					g.Look(0, tk)
					w.Wait(2 * time.Second)
					if v := g.Last(tk); v.Reason != ticket.AlreadyUsed || v.FirstGate != g.place {
						w.Errorf("ticket %s: %+v", tk.Unit.Ticket, g.Said(tk))
					}
				}
				if old && w.reached()[pathReverted] == 0 {
					w.Errorf("the run that others hold more of was not noticed")
				}
				admit(3)
			})
		})
	}
}

// A store that is lost while a claim of it was open: others hold the claim, and it
// is presumed once it comes back.
func TestStoreLostWithAnOpenClaim(t *testing.T) {
	withAndWithout(t, setup{gates: 2, link: near}, func(w *World) {
		g, tk := w.gates[0], w.Mint()
		g.Passage(0, 3*time.Second)
		g.Look(0, tk)
		w.Wait(time.Second)
		g.PutBack(nil)
		w.Wait(60 * time.Second)
		for _, at := range w.gates {
			at.Look(0, tk)
			w.Wait(2 * time.Second)
			if v := at.Last(tk); v.Reason != ticket.AlreadyUsed {
				w.Errorf("%s: %+v", at.id, at.Said(tk))
			}
		}
	})
}

// While it catches up, a gate with a new store admits nothing, however early it has
// a programme.
func TestNothingIsAdmittedWhileCatchingUp(t *testing.T) {
	simulate(t, 1, setup{gates: 3, link: wiretest.Link{Delay: 20 * time.Millisecond}}, func(w *World) {
		w.rush(30 * time.Second)
		w.ledger.Cut() // it would know
		w.Wait(10 * time.Second)
		used, g := len(w.minted), w.gates[0]
		early := 0
		for i := range 10 {
			g.PutBack(nil)
			for g.Status().Programme == 0 {
				w.Wait(time.Millisecond)
			}
			if g.Status().Amnesia {
				early++
			}
			tk := w.minted[i*used/10]
			g.Hold(0, tk, 35*time.Second)
			w.Wait(40 * time.Second)
			if v := g.Last(tk); v.Reason != ticket.AlreadyUsed {
				w.Errorf("ticket %s, used before: %+v", tk.Unit.Ticket, g.Said(tk))
			}
		}
		if early == 0 {
			w.Errorf("it always knew everything before it had a programme")
		}
		w.Heal()
		w.check()
	})
}
