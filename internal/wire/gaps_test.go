package wire_test

import (
	"testing"
	"time"

	"admitone/internal/ticket"
)

// TestGapsCloseOnceEverybodyWasAsked: a store is lost; a peer and the ledger hold
// records of it beyond positions that nobody has. While one gate that may hold
// some is away, the gap stays; then everybody gets all there is.
func TestGapsCloseOnceEverybodyWasAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b, c := w.ledger("main"), w.gate("a"), w.gate("b"), w.gate("c")
		c.event()
		settle(5 * time.Second)
		l.net.Cut()
		b.net.Cut()
		c.net.Cut()
		settle(5 * time.Second)
		for range 9 {
			a.event()
		}
		first := a.run
		run := ticket.Stream{Source: "a", Run: first}
		for i, at := range []*shelf{b.shelf, c.shelf, l.shelf} {
			for _, pos := range []uint64{uint64(3 + i), uint64(6 + i)} {
				at.put(run, pos, a.shelf.runs[run][pos])
			}
		}
		a.stop()
		a.shelf, a.caught = newShelf(), nil
		l.net.Heal()
		b.net.Heal()
		settle(5 * time.Second)
		w.start(a)
		a.event()
		settle(2 * time.Minute)
		if l.has("a", first) != 0 {
			t.Errorf("the gap was closed up to %d while a gate was away", l.has("a", first))
		}
		c.net.Heal()
		settle(time.Minute)
		for name, has := range map[string]uint64{"a": a.has("a", first), "b": b.has("a", first), "c": c.has("a", first), "the ledger": l.has("a", first)} {
			if has != 8 {
				t.Errorf("%s has the run up to %d, want 8", name, has)
			}
		}
		for pos := uint64(1); pos <= 8; pos++ {
			if held := len(l.shelf.runs[run][pos]) > 0; held != (pos >= 3) {
				t.Errorf("position %d is a record at the ledger: %v", pos, held)
			}
		}
	})
}
