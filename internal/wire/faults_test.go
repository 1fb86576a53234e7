package wire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

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
