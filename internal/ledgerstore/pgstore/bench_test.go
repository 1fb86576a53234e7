package pgstore_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// BenchmarkAsk gives the asks a second that one ledger answers on a database on the
// same machine, whose commits reach the disk: of one gate, and of 16 and 64 at once.
func BenchmarkAsk(b *testing.B) {
	s := pgtest.New(b)
	if !s.OnDisk() {
		b.Fatalf("%s is on no disk: set TMPDIR", s.Dir())
	}
	store, err := pgstore.Open(b.Context(), pgstore.Options{URL: s.Database(b), Conns: 32, Log: discard()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	l, err := ledger.New(store, ledger.Options{Process: "a", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key()})
	if err != nil {
		b.Fatal(err)
	}
	push(b, l)
	tickets := 0
	for _, gates := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(gates), func(b *testing.B) {
			gs := make([]gate, gates)
			var asks [][]ticket.Claim
			for i := range gs {
				gs[i].src = ticket.Source(fmt.Sprintf("g%d-%d-%d", gates, b.N, i))
				var own []ticket.Claim
				for range (b.N + gates - 1) / gates {
					tickets++
					own = append(own, gs[i].claim(unitOf(tickets)))
				}
				asks = append(asks, own)
			}
			b.ResetTimer()
			var eg errgroup.Group
			for i := range gs {
				eg.Go(func() error {
					for _, c := range asks[i] {
						if r, err := gs[i].ask(l, c); err != nil || r.Answer != ticket.AnswerFirst {
							return fmt.Errorf("%+v, %w", r, err)
						}
					}
					return nil
				})
			}
			if err := eg.Wait(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "asks/s")
		})
	}
}
