package ledger_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

const tmpfs = 0x01021994 // statfs(2)

// BenchmarkAsk1 is one caller, who waits for each answer; BenchmarkAsk64 are 64 at
// once. The ratio of their rates is what group commit brings: at least 6. They
// need a disk: on tmpfs a flush costs nothing.
func BenchmarkAsk1(b *testing.B)  { benchmarkAsk(b, 1) }
func BenchmarkAsk64(b *testing.B) { benchmarkAsk(b, 64) }

func benchmarkAsk(b *testing.B, callers int) {
	l, f := fileLedger(b)
	gates := make([]*gate, callers)
	for i := range gates {
		gates[i] = newGate(fmt.Sprintf("gate%02d", i), &clock{t: time.Now()})
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, g := range gates {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				u := unit(0)
				id := sha256.Sum256([]byte(fmt.Sprint(n))) // rows all over the file, as tickets' ids are
				copy(u.Ticket[:], id[:])
				c := g.claim(u)
				out, err := l.Ask(context.Background(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{g.raw(c)}})
				if err != nil || out.Answer != ticket.AnswerFirst {
					b.Error(out.Answer, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "asks/s")
	if s, err := f.Stats(); err == nil {
		b.ReportMetric(float64(s.Functions)/float64(s.Commits), "asks/commit")
		b.ReportMetric(float64(s.Pages)/float64(s.Functions), "pages/ask")
	}
}

// fileLedger opens a ledger on a bbolt file below the working directory, which is
// on a disk where the repository is.
func fileLedger(b *testing.B) (*ledger.Ledger, *boltfile.File) {
	dir, err := os.MkdirTemp(".", ".bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type == tmpfs {
		b.Fatalf("%s is on tmpfs (%v): run the benchmark on a disk", dir, err)
	}
	f, err := boltfile.Open(context.Background(), filepath.Join(dir, "ledger.db"), boltfile.Options{Name: "ledger", Version: ledgerstore.Version, MaxSize: 4 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	l, err := ledger.New(ledgerstore.New(f), ledger.Options{
		Process: "a", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key(),
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := l.PushProgramme(context.Background(), programme()); err != nil {
		b.Fatal(err)
	}
	return l, f
}
