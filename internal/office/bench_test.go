package office_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/boltfile"
	"admitone/internal/kv"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
)

// orderRows is what an order of four tickets inserts: the key's row, the order, its
// charge and the tickets, with what their bodies come to.
var orderRows = []int{1500, 330, 240, 260, 260, 260, 260}

// BenchmarkOrder sells four tickets and inserts as many bare rows of that size, in
// turns, each durably: the ratio of their medians is what everything else costs.
// BENCH_DIR names a directory on a disk where the temporary one is none.
func BenchmarkOrder(b *testing.B) {
	b.Run("file", func(b *testing.B) {
		f, err := boltfile.Open(b.Context(), filepath.Join(onDisk(b), "ledger.db"), boltfile.Options{Name: "ledger", Version: 1})
		if err != nil {
			b.Fatal(err)
		}
		store := ledgerstore.New(f)
		b.Cleanup(func() { store.Close() })
		benchOrder(b, store.Books(), func() error {
			return f.Update(context.Background(), func(tx kv.Tx) error {
				for _, n := range orderRows {
					if err := tx.Put("bare", []byte(rand.Text()), make([]byte, n)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	b.Run("postgres", func(b *testing.B) {
		s, err := pgtest.Start()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		store, err := pgstore.Open(b.Context(), pgstore.Options{URL: s.Database(b), Process: "1", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		benchOrder(b, store.Books(), func() error {
			return store.Books().Update(context.Background(), func(tx office.Tx) error {
				for _, n := range orderRows {
					if _, err := tx.Add(office.Row{Table: "bare", ID: rand.Text(), Body: make([]byte, n)}); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

func onDisk(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("BENCH_DIR"), b.TempDir()), "store")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		b.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC {
		b.Fatalf("%s is in memory: set BENCH_DIR to a directory on a disk", dir)
	}
	return dir
}

func benchOrder(b *testing.B, books office.Books, bare func() error) {
	s := newStage(b)
	s.books = books
	o, _ := s.open("1", nil)
	sell := func() error {
		r, err := o.Sell(context.Background(), s.intent(rand.Text()), sale(4, office.Cash))
		if err == nil && r.Outcome != seen.Won {
			err = fmt.Errorf("outcome %d", r.Outcome)
		}
		return err
	}
	timed := func(fn func() error) time.Duration {
		began := time.Now()
		if err := fn(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var orders, inserts []time.Duration
	for b.Loop() {
		orders, inserts = append(orders, timed(sell)), append(inserts, timed(bare))
	}
	order, insert := median(orders), median(inserts)
	b.ReportMetric(float64(order.Microseconds()), "µs/order")
	b.ReportMetric(float64(insert.Microseconds()), "µs/insert")
	b.ReportMetric(float64(order)/float64(insert), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
