package pgstore_test

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
	"admitone/internal/seen/seentest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open opens a store that ends with the test. The test's server writes to no disk;
// on a machine that is busy with other tests nothing is too slow, unless the test
// says when.
func open(t testing.TB, o pgstore.Options) *pgstore.Store {
	t.Helper()
	o.Volatile = true
	o.LockTimeout, o.StatementTimeout = cmp.Or(o.LockTimeout, time.Minute), cmp.Or(o.StatementTimeout, time.Minute)
	if o.Log == nil {
		o.Log = discard()
	}
	s, err := pgstore.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestLedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return open(t, pgstore.Options{URL: pgtest.Database(t)}) })
}

func TestOffice(t *testing.T) {
	ledgertest.RunOffice(t, func(t *testing.T) office.Books { return open(t, pgstore.Options{URL: pgtest.Database(t)}).Books() })
}

// TestSeen runs the suite of the seen table in this store's transactions, where
// statements are put off, but for the race, which package pgseen's tests have. One
// database serves all its parts.
func TestSeen(t *testing.T) {
	s := open(t, pgstore.Options{URL: pgtest.Database(t)})
	update := func(ctx context.Context, fn func(seen.Tx) error) error {
		return s.Update(ctx, func(tx ledger.Tx) error { return fn(tx.Seen()) })
	}
	seentest.Steps(t, func(t *testing.T) seentest.Store {
		for _, endpoint := range []string{"hook", "hooks", "order", "e", "es", "E"} {
			err := update(context.Background(), func(tx seen.Tx) error {
				for _, scope := range []string{"", "s", "event", "event2", "even", "s/", "si", "s\x00"} {
					if _, err := tx.PruneScope(endpoint, scope, 1e6); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return seentest.Func(update)
	})
}
