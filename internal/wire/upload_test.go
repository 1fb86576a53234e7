package wire_test

import (
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// uploaded counts how often each position of a run came in uploads, and gives the
// largest batch.
func (c *center) uploaded(from ticket.Source, run ticket.Run) (times map[uint64]int, batches, largest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	times = make(map[uint64]int)
	for i, u := range c.uploads {
		if c.froms[i] != from || u.Run != run {
			continue
		}
		batches++
		largest = max(largest, len(u.Records))
		for n := range u.Records {
			times[u.From+uint64(n)]++
		}
	}
	return times, batches, largest
}

func onceEach(t *testing.T, times map[uint64]int, from, to uint64) {
	t.Helper()
	wrong := 0
	for pos := from; pos <= to; pos++ {
		if times[pos] != 1 {
			wrong++
		}
		delete(times, pos)
	}
	if wrong > 0 {
		t.Errorf("%d positions of %d to %d were not uploaded exactly once", wrong, from, to)
	}
	if len(times) > 0 {
		t.Errorf("uploaded besides: %v", times)
	}
}

// TestUploads: what gathered is uploaded in large batches, what comes live in
// small ones, promptly; nothing is skipped and nothing sent twice.
func TestUploads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		l.net.Cut()
		for range 5000 {
			g.event()
		}
		settle(time.Minute)
		l.net.Heal()
		settle(5 * time.Second)
		times, batches, _ := l.uploaded("a", g.run)
		onceEach(t, times, 1, 5000)
		if batches != 3 {
			t.Errorf("5000 gathered records in %d uploads, want 3", batches)
		}
		l.mu.Lock()
		l.uploads, l.froms = nil, nil
		l.mu.Unlock()
		for i := range 300 {
			g.claim(byte(i))
			g.event()
			settle(7 * time.Millisecond)
		}
		settle(50 * time.Millisecond)
		times, batches, largest := l.uploaded("a", g.run)
		onceEach(t, times, 5001, 5600)
		if largest > wire.LiveUploadMax || batches < 50 {
			t.Errorf("live: %d uploads, the largest of %d records", batches, largest)
		}
		settle(time.Minute)
		if s := g.wire.Stats(); s.Uploaded != 5600 {
			t.Errorf("%d records uploaded, want 5600", s.Uploaded)
		}
		if n := see(g, func() int { return g.sets }); n == 0 || n > 6 {
			t.Errorf("receipts stored %d times", n)
		}
		if got := see(g, func() uint64 { return g.receipts[0].Pos }); got != 5600 {
			t.Errorf("receipt stored: %d, want 5600", got)
		}
	})
}

// TestReceiptsGoDown: the ledger comes back from an older copy; the gate resumes
// from what it has now, and uploads nothing that it has.
func TestReceiptsGoDown(t *testing.T) {
	for _, kept := range []int{40, 0} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, 1)
			l, g := w.ledger("main"), w.gate("a")
			for range kept {
				g.event()
			}
			settle(time.Second)
			l.mu.Lock()
			backup := l.shelf.clone()
			l.mu.Unlock()
			for range 100 - kept {
				g.event()
			}
			settle(time.Minute)
			l.stop()
			l.shelf, l.uploads, l.froms = backup, nil, nil
			w.startLedger(l)
			settle(5 * time.Second) // its head under a new instance is enough: the line never broke
			times, _, _ := l.uploaded("a", g.run)
			onceEach(t, times, uint64(kept)+1, 100)
			if got := l.has("a", g.run); got != 100 {
				t.Errorf("the ledger has %d of 100", got)
			}
		})
	}
}

// TestUploadsStaySmallWhileAsking: what gathered during an outage goes in small
// batches while visitors come.
func TestUploadsStaySmallWhileAsking(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		l.net.Cut()
		for range 1000 {
			g.event()
		}
		settle(10 * time.Second)
		g.claim(1)
		l.net.Heal()
		settle(3 * time.Second)
		times, _, largest := l.uploaded("a", g.run)
		onceEach(t, times, 1, 1001)
		if largest != wire.LiveUploadMax {
			t.Errorf("the largest upload has %d records, want %d", largest, wire.LiveUploadMax)
		}
	})
}

// TestUploadOutcomeUnknown: an upload whose receipt was lost is not sent again
// before the ledger said what it has.
func TestUploadOutcomeUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		l.net.SetLink(wiretest.Link{Delay: 100 * time.Millisecond})
		for range 10 {
			g.event()
		}
		settle(150 * time.Millisecond) // the upload is there, its receipt is under way
		l.net.Hang()
		settle(200 * time.Millisecond)
		l.net.Heal()
		settle(time.Minute)
		times, _, _ := l.uploaded("a", g.run)
		onceEach(t, times, 1, 10)
	})
}

// TestPrunedBeforeUpload: where the base is above what the ledger has, the upload
// begins at the base.
func TestPrunedBeforeUpload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		g := w.gate("a")
		for range 30 {
			g.event()
		}
		settle(time.Second)
		see(g, func() bool {
			st := ticket.Stream{Source: "a", Run: g.run}
			for pos := range uint64(20) {
				delete(g.shelf.runs[st], pos+1)
			}
			g.shelf.bases[st] = 20
			return true
		})
		l := w.ledger("main")
		settle(10 * time.Second)
		times, _, _ := l.uploaded("a", g.run)
		onceEach(t, times, 21, 30)
		b := w.gate("b")
		settle(10 * time.Second)
		if got := b.has("a", g.run); got != 30 {
			t.Errorf("a peer has got to %d, want 30 beyond the base", got)
		}
	})
}
