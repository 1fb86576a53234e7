package boltfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/kv"
)

// onDisk gives a new directory on a real disk: beside the package, or in
// BENCH_DIR. A file system in memory has no flush to measure.
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

func openBench(b *testing.B, dir string, synced bool) *File {
	b.Helper()
	f, err := Open(b.Context(), filepath.Join(dir, "store.db"), Options{Name: "bench", Version: 1, SyncFreelist: synced})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return f
}

// claim writes what an admission's commit does: the ticket's row, the record's, and
// the cursor, about 300 bytes.
func claim(tx kv.Tx, n uint64) error {
	ticket := binary.BigEndian.AppendUint64([]byte("event/ticket/"), n*0x9E3779B97F4A7C15) // spread, as tickets are
	pos := binary.BigEndian.AppendUint64(nil, n)
	return errors.Join(
		tx.Put("seen", ticket, make([]byte, 110)),
		tx.Put("records", pos, make([]byte, 160)),
		tx.Put("cursors", []byte("own"), pos))
}

func p50(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}

// BenchmarkCommit alternates one claim's commit with an append of 150 bytes and its
// fdatasync, which is the least that a durable log could cost, and gives the
// medians and their ratio, and the flushes of a commit as strace counts them.
func BenchmarkCommit(b *testing.B) {
	for _, synced := range []bool{false, true} {
		b.Run("SyncFreelist="+strconv.FormatBool(synced), func(b *testing.B) { benchCommit(b, synced) })
	}
}

func benchCommit(b *testing.B, synced bool) {
	dir := onDisk(b)
	f := openBench(b, dir, synced)
	wal, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer wal.Close()
	preload(b, f, 20_000)
	var commits, appends []time.Duration
	var n uint64 = 1 << 32
	for b.Loop() {
		n++
		start := time.Now()
		if err := f.Update(b.Context(), func(tx kv.Tx) error { return claim(tx, n) }); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		_, err := wal.Write(make([]byte, 150))
		if err = errors.Join(err, unix.Fdatasync(int(wal.Fd()))); err != nil {
			b.Fatal(err)
		}
		commits, appends = append(commits, middle.Sub(start)), append(appends, time.Since(middle))
	}
	c, a := p50(commits), p50(appends)
	b.ReportMetric(c/1e3, "µs/commit-p50")
	b.ReportMetric(a/1e3, "µs/append-p50")
	b.ReportMetric(c/a, "ratio")
	const counted = 100
	syncs, _ := flushes(b, "child-commits", strconv.Itoa(counted))
	b.ReportMetric(float64(syncs)/counted, "flushes/commit")
}

func preload(b *testing.B, f *File, rows uint64) {
	b.Helper()
	const batch = 1000
	for from := uint64(0); from < rows; from += batch {
		err := f.Update(b.Context(), func(tx kv.Tx) error {
			for i := range uint64(batch) {
				if err := claim(tx, from+i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallers has 1 and 64 callers write claims at once.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			f := openBench(b, onDisk(b), false)
			preload(b, f, 20_000)
			before, err := f.Stats()
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Uint64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for i := n.Add(1); i <= uint64(b.N); i = n.Add(1) {
						if err := f.Update(b.Context(), func(tx kv.Tx) error { return claim(tx, 1<<32+i) }); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after, err := f.Stats()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
			b.ReportMetric(float64(after.Functions-before.Functions)/float64(after.Commits-before.Commits), "claims/commit")
		})
	}
}

// BenchmarkOpen opens stores of several sizes, with and without a freelist in the
// file, and checks them in a child.
func BenchmarkOpen(b *testing.B) {
	for _, rows := range []uint64{10_000, 100_000, 400_000} {
		for _, synced := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/SyncFreelist=%v", rows, synced), func(b *testing.B) {
				dir := onDisk(b)
				f := openBench(b, dir, synced)
				preload(b, f, rows)
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if err := openBench(b, dir, synced).Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				start := time.Now()
				if err := VerifyInChild(b.Context(), os.Args[0], []string{"child-verify"}, filepath.Join(dir, "store.db")); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(start)), "ns/verify")
			})
		}
	}
}
