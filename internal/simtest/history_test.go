package simtest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// happened is one thing that a bystander saw of a ticket at a gate: it was shown
// ("look"), its claim was annulled, or a verdict was given (its reason).
type happened struct {
	at     time.Time
	gate   int
	ticket string
	what   string
}

const annulled = "annulled"

// operations makes a ticket's history one of an object that is used once and may be
// given back: a showing lasts from the look to the verdict that ends it, giving back
// from the green light to the annulment. What ends dark did nothing.
func operations(seen []happened, tk string) (ops []porcupine.Operation) {
	shown, green := map[int]time.Time{}, map[int]time.Time{}
	for _, h := range seen {
		if h.ticket != tk {
			continue
		}
		var began time.Time
		switch h.what {
		case "look":
			if shown[h.gate].IsZero() {
				shown[h.gate] = h.at
			}
			continue
		case annulled:
			began = green[h.gate]
		case string(ticket.OK):
			began, green[h.gate] = shown[h.gate], h.at
			delete(shown, h.gate)
		case string(ticket.AlreadyUsed):
			began = shown[h.gate]
			delete(shown, h.gate)
		default:
			continue
		}
		ops = append(ops, porcupine.Operation{ClientId: h.gate, Input: h.what, Call: began.UnixNano(), Return: h.at.UnixNano()})
	}
	return ops
}

// once is the object: used or not.
func once() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return false },
		Step: func(state, input, _ any) (bool, any) {
			used := state.(bool)
			switch input.(string) {
			case string(ticket.OK):
				return !used, true
			case annulled:
				return used, false
			default:
				return used, used
			}
		},
	}
}

// TestHistoriesAreLinearisable: connected gates, all answered within the patience
// and heard in time, treat each ticket as one object would that stood at one place:
// used once, seen to be used from then on, given back where nobody went through.
func TestHistoriesAreLinearisable(t *testing.T) {
	for name, s := range map[string]setup{
		"one ledger":  {gates: 5, link: wiretest.Link{Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: 0.2, Duplicate: 0.2}},
		"two ledgers": {gates: 5, ledgers: 2, link: wiretest.Link{Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: 0.2, Duplicate: 0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulate(t, 1, s, func(w *World) {
				for range histories {
					w.contend()
				}
				w.Wait(15 * time.Second)
				w.Heal()
				w.check()
				if n := len(w.ledger.AllConflicts()); n > 0 {
					w.Errorf("%d conflicts", n)
				}
				w.notes.mu.Lock()
				defer w.notes.mu.Unlock()
				back := 0
				for _, tk := range w.minted {
					ops := operations(w.notes.history, tk.Unit.Ticket.String())
					if !porcupine.CheckOperations(once(), ops) {
						w.Errorf("ticket %s was not treated as one object: %+v", tk.Unit.Ticket, ops)
					}
					for _, op := range ops {
						if op.Input == annulled {
							back++
						}
					}
				}
				if back == 0 {
					w.Errorf("no ticket was given back")
				}
			})
		})
	}
}

// contend shows one ticket at every gate within a moment or over a longer time, and
// again once its first claim has ended.
func (w *World) contend() {
	tk := w.Mint()
	for range 2 {
		for _, i := range []int{0, 1, 2, 3, 4} {
			g := w.gates[(i+len(w.minted))%len(w.gates)]
			g.Passage(0, time.Duration(w.dice.N(3)-1)*time.Second) // nobody goes through, or within a second
			g.Look(0, tk)
			w.Wait(w.dice.Span(time.Duration(1+w.dice.N(100)) * time.Millisecond))
		}
		w.Wait(13 * time.Second)
	}
}
