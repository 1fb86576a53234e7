package wire_test

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// settle lets virtual time pass.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestLinkStates walks a gate's link through its states: up while the ledger
// answers, suspect when it does not, peers while they are heard, alone after 5 s
// of nobody, and up again by a probe.
func TestLinkStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		check := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := g.wire.Link().Word(); got != want {
				t.Errorf("%s: link is %s, want %s", when, got, want)
			}
		}
		check("with the ledger", "up")
		l.net.Hang()
		g.claim(1)
		settle(399 * time.Millisecond)
		check("within the patience", "up")
		settle(2 * time.Millisecond)
		check("after an unanswered ask", "suspect")
		b := w.gate("b")
		settle(3 * time.Second)
		check("with a peer", "peers")
		b.net.Cut()
		settle(2900 * time.Millisecond) // its last head was up to 2 s before
		if link := g.wire.Link(); link.Alone {
			t.Error("alone before 5 s of silence")
		}
		settle(2200 * time.Millisecond)
		check("with nobody for 5 s", "alone")
		l.net.Heal()
		settle(2500 * time.Millisecond)
		check("with the ledger back", "up")
		g.net.Cut()
		check("cut off", "suspect")
		settle(5 * time.Second)
		check("cut off for 5 s", "alone")
		g.net.Heal()
		settle(100 * time.Millisecond)
		check("healed", "up")
		words := see(g, func() []string { return slices.Clone(g.links) })
		want := []string{"up", "suspect", "peers", "alone", "up", "suspect", "alone", "up"}
		if !slices.Equal(words, want) {
			t.Errorf("told of changes %v, want %v", words, want)
		}
	})
}

// TestSilentLedgerIsNoticed: a link that is up is proved again after 5 s, so that
// the next visitor does not pay for finding out.
func TestSilentLedgerIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(7 * time.Second)
		l.net.Hang()
		settle(6 * time.Second)
		if g.wire.Link().Up {
			t.Error("up, with no sign of life for 6 s")
		}
		if n := g.wire.Stats().Asked; n != 0 {
			t.Errorf("%d asks", n)
		}
	})
}

// TestPeerPatience: 50 ms, or twice the one-way delay of the slowest peer lately,
// and no more than the ledger is given.
func TestPeerPatience(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		g, b := w.gate("a"), w.gate("b")
		settle(10 * time.Second)
		if p := g.wire.Link().PeerPatience; p != 50*time.Millisecond {
			t.Errorf("near peer: patience %s", p)
		}
		b.net.SetLink(wiretest.Link{Delay: 70 * time.Millisecond})
		settle(10 * time.Second)
		if p := g.wire.Link().PeerPatience; p != 140*time.Millisecond {
			t.Errorf("peer 70 ms away: patience %s, want 140ms", p)
		}
		b.net.SetLink(wiretest.Link{Delay: 700 * time.Millisecond})
		settle(10 * time.Second)
		if p := g.wire.Link().PeerPatience; p != wire.DefaultPatience {
			t.Errorf("peer 700 ms away: patience %s, want the ledger's", p)
		}
		b.net.Heal()
		settle(40 * time.Second)
		if p := g.wire.Link().PeerPatience; p != 50*time.Millisecond {
			t.Errorf("near again: patience %s", p)
		}
	})
}

// TestLostAnswerIsEchoed: an ask whose answer was lost is sent again, with the
// same claim, within the patience; the link stays up.
func TestLostAnswerIsEchoed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		// The first question arrives before the line breaks, its answer does not.
		l.net.SetLink(wiretest.Link{Delay: 10 * time.Millisecond})
		c := g.claim(1)
		settle(15 * time.Millisecond)
		l.net.Hang()
		settle(10 * time.Millisecond)
		l.net.Heal()
		settle(time.Second)
		l.mu.Lock()
		asked := l.asks[c.ID]
		l.mu.Unlock()
		if asked != 2 {
			t.Errorf("the ledger was asked %d times, want 2", asked)
		}
		answers := see(g, func() []ticket.Answered { return slices.Clone(g.answers) })
		if len(answers) != 1 || answers[0].Claim != c.ID || answers[0].Answer != ticket.AnswerFirst {
			t.Errorf("answers %+v, want one: first", answers)
		}
		if s := g.wire.Stats(); s.Repeated != 1 || s.Unanswered != 0 || !g.wire.Link().Up {
			t.Errorf("repeated %d, unanswered %d, link %s", s.Repeated, s.Unanswered, g.wire.Link().Word())
		}
	})
}

