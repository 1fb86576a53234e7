package simtest

import (
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// Gates and the ledger crash at random moments: no ticket is admitted twice at one
// gate, no acknowledged claim is lost, and a claim that never fired is usable again
// after the restart.
func TestCrashes(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near, disk: 20 * time.Millisecond}, func(w *World) {
		for range crashes {
			w.crashSomething()
			for _, g := range w.gates {
				if g.running() == nil {
					g.Kill()
				}
				g.Up()
			}
			w.ledger.Up()
		}
		w.Heal()
		w.check()
		w.checkOncePerGate()
		w.checkAcknowledged()
		w.checkShown()
	})
}

// crashSomething lets people come and something crash while they do.
func (w *World) crashSomething() {
	g := w.gates[w.dice.N(len(w.gates))]
	g.Passage(0, w.dice.Span(3*time.Second))
	old := w.minted[max(0, len(w.minted)-3):]
	tk := w.Mint()
	g.Look(0, tk)
	if len(old) > 0 && w.dice.Hit(2) {
		w.gates[w.dice.N(len(w.gates))].Look(0, old[w.dice.N(len(old))])
	}
	hit := w.gates[w.dice.N(len(w.gates))]
	switch w.dice.N(8) {
	case 0:
		hit.Fail(kv.FailKept)
	case 1:
		hit.Fail(kv.FailLost)
	case 2:
		g.Doom(beforeRelay)
	case 3:
		g.Doom(afterRelay)
	}
	w.Wait(w.dice.Span(time.Duration(1+w.dice.N(50)) * 10 * time.Millisecond))
	switch w.dice.N(4) {
	case 0:
		w.ledger.Kill()
	case 1:
		hit.PowerCut()
	default:
		hit.Kill()
	}
	w.Wait(w.dice.Span(2 * time.Second))
	for range w.dice.N(3) {
		w.gates[w.dice.N(len(w.gates))].Look(0, tk)
		w.Wait(w.dice.Span(time.Second))
	}
}

// checkOncePerGate: nobody went through twice on one ticket at one gate.
func (w *World) checkOncePerGate() {
	w.t.Helper()
	type at struct {
		gate ticket.Source
		unit ticket.Unit
	}
	w.notes.mu.Lock()
	defer w.notes.mu.Unlock()
	count := map[at]int{}
	for id := range w.notes.passed {
		k := at{id.Gate, w.notes.claims[id].Unit}
		if count[k]++; count[k] > 1 {
			w.Errorf("ticket %s opened %s twice: %s", k.unit.Ticket, k.gate, w.story(k.unit))
		}
	}
	if len(w.notes.passed) == 0 {
		w.Errorf("nobody went through")
	}
}

// checkAcknowledged: what was announced to a person, or by the ledger, is there.
func (w *World) checkAcknowledged() {
	w.t.Helper()
	there := map[ticket.ClaimID]bool{}
	for _, u := range w.units() {
		for _, r := range w.ledger.Claims(u) {
			there[r.Claim.ID] = true
		}
	}
	for _, g := range w.gates {
		g.mu.Lock()
		for _, v := range g.verdicts {
			if id, err := ticket.ParseClaimID(v.Claim); err == nil && !there[id] {
				w.Errorf("%s said %s by %s, which is nowhere", g.id, v.Verdict, id)
			}
		}
		g.mu.Unlock()
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for id, a := range w.ledger.answers {
		if !there[id] {
			w.Errorf("the ledger said %q about %s, which is nowhere", a, id)
		}
	}
}
