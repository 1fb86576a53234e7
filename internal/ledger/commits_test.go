package ledger_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

// spread is a unit with a ticket's id as they are: anywhere.
func spread(n int) ticket.Unit {
	u := unit(0)
	id := sha256.Sum256([]byte(fmt.Sprint(n)))
	copy(u.Ticket[:], id[:])
	return u
}

// onlyLedger is a ledger straight on a store.
func onlyLedger(t *testing.T, s kv.Store, c *clock) *ledger.Ledger {
	t.Helper()
	l, err := ledger.New(ledgerstore.New(s), ledger.Options{
		Process: "a", Now: c.now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key(),
	})
	if err == nil {
		_, err = l.PushProgramme(t.Context(), programme())
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func admit(t *testing.T, l *ledger.Ledger, g *gate, u ticket.Unit) {
	t.Helper()
	c := g.claim(u)
	out, err := l.Ask(context.Background(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{g.raw(c)}})
	if err != nil || out.Answer != ticket.AnswerFirst {
		t.Errorf("ask about %s: %q, %v", c.ID, out.Answer, err)
	}
}

// TestAsksShareCommits: of 64 gates that ask all the time, those that are not in the
// flush are all in the next commit.
func TestAsksShareCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gates, rounds = 64, 10
		mem := kv.NewMem()
		c := &clock{t: begin}
		l := onlyLedger(t, mem, c)
		before := mem.Commits()
		mem.OnCommit(func(int) kv.Fate { time.Sleep(time.Millisecond); return kv.Durable })
		var wg sync.WaitGroup
		for i := range gates {
			g := newGate(fmt.Sprintf("gate%02d", i), c)
			wg.Go(func() {
				for n := range rounds {
					admit(t, l, g, unit(100*i+n))
				}
			})
		}
		wg.Wait()
		// Two halves take turns: each has a commit in each round.
		if n := mem.Commits() - before; n > 2*rounds+2 {
			t.Errorf("%d asks of %d gates in %d commits", gates*rounds, gates, n)
		}
	})
}

// TestPagesOfAnAsk: an ask by itself writes one leaf for its record, one for all
// that is kept of its unit, two for the lists and marks, and what is above them.
func TestPagesOfAnAsk(t *testing.T) {
	f, err := boltfile.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), boltfile.Options{Name: "ledger", Version: ledgerstore.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &clock{t: begin}
	l := onlyLedger(t, f, c)
	const warm, counted, most = 200, 100, 7.8
	g := newGate("gate00", c)
	var before boltfile.Stats
	for n := range warm + counted {
		if n == warm {
			if before, err = f.Stats(); err != nil {
				t.Fatal(err)
			}
		}
		admit(t, l, g, spread(n))
	}
	after, err := f.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if p := float64(after.Pages-before.Pages) / counted; p > most {
		t.Errorf("%.2f pages an ask, at most %v", p, most)
	} else {
		t.Logf("%.2f pages an ask", p)
	}
	if n := after.Commits - before.Commits; n != counted {
		t.Errorf("%d commits for %d asks", n, counted)
	}
}
