package wire_test

import (
	"testing"
	"time"

	"admitone/internal/ticket"
)

// TestUnreadableRunIsPassedOver: a run that the gate cannot read does not keep
// newer ones from the ledger, and is uploaded as soon as it can be read again.
func TestUnreadableRunIsPassedOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		old := ticket.Stream{Source: "a", Run: 7}
		see(g, func() bool {
			for pos := uint64(1); pos <= 5; pos++ {
				g.shelf.put(old, pos, earlier(t, old, pos))
			}
			g.torn = old
			return true
		})
		for range 20 {
			g.event()
		}
		settle(3 * time.Second)
		if got := l.has("a", g.run); got != 20 {
			t.Errorf("the ledger has %d of the newer run's 20 records", got)
		}
		if got := l.has("a", old.Run); got != 0 {
			t.Errorf("the ledger has %d records of a run that cannot be read", got)
		}
		see(g, func() bool { g.torn = ticket.Stream{}; return true })
		settle(time.Minute)
		if got := l.has("a", old.Run); got != 5 {
			t.Errorf("the ledger has %d of the older run's 5 records", got)
		}
	})
}

// earlier is a record of an earlier run.
func earlier(t *testing.T, s ticket.Stream, pos uint64) []byte {
	t.Helper()
	raw, err := ticket.Record{
		Source: s.Source, Run: s.Run, Pos: pos, Event: &ticket.Event{Type: ticket.EventExit, Place: string(s.Source)},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
