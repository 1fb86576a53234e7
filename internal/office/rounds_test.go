package office_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"admitone/internal/boltfile"
	"admitone/internal/kv"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rounds is how many rounds a store gets: by ORDER_ROUNDS, or so many that they fit
// into every run of the tests.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("ORDER_ROUNDS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRounds: fifty at once with one key, a thousand times over the stores: one
// charge and one order each, and the same bytes for all. On PostgreSQL the fifty are
// callers of two ledgers.
func TestRounds(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := newStage(t)
		s.books = ledgerstore.New(kv.NewMem()).Books()
		s.rounds(rounds(t, 1000), s.books)
	})
	t.Run("file", func(t *testing.T) {
		f, err := boltfile.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), boltfile.Options{Name: "ledger", Version: 1})
		if err != nil {
			t.Fatal(err)
		}
		store := ledgerstore.New(f)
		t.Cleanup(func() { store.Close() })
		newStage(t).rounds(rounds(t, 300), store.Books())
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		var books []office.Books
		for i := range 2 {
			store, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Process: fmt.Sprint(i), Volatile: true, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			books = append(books, store.Books())
		}
		newStage(t).rounds(rounds(t, 200), books...)
	})
}

func (s *stage) rounds(n int, books ...office.Books) {
	const callers = 50
	var offices []*office.Office
	for i, b := range books {
		s.books = b
		o, _ := s.open(fmt.Sprint(i), nil)
		offices = append(offices, o)
	}
	for k := range n {
		in := s.intent(fmt.Sprint(k))
		var replies [callers]office.Reply
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				var err error
				replies[i], err = offices[i%len(offices)].Sell(context.Background(), in, sale(1, office.Cash))
				if err != nil {
					s.t.Errorf("sell: %v", err)
				}
			})
		}
		wg.Wait()
		won := 0
		for _, r := range replies {
			if r.Outcome == seen.Won {
				won++
			}
			if string(r.Answer) != string(replies[0].Answer) || len(r.Answer) == 0 {
				s.t.Fatalf("round %d: one got %q, another %q", k, replies[0].Answer, r.Answer)
			}
		}
		if won != 1 {
			s.t.Fatalf("round %d: %d won", k, won)
		}
	}
	if all := s.all(offices[0]); len(all) != n {
		s.t.Errorf("%d orders after %d rounds", len(all), n)
	}
}
