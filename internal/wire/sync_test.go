package wire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
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
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		for range 40 {
			g.event()
		}
		settle(time.Second)
		l.mu.Lock()
		backup := l.shelf.clone()
		l.mu.Unlock()
		for range 60 {
			g.event()
		}
		settle(time.Minute)
		l.stop()
		l.shelf, l.uploads, l.froms = backup, nil, nil
		w.startLedger(l)
		settle(5 * time.Second) // its head under a new run is enough: the line never broke
		times, _, _ := l.uploaded("a", g.run)
		onceEach(t, times, 41, 100)
		if got := l.has("a", g.run); got != 100 {
			t.Errorf("the ledger has %d of 100", got)
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

// TestGapIsFetched: lost spends show by the next one or the next head, and are
// fetched from the owner; from the ledger when the owner is gone; from another
// peer when both are. Each is fetched once.
func TestGapIsFetched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b, c := w.ledger("main"), w.gate("a"), w.gate("b"), w.gate("c")
		settle(time.Second)
		lose := func(g *gate, n int) {
			g.net.SetLink(wiretest.Link{Hang: true})
			settle(time.Millisecond)
			for range n {
				a.event()
			}
			settle(time.Millisecond)
			g.net.Heal()
		}
		lose(b, 3)
		a.event()
		settle(200 * time.Millisecond)
		if got := b.has("a", a.run); got != 4 {
			t.Errorf("a gap before a spend: b has %d of 4", got)
		}
		lose(b, 3)
		settle(2200 * time.Millisecond)
		if got := b.has("a", a.run); got != 7 {
			t.Errorf("a lost last spend: b has %d of 7", got)
		}
		if s := b.wire.Stats(); s.Fetched != 6+1 { // the live one after the gap comes with it
			t.Errorf("%d records fetched, want 7", s.Fetched)
		}
		b.net.Cut()
		for range 5 {
			a.event()
		}
		settle(time.Second)
		a.net.Cut()
		settle(10 * time.Second)
		b.net.Heal()
		settle(2 * time.Second)
		if got := b.has("a", a.run); got != 12 {
			t.Errorf("owner gone: b has %d of 12 from the ledger", got)
		}
		d := w.gate("d")
		l.net.Cut()
		d.net.Cut()
		settle(10 * time.Second)
		d.net.Heal()
		settle(5 * time.Second)
		if got := d.has("a", a.run); got != 12 {
			t.Errorf("owner and ledger gone: d has %d of 12 from peers", got)
		}
		if got := c.has("a", a.run); got != 12 {
			t.Errorf("c has %d of 12", got)
		}
	})
}

// TestDownloadsDoNotBlock: while a fetch hangs on a dead owner, asks are answered
// and uploads go on.
func TestDownloadsDoNotBlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
		settle(time.Second)
		b.net.Cut()
		for range 10 {
			a.event()
		}
		settle(time.Second)
		b.net.Heal()
		a.net.Hang() // b's fetch goes to nobody
		settle(110 * time.Millisecond)
		b.claim(1)
		settle(50 * time.Millisecond)
		if n := see(b, func() int { return len(b.answers) }); n != 1 {
			t.Error("the ask was not answered")
		}
		if got := l.has("b", b.run); got != 1 {
			t.Error("nothing was uploaded")
		}
	})
}

// TestBadRecords: one that its own gate cannot read, and one that nobody can,
// pass under their positions and block neither upload nor fetch.
func TestBadRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.gate("a")
		settle(time.Second)
		for range 5 {
			a.event()
		}
		settle(time.Second) // published to nobody
		see(a, func() bool {
			run := a.shelf.runs[ticket.Stream{Source: "a", Run: a.run}]
			run[2], run[4] = []byte{}, []byte("from a later version")
			return true
		})
		l, b := w.ledger("main"), w.gate("b")
		settle(10 * time.Second)
		if l.has("a", a.run) != 5 || b.has("a", a.run) != 5 {
			t.Errorf("the ledger has %d, b has %d of 5", l.has("a", a.run), b.has("a", a.run))
		}
		if s := a.wire.Stats(); s.SetAside != 2 || s.Uploaded != 5 {
			t.Errorf("set aside %d of %d uploaded, want 2 of 5", s.SetAside, s.Uploaded)
		}
		if n := see(b, func() int { return b.aside }); n != 2 || b.wire.Stats().Unreadable != 2 {
			t.Errorf("b set %d aside, counted %d", n, b.wire.Stats().Unreadable)
		}
	})
}

