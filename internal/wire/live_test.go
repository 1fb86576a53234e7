package wire_test

import (
	"testing"
	"time"
)

// TestLiveRecordsDoNotWaitForTheDisk: a record that arrives while an earlier one is
// being committed is handed over at once, so that it counts in a decision.
func TestLiveRecordsDoNotWaitForTheDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.gate("a"), w.gate("b")
		settle(5 * time.Second)
		b.mu.Lock()
		b.disk, b.handed = time.Second, 0
		b.mu.Unlock()
		for want := 1; want <= 5; want++ {
			a.event()
			settle(10 * time.Millisecond)
			if n := see(b, func() int { return b.handed }); n != want {
				t.Fatalf("%d of %d records were handed over while the disk was busy", n, want)
			}
		}
		settle(5 * time.Second)
		if got := b.has("a", a.run); got != 5 {
			t.Errorf("b has %d of 5", got)
		}
	})
}