// TestAnswerAfterItsRecords: a refusal's records are learned before the answer,
// and a late answer is still told.
func TestAnswerAfterItsRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, a, b := w.ledger("main"), w.gate("a"), w.gate("b")
		settle(time.Second)
		b.net.Cut()
		first := a.claim(1)
		settle(100 * time.Millisecond)
		b.net.SetLink(wiretest.Link{Delay: 450 * time.Millisecond})
		second := b.claim(1)
		settle(5 * time.Second)
		answers := see(b, func() []ticket.Answered { return slices.Clone(b.answers) })
		if len(answers) != 1 || answers[0].Claim != second.ID || answers[0].Answer != ticket.AnswerSeen || answers[0].First != first.ID {
			t.Fatalf("answers %+v, want one: seen, citing %s", answers, first.ID)
		}
		if cited := see(b, func() []bool { return b.cited }); !slices.Equal(cited, []bool{true}) {
			t.Error("the cited claim's record was not learned before the answer")
		}
		if n := b.wire.Stats().Unanswered; n != 1 {
			t.Errorf("%d unanswered in time, want 1", n)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.answers[second.ID] != ticket.AnswerSeen {
			t.Error("the stored answer changed")
		}
	})
}

// TestNobodyThere: with the broker there and the ledger gone, an ask tells so at
// its repetition, not only at the end of the patience.
func TestNobodyThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		l.net.Cut()
		g.claim(1)
		settle(150 * time.Millisecond)
		if g.wire.Link().Up {
			t.Error("up, though nobody was there twice")
		}
	})
}

// TestStuckLedger: a ledger whose asks hang answers no probes, so that the link
// stays suspect and nobody waits.
func TestStuckLedger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		l.mu.Lock()
		l.blocked = make(chan struct{})
		l.mu.Unlock()
		g.claim(1)
		settle(4 * time.Second)
		for range 20 {
			g.event() // its upload is answered, and proves nothing
			settle(100 * time.Millisecond)
			if g.wire.Link().Up {
				t.Fatal("up, while the ledger's store hangs")
			}
		}
		l.mu.Lock()
		close(l.blocked)
		l.blocked = nil
		l.mu.Unlock()
		settle(3 * time.Second)
		if !g.wire.Link().Up || l.wire.Stats().HeldBack == 0 {
			t.Errorf("link %s after the store went on, %d probes held back", g.wire.Link().Word(), l.wire.Stats().HeldBack)
		}
	})
}

// TestPeek: its records are learned; peeks of one unit do not pile up.
func TestPeek(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.ledger("main")
		a, b := w.gate("a"), w.gate("b")
		b.net.Cut()
		settle(time.Second)
		a.claim(3)
		settle(time.Second)
		b.net.Heal()
		for range 50 {
			b.wire.Peek(unit(3))
		}
		settle(50 * time.Millisecond)
		if b.has("a", a.run) != 1 {
			t.Error("the peeked claim's record was not learned")
		}
	})
}

// TestForgedAuthor: a record under another's subject is refused and counted, by
// peers and by the ledger; an unreadable one hurts nobody.
func TestForgedAuthor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		l, g := w.ledger("main"), w.gate("a")
		settle(time.Second)
		evil := w.net.Conn("evil")
		r := ticket.Record{Source: "victim", Run: 9, Pos: 1, Event: &ticket.Event{Type: ticket.EventExit}}
		raw, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{"gate.evil.spend", "ledger.evil.spend"} {
			if err := evil.Publish(subject, raw); err != nil {
				t.Fatal(err)
			}
		}
		if err := evil.Publish("gate.evil.spend", []byte("junk")); err != nil {
			t.Fatal(err)
		}
		if err := evil.Publish("gate.evil.head", []byte("junk")); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		if s := g.wire.Stats(); s.Refused != 2 || s.Unreadable != 2 || s.Learned != 0 {
			t.Errorf("gate: refused %d, unreadable %d, learned %d", s.Refused, s.Unreadable, s.Learned)
		}
		if s := l.wire.Stats(); s.Refused != 1 || s.Unreadable != 2 || l.spends != 0 {
			t.Errorf("ledger: refused %d, unreadable %d, spends %d", s.Refused, s.Unreadable, l.spends)
		}
	})
}
