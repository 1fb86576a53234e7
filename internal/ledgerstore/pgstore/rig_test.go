package pgstore_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/ticket"
)

const event = "fair"

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

// lines counts log lines that have a text.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// ledgers opens ledger processes on one database, with a programme on which the
// event is open, and checks the store when the test is over.
func ledgers(t testing.TB, url string, log *lines, o pgstore.Options, names ...string) []*ledger.Ledger {
	t.Helper()
	var out []*ledger.Ledger
	for i, name := range names {
		o.URL, o.Process = url, name
		store := open(t, o)
		l, err := ledger.New(store, ledger.Options{
			Process: name, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)), ProgrammeKey: key(),
			DeviceID: func(k string) (ticket.Source, error) { return ticket.Source(strings.ToLower(k)), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			push(t, l)
			t.Cleanup(func() {
				if !t.Failed() {
					ledgertest.Check(t, store)
				}
			})
		}
		out = append(out, l)
	}
	return out
}

func push(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	pub := key().Public().(ed25519.PublicKey)
	_, err := l.PushProgramme(context.Background(), ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: event, Open: now.Add(-time.Hour), Close: now.Add(time.Hour), Forget: now.Add(24 * time.Hour),
		Formats: []string{"a1"}, Keys: []ticket.ProgrammeKey{{ID: ticket.KeyID(pub), Public: hex.EncodeToString(pub)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

func unitOf(n int) ticket.Unit {
	u := ticket.Unit{Event: event, Format: ticket.FormatA1}
	copy(u.Ticket[:], fmt.Sprintf("%016d", n))
	return u
}

// gate writes records as a gate does.
type gate struct {
	src ticket.Source
	log [][]byte // log[i] is position i+1
}

const gateRun = ticket.Run(0xa0)

func (g *gate) write(c *ticket.Claim) []byte {
	raw, err := ticket.Record{Source: g.src, Run: gateRun, Pos: uint64(len(g.log) + 1), Claim: c}.Encode()
	if err != nil {
		panic(err)
	}
	g.log = append(g.log, raw)
	return raw
}

func (g *gate) claim(u ticket.Unit) ticket.Claim {
	now := time.Now().UnixNano()
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: g.src, Run: gateRun, Pos: uint64(len(g.log) + 1)}, Unit: u, State: ticket.Pending,
		Claimed: ticket.Stamp{Wall: now, Bound: int64(time.Millisecond)}, At: now, Place: "place " + string(g.src), Lease: time.Minute,
	}
	g.write(&c)
	return c
}

func (g *gate) revise(c ticket.Claim, state ticket.State) ticket.Claim {
	c.Rev++
	c.State = state
	g.write(&c)
	return c
}

func (g *gate) ask(l *ledger.Ledger, c ticket.Claim) (ledger.AskReply, error) {
	return l.Ask(context.Background(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{g.log[c.ID.Pos-1]}})
}

func (g *gate) upload(l *ledger.Ledger) (ledger.UploadReply, error) {
	return l.Upload(context.Background(), g.src, ledger.Upload{Run: gateRun, From: 1, Records: g.log})
}