// TestJoinsLateWithoutLedger: a gate that joins while the ledger is away gets all
// from its peers, what they hold of others among it, and is caught up then.
func TestJoinsLateWithoutLedger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b, c := w.ledger("main"), w.gate("a"), w.gate("b"), w.gate("c")
		settle(time.Second)
		for range 1300 {
			c.event()
		}
		a.event()
		l.feed(wire.LedgerSource("main"), revoke(1, 1))
		l.feed("http/door", revoke(2, 1))
		settle(5 * time.Second)
		feeds := l.run
		l.net.Cut()
		c.net.Cut()
		settle(10 * time.Second)
		d := w.gate("d")
		settle(3 * time.Second)
		if d.wire.CaughtUp() {
			t.Error("caught up before peers had 5 s to be heard")
		}
		settle(4 * time.Second)
		for _, want := range []struct {
			source ticket.Source
			run    ticket.Run
			pos    uint64
		}{{"c", c.run, 1300}, {"a", a.run, 1}, {wire.LedgerSource("main"), feeds, 1}, {"http/door", feeds, 1}} {
			if got := d.has(want.source, want.run); got != want.pos {
				t.Errorf("d has %d of %s, want %d", got, want.source, want.pos)
			}
		}
		if !d.wire.CaughtUp() || !slices.Equal(see(d, func() []bool { return d.caught }), []bool{true}) {
			t.Errorf("caught up: %v, told %v", d.wire.CaughtUp(), d.caught)
		}
		lonely := w.gateAt("nowhere", "e")
		w.net.SetUplink("nowhere", wiretest.Link{Cut: true})
		settle(time.Minute)
		if lonely.wire.CaughtUp() {
			t.Error("caught up with nobody")
		}
		_ = b
	})
}

// TestLostStore: a gate whose store was put back from an old copy, or lost, hears
// of it once per run, gets its own records back, from the ledger or from peers,
// and is caught up when it has them.
func TestLostStore(t *testing.T) {
	for _, ledgerThere := range []bool{true, false} {
		t.Run(fmt.Sprintf("ledger=%v", ledgerThere), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 1)
				l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
				settle(time.Second)
				for range 10 {
					a.event()
				}
				old := see(a, func() *shelf { return a.shelf.clone() })
				for range 20 {
					a.event()
				}
				settle(time.Second)
				first := a.run
				a.stop()
				if !ledgerThere {
					l.net.Cut()
				}
				a.shelf, a.caught = old, nil
				w.start(a)
				settle(20 * time.Second)
				if got := a.has("a", first); got != 30 {
					t.Errorf("%d of 30 own records are back", got)
				}
				if want := []string{fmt.Sprintf("%s to 30", first)}; !slices.Equal(a.ahead, want) {
					t.Errorf("told of %v, want %v", a.ahead, want)
				}
				if !a.wire.CaughtUp() || len(a.caught) == 0 || !a.caught[len(a.caught)-1] {
					t.Errorf("caught up: %v, told %v", a.wire.CaughtUp(), a.caught)
				}
				a.event()
				settle(time.Second)
				if b.has("a", a.run) != 1 {
					t.Error("the new run did not reach a peer")
				}
			})
		})
	}
}

// TestLedgerGetsItsFeedsBack: after a restore the ledger's own lost feeds come
// back from a gate, and records of a gate that is gone from another.
func TestLedgerGetsItsFeedsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
		settle(time.Second)
		me := wire.LedgerSource("main")
		l.feed(me, revoke(1, 1))
		settle(time.Second)
		l.mu.Lock()
		backup := l.shelf.clone()
		l.mu.Unlock()
		l.feed(me, revoke(2, 1))
		l.feed("http/door", revoke(3, 1))
		b.event()
		settle(5 * time.Second)
		feeds := l.run
		b.net.Cut()
		l.stop()
		l.shelf = backup
		w.startLedger(l)
		settle(2 * time.Minute)
		if l.has(me, feeds) != 2 || l.has("http/door", feeds) != 1 {
			t.Errorf("feeds are back up to %d and %d, want 2 and 1", l.has(me, feeds), l.has("http/door", feeds))
		}
		if l.has("b", b.run) != 1 {
			t.Error("the record of the gate that is gone did not come back from its peer")
		}
		_ = a
	})
}

// TestFeedsReachGatesAtOnce, and the gate list is published when it changes.
func TestFeedsReachGatesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		lists := 0
		hub := w.net.Conn("hub")
		if err := hub.Subscribe("ledger.*.gates", "", func(wire.Msg) { lists++ }); err != nil {
			t.Fatal(err)
		}
		l.feed(wire.LedgerSource("main"), revoke(1, 1))
		synctest.Wait()
		if g.has(wire.LedgerSource("main"), l.run) != 1 || lists != 0 {
			t.Errorf("feed not there at once, or %d lists for nothing", lists)
		}
		l.feed(wire.LedgerSource("main"), &ticket.Feed{Subject: "gate/x", Version: 1, Gate: &ticket.FeedGate{Device: "x", State: "lost"}})
		g.wire.PublishVerdict([]byte(`{}`))
		settle(time.Second)
		if lists != 1 || l.verdicts != 1 {
			t.Errorf("%d lists, %d verdicts, want one each", lists, l.verdicts)
		}
		reply, err := hub.Request(t.Context(), "broker.x.gates", nil)
		if err != nil || len(reply) == 0 {
			t.Errorf("list asked for: %q, %v", reply, err)
		}
	})
}

