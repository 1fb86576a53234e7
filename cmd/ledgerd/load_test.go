package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

const (
	loadGates = 200
	loadEvent = "fair"
	tmpfs     = 0x01021994 // statfs(2)
)

// hall is a ledger in role all with its broker, as serveLedger puts it together,
// and gates that are connected to it over TLS.
type hall struct {
	file  *boltfile.File
	conn  *wire.NATS // the ledger's
	gates []*asker
}

// asker is a gate that does nothing but ask.
type asker struct {
	conn *wire.NATS
	id   ticket.Source
	pos  uint64
}

// needs ends the test where there was an error.
func needs(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// openLedger opens a ledger on a file, with an event that is on.
func openLedger(tb testing.TB, ctx context.Context, dir string, key ed25519.PrivateKey) (*boltfile.File, *ledger.Ledger) {
	tb.Helper()
	file, err := boltfile.Open(ctx, filepath.Join(dir, "ledger.db"), boltfile.Options{Name: "ledger", Version: ledgerstore.Version, MaxSize: 4 << 30})
	needs(tb, err)
	l, err := ledger.New(ledgerstore.New(file), ledger.Options{
		Process: "a", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key, DeviceID: wire.DeviceID,
	})
	needs(tb, err)
	now, public := time.Now().Truncate(time.Second), key.Public().(ed25519.PublicKey)
	_, err = l.PushProgramme(ctx, ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: loadEvent, Open: now, Close: now.Add(time.Hour), Forget: now.Add(24 * time.Hour), Formats: []string{"a1"},
		Keys: []ticket.ProgrammeKey{{ID: ticket.KeyID(public), Public: hex.EncodeToString(public)}},
	}}})
	needs(tb, err)
	return file, l
}

func newHall(tb testing.TB, dir string, gates int) *hall {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	log := slog.New(slog.DiscardHandler)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	file, l := openLedger(tb, ctx, dir, key)
	tb.Cleanup(func() { cancel(); running.Wait(); needs(tb, file.Close()) })

	seed, ledgerKey, err := wire.NewDeviceKey()
	needs(tb, err)
	o, err := brokerOptions(config.Ledger{Process: "a", DataDir: dir, NATS: config.NATS{Listen: "127.0.0.1:0"}}, log, key.Public().(ed25519.PublicKey))
	needs(tb, err)
	o.Ledgers = []string{ledgerKey}
	pin, err := brokerPin(o)
	needs(tb, err)
	b, err := broker.New(o)
	needs(tb, err)
	svc, seeds := &service{Ledger: l, key: key}, make([]string, gates)
	h := &hall{file: file, gates: make([]*asker, gates)}
	for i := range gates {
		s, k, err := wire.NewDeviceKey()
		needs(tb, err)
		e, err := l.EnrolGate(ctx, fmt.Sprint("gate ", i), k, ledger.RoleGate)
		needs(tb, err)
		seeds[i], h.gates[i] = s, &asker{id: e.Device}
	}
	signed, err := svc.GateList(ctx)
	needs(tb, err)
	needs(tb, b.SetGates(signed))
	running.Go(func() { _ = b.Run(ctx) })
	<-b.Ready()

	h.conn, err = wire.Dial(ctx, wire.NATSOptions{InProcess: b, Seed: seed, Name: "ledger a", Log: log})
	needs(tb, err)
	serving, err := wire.NewLedger(h.conn, svc, wire.LedgerOptions{Process: "a", Log: log})
	needs(tb, err)
	running.Go(func() { _ = serving.Run(ctx) })
	for i, g := range h.gates {
		g.conn, err = wire.Dial(ctx, wire.NATSOptions{URLs: []string{b.URL()}, Seed: seeds[i], PinnedKeys: []string{pin}, Log: log})
		needs(tb, err)
	}
	for _, g := range h.gates {
		for up := range g.conn.Connected() {
			if up {
				break
			}
		}
	}
	return h
}

