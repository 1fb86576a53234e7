package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

const event = "fair"

var begin = time.Date(2030, 6, 1, 18, 0, 0, 0, time.UTC)

// clock is a ledger's or gate's wall clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// rig is a ledger on a store in memory.
type rig struct {
	*ledger.Ledger
	t     testing.TB
	mem   kv.Store
	store *ledgerstore.Store
	clock *clock
	log   *bytes.Buffer
	runs  *uint64
}

func key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

func newRig(t testing.TB) *rig {
	r := openRig(t, kv.NewMem(), &clock{t: begin}, new(uint64))
	r.push(0)
	return r
}

// openRig opens a ledger on a store that may hold something; each opening of one
// rig has another run.
func openRig(t testing.TB, mem kv.Store, c *clock, runs *uint64) *rig {
	r := &rig{t: t, mem: mem, store: ledgerstore.New(mem), clock: c, log: &bytes.Buffer{}, runs: runs}
	l, err := ledger.New(ledgertest.Twice(r.store), ledger.Options{
		Process: "a", Now: c.now, Log: slog.New(slog.NewTextHandler(r.log, nil)), ProgrammeKey: key(),
		DeviceID: func(k string) (ticket.Source, error) {
			if !strings.HasPrefix(k, "U") {
				return "", errors.New("no public key")
			}
			return ticket.Source(strings.ToLower(k[1:])), nil
		},
		DeviceKey: func(k string) (ed25519.PublicKey, error) { return deviceKey(k).Public().(ed25519.PublicKey), nil },
		NewRun:    func() ticket.Run { *runs++; return ticket.Run(0xfeed0000 + *runs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Ledger = l
	t.Cleanup(func() { ledgertest.Check(t, r.store) })
	return r
}

func programme() ticket.Programme {
	pub := key().Public().(ed25519.PublicKey)
	return ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: event, Open: begin.Add(-time.Hour), Close: begin.Add(5 * time.Hour), Forget: begin.Add(24 * time.Hour),
		Formats: []string{"a1", "code"}, Keys: []ticket.ProgrammeKey{{ID: ticket.KeyID(pub), Public: hex.EncodeToString(pub)}},
		CodeKey: strings.Repeat("ab", 32),
	}}}
}

func (r *rig) push(version uint64) uint64 {
	p := programme()
	p.Version = version
	v, err := r.PushProgramme(context.Background(), p)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) dump() map[string][]byte { return ledgertest.Dump(r.t, r.mem) }

// announced counts the log lines that announce a conflict.
func (r *rig) announced() int { return strings.Count(r.log.String(), "msg=conflict conflict=") }

func (r *rig) conflicts() []ledger.Conflict {
	out, _, err := r.Conflicts(context.Background(), "", 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) alarms(kind ledger.AlarmKind) (out []ledger.AlarmReport) {
	all, _, err := r.Alarms(context.Background(), "", 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range all {
		if a.Kind == kind {
			out = append(out, a)
		}
	}
	return out
}

// gate writes records as a gate would.
type gate struct {
	src   ticket.Source
	run   ticket.Run
	log   [][]byte // log[i] is position i+1
	clock *clock
	class ticket.Class
}

func newGate(name string, c *clock) *gate {
	return &gate{src: ticket.Source(name), run: ticket.Run(len(name)) + 0xa0, clock: c}
}

func unit(n int) ticket.Unit {
	u := ticket.Unit{Event: event, Format: ticket.FormatA1}
	copy(u.Ticket[:], fmt.Sprintf("%016d", n))
	return u
}

func (g *gate) write(rec ticket.Record) []byte {
	rec.Source, rec.Run, rec.Pos = g.src, g.run, uint64(len(g.log)+1)
	raw, err := rec.Encode()
	if err != nil {
		panic(err)
	}
	g.log = append(g.log, raw)
	return raw
}

func (g *gate) claim(u ticket.Unit, after ...ticket.Ref) ticket.Claim {
	now := g.clock.now().UnixNano()
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: g.src, Run: g.run, Pos: uint64(len(g.log) + 1)}, Unit: u, State: ticket.Pending,
		Claimed: ticket.Stamp{Wall: now, Class: g.class, Bound: int64(10 * time.Millisecond)},
		At:      now, Place: "place " + string(g.src), Lease: 25 * time.Second, After: after,
	}
	g.write(ticket.Record{Claim: &c})
	return c
}

// revise writes the next revision of a claim.
func (g *gate) revise(c ticket.Claim, state ticket.State) ticket.Claim {
	c.Rev++
	c.State, c.At = state, g.clock.now().UnixNano()
	g.write(ticket.Record{Claim: &c})
	return c
}

func (g *gate) raw(c ticket.Claim) []byte { return g.log[c.ID.Pos-1] }

func (r *rig) ask(g *gate, c ticket.Claim) ledger.AskReply {
	r.t.Helper()
	out, err := r.Ask(context.Background(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{g.raw(c)}})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) want(g *gate, c ticket.Claim, a ticket.Answer) ledger.AskReply {
	r.t.Helper()
	out := r.ask(g, c)
	if out.Answer != a {
		r.t.Fatalf("ask about %s: %q, want %q", c.ID, out.Answer, a)
	}
	return out
}

// upload sends all of a gate's records from a position on.
func (r *rig) upload(g *gate, from int) ledger.UploadReply {
	r.t.Helper()
	out, err := r.Upload(context.Background(), g.src, ledger.Upload{Run: g.run, From: uint64(from), Records: g.log[from-1:]})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) high(g *gate) uint64 {
	r.t.Helper()
	out, err := r.Hello(context.Background(), g.src, ledger.Hello{Place: "place " + string(g.src),
		Runs: []ticket.StreamPos{{Source: g.src, Run: g.run, Pos: uint64(len(g.log))}}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range out.High {
		if p.Run == g.run {
			return p.Pos
		}
	}
	return 0
}

func sortConflicts(c []ledger.Conflict) []ledger.Conflict {
	slices.SortFunc(c, func(a, b ledger.Conflict) int { return strings.Compare(a.ID, b.ID) })
	return c
}
