package wire_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

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
		w.ledger("main")
		a, b := w.gate("a"), w.gate("b")
		settle(10 * time.Second)
		if !b.wire.CaughtUp() {
			t.Error("not caught up with nothing to be had")
		}
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