// ask makes the message that asks about a claim of a new ticket.
func (g *asker) ask(tb testing.TB) []byte {
	g.pos++
	now := time.Now().UnixNano()
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: g.id, Run: 0xa0, Pos: g.pos}, Unit: ticket.Unit{Event: loadEvent, Format: ticket.FormatA1}, State: ticket.Pending,
		Claimed: ticket.Stamp{Wall: now, Bound: int64(10 * time.Millisecond)}, At: now, Place: "gate", Lease: 25 * time.Second,
	}
	id := sha256.Sum256([]byte(c.ID.String())) // rows all over the file, as tickets' ids are
	copy(c.Unit.Ticket[:], id[:])
	raw, err := ticket.Record{Source: g.id, Run: c.ID.Run, Pos: c.ID.Pos, Claim: &c}.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	data, err := cbor.Marshal(wire.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{raw}})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// round has every gate send messages, each when the one before is answered. It
// gives how long all of it took, and each.
func (h *hall) round(tb testing.TB, verb string, messages [][][]byte, check func([]byte) error) (all time.Duration, each []time.Duration) {
	tb.Helper()
	took := make([][]time.Duration, len(h.gates))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, g := range h.gates {
		wg.Go(func() {
			for _, m := range messages[i] {
				start := time.Now()
				reply, err := g.conn.Request(context.Background(), "gate."+string(g.id)+"."+verb, m)
				took[i] = append(took[i], time.Since(start))
				if err == nil {
					err = check(reply)
				}
				if err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin), slices.Concat(took...)
}

// asks makes n asks for each gate.
func (h *hall) asks(tb testing.TB, n int) [][][]byte {
	out := make([][][]byte, len(h.gates))
	for i, g := range h.gates {
		for range n {
			out[i] = append(out[i], g.ask(tb))
		}
	}
	return out
}

// admitted checks the answer to an ask.
func admitted(reply []byte) error {
	var r wire.AskReply
	if err := cbor.Unmarshal(reply, &r); err != nil || r.Answer != ticket.AnswerFirst {
		return fmt.Errorf("answer %q: %w", r.Answer, err)
	}
	return nil
}

// BenchmarkGates has 200 gates ask over NATS, in turn with a bare echo by the same
// broker of messages as long, and gives the ratio of the rates, meant to be 0.3, and of
// an ask's p99 to its median, meant to be below 20. It needs a disk.
func BenchmarkGates(b *testing.B) {
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("BENCH_DIR"), "."), ".bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type == tmpfs {
		b.Fatalf("%s is on tmpfs (%v): set BENCH_DIR to a directory on a disk", dir, err)
	}
	h := newHall(b, dir, loadGates)
	var size atomic.Int64 // of an answer
	h.round(b, "ask", h.asks(b, 1), func(reply []byte) error { size.Store(int64(len(reply))); return admitted(reply) })
	answer := make([]byte, size.Load())
	if err := h.conn.Subscribe("gate.*.echo", "", func(m wire.Msg) { _ = m.Respond(answer) }); err != nil {
		b.Fatal(err)
	}
	const each = 50
	var asking, echoing time.Duration
	var all []time.Duration
	before, err := h.file.Stats()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		messages := h.asks(b, each)
		echo, _ := h.round(b, "echo", messages, func([]byte) error { return nil })
		ask, took := h.round(b, "ask", messages, admitted)
		echoing, asking, all = echoing+echo, asking+ask, append(all, took...)
	}
	slices.Sort(all)
	after, err := h.file.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(all))/asking.Seconds(), "asks/s")
	b.ReportMetric(float64(len(all))/echoing.Seconds(), "echoes/s")
	b.ReportMetric(echoing.Seconds()/asking.Seconds(), "ratio")
	b.ReportMetric(float64(all[len(all)/2])/1e6, "ms/ask-p50")
	b.ReportMetric(float64(all[len(all)*99/100])/float64(all[len(all)/2]), "p99/p50")
	b.ReportMetric(float64(after.Pages-before.Pages)/float64(after.Functions-before.Functions), "pages/ask")
	b.ReportMetric(float64(after.Functions-before.Functions)/float64(after.Commits-before.Commits), "asks/commit")
}
