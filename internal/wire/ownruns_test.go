package wire_test

import (
	"testing"
	"time"
)

// TestOwnRunsOnlyPeersHold: a store is lost during an outage of the ledger, which
// is back before the gate is. The gate hears from a peer what it wrote itself, and
// has the ledger know it, too.
func TestOwnRunsOnlyPeersHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
		settle(5 * time.Second)
		l.net.Cut()
		for range 10 {
			a.event()
		}
		settle(5 * time.Second)
		first := a.run
		if b.has("a", first) != 10 || l.has("a", first) != 0 {
			t.Fatalf("b has %d, the ledger %d", b.has("a", first), l.has("a", first))
		}
		a.stop()
		a.shelf, a.caught = newShelf(), nil
		l.net.Heal()
		settle(10 * time.Second)
		w.start(a)
		settle(20 * time.Second)
		if a.has("a", first) != 10 || l.has("a", first) != 10 {
			t.Errorf("of 10 records the gate has %d back, the ledger %d", a.has("a", first), l.has("a", first))
		}
	})
}