// TestStoreFailure: records that could not be stored are not taken for had.
func TestStoreFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.gate("a"), w.gate("b")
		settle(time.Second)
		see(b, func() bool { b.failNext = 2; return true })
		a.event()
		settle(10 * time.Second)
		if got := b.has("a", a.run); got != 1 || b.wire.Stats().LearnFailed != 2 {
			t.Errorf("b has %d of 1 after %d failures", got, b.wire.Stats().LearnFailed)
		}
	})
}

// TestQuietWhenLevel: with everything level the network carries heads, probes,
// hellos and pings, and no fetch and no upload.
func TestQuietWhenLevel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
		a.event()
		b.event()
		settle(time.Minute)
		fetches, uploads, sent := b.wire.Stats().Fetches, len(l.uploads), w.net.Sent()
		settle(time.Minute)
		if b.wire.Stats().Fetches != fetches || len(l.uploads) != uploads {
			t.Error("fetches or uploads though all is level")
		}
		// Two gates in 60 s: 30 heads, 30 pings, 12 probes and 2 hellos each, the
		// latter three answered; the ledger's heads.
		if n := w.net.Sent() - sent; n > 2*(30+2*30+2*13+2*3)+35 {
			t.Errorf("%d messages in a minute of nothing", n)
		}
	})
}

// TestRandomFaults: links that lose, repeat, reorder and break; restarts, too.
// After the heal everybody has every record, and nobody's was skipped.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { randomFaults(t, seed) })
		})
	}
}

func randomFaults(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t, seed)
	l := w.ledger("main")
	gates := []*gate{w.gate("a"), w.gateAt("venue", "b"), w.gateAt("venue", "c")}
	claims := make(map[ticket.ClaimID]bool)
	for range 300 {
		g := gates[rng.IntN(len(gates))]
		switch n := rng.IntN(100); {
		case n < 50:
			g.event()
		case n < 80:
			claims[g.claim(byte(rng.IntN(256))).ID] = true
		case n < 84:
			l.feed(wire.LedgerSource("main"), revoke(byte(n), uint64(n)))
		case n < 92:
			g.net.SetLink(faultyLink(rng))
		case n < 95:
			w.net.SetUplink("venue", faultyLink(rng))
		case n < 97:
			l.net.SetLink(faultyLink(rng))
		default:
			g.stop()
			w.start(g)
		}
		settle(time.Duration(rng.IntN(3000)) * time.Millisecond)
	}
	w.net.SetUplink("venue", wiretest.Link{})
	l.net.Heal()
	for _, g := range gates {
		g.net.Heal()
	}
	settle(2 * time.Minute)
	for _, owner := range gates {
		for _, st := range slices.Clone(owner.shelf.order) {
			want := owner.has(st.Source, st.Run)
			if got := l.has(st.Source, st.Run); got != want {
				t.Errorf("the ledger has %d of %s/%s, want %d", got, st.Source, st.Run, want)
			}
			for _, g := range gates {
				if got := g.has(st.Source, st.Run); got != want {
					t.Errorf("%s has %d of %s/%s, want %d", g.id, got, st.Source, st.Run, want)
				}
			}
		}
		for _, a := range owner.answers {
			if !claims[a.Claim] || l.answers[a.Claim] != a.Answer {
				t.Errorf("%s was told %s for %s, the ledger's answer is %s", owner.id, a.Answer, a.Claim, l.answers[a.Claim])
			}
		}
		if !owner.wire.Link().Up || !owner.wire.CaughtUp() {
			t.Errorf("%s: link %s, caught up %v", owner.id, owner.wire.Link().Word(), owner.wire.CaughtUp())
		}
	}
}

func faultyLink(rng *rand.Rand) wiretest.Link {
	switch rng.IntN(5) {
	case 0:
		return wiretest.Link{Cut: true}
	case 1:
		return wiretest.Link{Hang: true}
	case 2:
		return wiretest.Link{Drop: 0.3, Duplicate: 0.2, Reorder: 0.3, Jitter: 300 * time.Millisecond}
	case 3:
		return wiretest.Link{Delay: time.Duration(rng.IntN(2000)) * time.Millisecond}
	}
	return wiretest.Link{}
}
