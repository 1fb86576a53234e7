package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/config"
	"admitone/internal/ticket"
)

// onDisk refuses a file system that has no disk below it: a flush costs nothing there.
func onDisk(b *testing.B, dir string) {
	b.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		b.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC {
		b.Fatalf("%s is on a tmpfs: set TMPDIR to a folder on a disk", dir)
	}
}

// BenchmarkVerdict compares a gate's verdicts online (its claim, the ledger's, two
// brokers between them, TLS on each link) with those that it takes alone, in one
// run on loopback: milliseconds from the line's arrival to the verdict.
func BenchmarkVerdict(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "lab")
	onDisk(b, os.TempDir())
	l, err := Up(b.Context(), Options{Dir: dir, Gates: 1, Bin: bin, Lane: func(c *config.Lane) {
		// A turnstile that is done at once, so that no ticket waits for another.
		c.Turnstile.Inputs, c.Turnstile.Pulse, c.Turnstile.Gap = nil, config.Duration(time.Millisecond), config.Duration(10*time.Millisecond)
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Down()
	var online, offline []float64
	for b.Loop() {
		online = append(online, verdictTimes(b, l, true)...)
		if err := l.Cut("1", Down); err != nil {
			b.Fatal(err)
		}
		awaitLink(b, l, "alone")
		offline = append(offline, verdictTimes(b, l, false)...)
		if err := l.Heal("1"); err != nil {
			b.Fatal(err)
		}
		awaitLink(b, l, "up")
	}
	for what, ms := range map[string][]float64{"online": online, "offline": offline} {
		b.ReportMetric(at(ms, 0.5), what+"-p50-ms")
		b.ReportMetric(at(ms, 0.99), what+"-p99-ms")
	}
	b.ReportMetric(at(online, 0.99)/at(offline, 0.99), "p99-ratio")
	b.ReportMetric(at(online, 0.5)/at(offline, 0.5), "p50-ratio")
	b.ReportMetric(0, "ns/op")
}

func at(ms []float64, q float64) float64 {
	slices.Sort(ms)
	return ms[int(q*float64(len(ms)-1))]
}

// awaitLink waits until gate 1 stands to the others as the word says.
func awaitLink(b *testing.B, l *Lab, word string) {
	b.Helper()
	err := await(b.Context(), "link "+word, func(ctx context.Context) error {
		raw, err := l.Gate(1).Status(ctx)
		if err == nil && !strings.Contains(string(raw), `"link":"`+word+`"`) {
			err = errors.New(string(raw))
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// verdictTimes shows new tickets one after the other and gives each verdict's ms.
func verdictTimes(b *testing.B, l *Lab, online bool) (ms []float64) {
	b.Helper()
	texts, err := Mint(l.Dir(), 300, nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	seen := make(chan ticket.Verdict, 4)
	go l.Gate(1).Watch(ctx, func(line []byte) error {
		var v ticket.Verdict
		err := json.Unmarshal(line, &v)
		seen <- v
		return err
	})
	fifo, err := os.OpenFile(l.at.gate(1, "line"), os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer fifo.Close()
	for warm := false; !warm; { // until the watcher is there
		fifo.WriteString("junk\n")
		select {
		case <-seen:
			warm = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	for _, text := range texts {
		fifo.WriteString(text + "\n")
		v := <-seen
		for v.Reason == ticket.Busy || v.Reason == ticket.Invalid {
			v = <-seen
		}
		if v.Reason != ticket.OK || v.Online != online {
			b.Fatalf("%+v", v)
		}
		ms = append(ms, float64(v.Took)/1e6)
		time.Sleep(25 * time.Millisecond) // the pulse and its gap
	}
	return ms
}
