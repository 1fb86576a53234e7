package simtest

import (
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// The ledger's word alone is enough to refuse: the gate has not heard of the
// admission itself, and the answer brings no record of it.
func TestLedgersWordAlone(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near}, func(w *World) {
		a, b, tk := w.gates[0], w.gates[1], w.Mint()
		b.Kill()
		a.Look(0, tk)
		w.Wait(3 * time.Second)
		w.ledger.set(func(l *Ledger) { l.terse = true })
		b.Up()
		for b.Status().Link != "up" {
			w.Wait(time.Millisecond)
		}
		if n := len(b.View(tk.Unit).Claims); n != 0 {
			t.Fatalf("the gate knows %d claims already", n)
		}
		b.Look(0, tk)
		w.Wait(time.Second)
		w.want(b, tk, ticket.AlreadyUsed)
		if v := b.Last(tk); !v.Online || v.FirstGate != a.place {
			w.Errorf("%+v", v)
		}
		w.Heal()
		w.check()
	})
}

// A gate whose asks are lost fires without an answer, and says so: another gate
// that was told "first" in the same moment must not take itself to be ordered
// before it.
func TestFiredWithoutAnswerIsNotOverruled(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: wiretest.Link{Delay: 15 * time.Millisecond}}, func(w *World) {
		a, b, tk := w.gates[0], w.gates[1], w.Mint()
		w.ledger.set(func(l *Ledger) { l.deaf = func(from ticket.Source) bool { return from == a.id } })
		a.Passage(0, 3*time.Second)
		a.Hang() // its claim reaches nobody yet
		a.Look(0, tk)
		w.Wait(50 * time.Millisecond)
		a.Heal()
		w.Wait(335 * time.Millisecond)
		b.Look(0, tk) // asks at 385 ms, is answered at 445 ms; a fires at 400 ms, and b hears that at 430 ms
		w.Wait(5 * time.Second)
		w.want(a, tk, ticket.OK)
		w.want(b, tk, ticket.InProgress, ticket.AlreadyUsed)
		if w.reached()[pathUnanswered] != 1 || w.reached()[pathOverridden] != 1 {
			w.Errorf("reached %v", w.reached())
		}
		w.ledger.set(func(l *Ledger) { l.deaf = nil })
		w.Heal()
		w.check()
		if n := len(w.ledger.AllConflicts()); n != 0 {
			w.Errorf("%d conflicts", n)
		}
	})
}
