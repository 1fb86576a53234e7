package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestSeveralLedgersSendOnce: on one PostgreSQL, where they are not serialised,
// several processes lease each message once.
func TestSeveralLedgersSendOnce(t *testing.T) {
	url := pgtest.Database(t)
	const ledgers, messages = 4, 120
	all := make([]*Outbox, ledgers)
	v := newReceiver(t, time.Now)
	var books office.Books
	for i := range all {
		store, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Process: fmt.Sprint(i), Volatile: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		books = store.Books()
		endpoint := (&bench{t: t}).to(v)
		if all[i], err = New(Options{Books: books, Endpoints: []Endpoint{endpoint}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		if err := books.Update(t.Context(), func(tx office.Tx) error { return all[0].Add(tx, "x", time.Now(), i) }); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for _, o := range all {
		wg.Go(func() {
			for idle := 0; idle < 3; {
				n, err := o.pass(context.Background(), o.opt.Endpoints[0])
				if err != nil {
					t.Error(err)
					return
				}
				if idle++; n > 0 {
					idle = 0
				}
			}
		})
	}
	wg.Wait()
	ids := map[string]int{}
	for _, r := range v.all() {
		ids[r.id]++
	}
	if len(ids) != messages || len(v.all()) != messages {
		t.Errorf("%d messages in %d requests, want %d once each", len(ids), len(v.all()), messages)
	}
}
