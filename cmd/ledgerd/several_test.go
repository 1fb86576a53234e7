package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/gatestore"
	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// process is a real ledgerd of role ledger.
type process struct {
	cmd   *exec.Cmd
	said  *said
	ended chan error
	api   *ledgerhttp.Client
}

// site is one database, one broker, and ledgers and gates about it.
type site struct {
	t      *testing.T
	exe    string
	url    string
	broker *broker.Broker
	keys   string // file of the programme key
	sign   ed25519.PrivateKey
	seeds  map[string]string // by process
}

func newSite(t *testing.T, names ...string) *site {
	file, key := programmeKey(t)
	s := &site{t: t, exe: build(t), url: pgtest.New(t).Database(t), keys: file, sign: key, seeds: map[string]string{}}
	o := broker.Options{
		Name: "external", Listen: "127.0.0.1:0", Plain: true, ListKey: key.Public().(ed25519.PublicKey), Log: slog.New(slog.DiscardHandler),
	}
	for _, name := range names {
		seed, public, err := wire.NewDeviceKey()
		if err != nil {
			t.Fatal(err)
		}
		s.seeds[name], o.Ledgers = seed, append(o.Ledgers, public)
	}
	var err error
	if s.broker, err = broker.New(o); err != nil {
		t.Fatal(err)
	}
	s.background(s.broker.Run)
	<-s.broker.Ready()
	return s
}

// background runs something until the test is over.
func (s *site) background(run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	var eg errgroup.Group
	eg.Go(func() error { return run(ctx) })
	s.t.Cleanup(func() {
		stop()
		if err := eg.Wait(); err != nil {
			s.t.Error(err)
		}
	})
}

// start starts a process; where serves is set, until it serves.
func (s *site) start(name string, serves bool) *process {
	s.t.Helper()
	dir := s.t.TempDir()
	writeFile(s.t, filepath.Join(dir, "nats.seed"), s.seeds[name])
	config := writeFile(s.t, filepath.Join(dir, "ledgerd.toml"), fmt.Sprintf(`role = "ledger"
process = %q
data_dir = "data"
programme_key = %q
[store]
driver = "postgres"
url = %q
[http]
listen = "127.0.0.1:0"
[nats]
upstream = [%q]
upstream_seed = "nats.seed"
[[signer]]
name = "ops"
public = %q
scopes = ["admin"]
`, name, s.keys, s.url, s.broker.URL(), hex.EncodeToString(s.sign.Public().(ed25519.PublicKey))))
	p := &process{cmd: exec.Command(s.exe, "-config", config), said: newSaid(), ended: make(chan error, 1)}
	p.cmd.Stderr = p.said
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			s.t.Logf("ledger %s said:\n%s", name, p.said)
		}
	})
	if !serves {
		return p
	}
	line := p.said.await(s.t, `msg="ledger serves"`, p.ended)
	_, at, _ := strings.Cut(line, "http=")
	at, _, _ = strings.Cut(at, " ")
	var err error
	if p.api, err = ledgerhttp.NewClient("http://"+at, "", s.sign); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// kill is SIGKILL; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // gone already, perhaps
	p.ended <- <-p.ended
}

// box is a gate's store and its side of the wire, without a turnstile.
type box struct {
	device ticket.Source
	store  *gatestore.Store
	wire   *wire.Gate

	mu      sync.Mutex
	waiting map[ticket.ClaimID]chan ticket.Answered
}

func (s *site) gate(l *ledger.Ledger, place string) *box {
	s.t.Helper()
	seed, public, err := wire.NewDeviceKey()
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := l.EnrolGate(s.t.Context(), place, public, ledger.RoleGate)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &box{device: e.Device, waiting: map[ticket.ClaimID]chan ticket.Answered{}}
	if b.store, err = gatestore.New(s.t.Context(), kv.NewMem(), gatestore.Options{Device: b.device}); err != nil {
		s.t.Fatal(err)
	}
	s.background(func(ctx context.Context) error {
		log := slog.New(slog.DiscardHandler)
		conn, err := wire.Dial(ctx, wire.NATSOptions{URLs: []string{s.broker.URL()}, Seed: seed, Plain: true, Name: place, Log: log})
		if err != nil {
			return err
		}
		defer conn.Close()
		g, err := wire.NewGate(conn, b.store, b, wire.GateOptions{Device: b.device, Log: log, LedgerPatience: time.Minute})
		if err != nil {
			return err
		}
		b.mu.Lock()
		b.wire = g
		b.mu.Unlock()
		return g.Run(ctx)
	})
	return b
}

func (b *box) Learn(ctx context.Context, _ bool, arrived []ticket.Arrival) error {
	_, err := b.store.Learn(ctx, arrived)
	return err
}

func (b *box) Answered(a ticket.Answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.waiting[a.Claim]; w != nil {
		select {
		case w <- a:
		default: // a second answer to a claim that was asked twice
		}
	}
}

func (b *box) LedgerTime(int64, int64)           {}
func (b *box) LinkChanged()                      {}
func (b *box) OwnRunAhead(ticket.Stream, uint64) {}
func (b *box) CatchUpChanged(bool)               {}

// ask claims a unit in the gate's store, tells everybody, and asks until there is an
// answer. The claim is then settled by it, as a gate settles it.
func (b *box) ask(ctx context.Context, u ticket.Unit) (ticket.Answered, error) {
	made, err := b.store.Claim(ctx, ticket.Claim{
		Unit: u, Place: string(b.device), Lease: time.Minute, At: time.Now().UnixNano(), Claimed: ticket.Stamp{Wall: time.Now().UnixNano()},
	}, nil, nil)
	if err != nil || made.Reason != ticket.OK {
		return ticket.Answered{Answer: ticket.AnswerSeen}, err // a peer's claim was here first
	}
	c := *made.Record.Claim
	answer := make(chan ticket.Answered, 1)
	b.mu.Lock()
	b.waiting[c.ID] = answer
	g := b.wire
	b.mu.Unlock()
	g.Publish(made.Record)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		g.Ask(c)
		select {
		case a := <-answer:
			state := ticket.Refused
			if a.Answer == ticket.AnswerFirst {
				state = ticket.Admitted
			}
			rec, _, err := b.store.Revise(ctx, c.ID, func(c *ticket.Claim) bool { c.State = state; return true })
			g.Publish(rec)
			return a, err
		case <-again.C:
		case <-ctx.Done():
			return ticket.Answered{}, ctx.Err()
		}
	}
}

// has reports how far the gate has a run.
func (b *box) has(s ticket.Stream) uint64 {
	at, err := b.store.Cursors()
	if err != nil {
		return 0
	}
	i := slices.IndexFunc(at, func(p ticket.StreamPos) bool { return p.Stream() == s })
	if i < 0 {
		return 0
	}
	return at[i].Pos
}

// TestOneOfTwoLedgersIsKilled: two ledgerd on one database answer gates over an
// external NATS, while an operator revokes tickets at both. One is killed under this
// load and comes back. No ticket has two firsts; every ask is answered in the end;
// every revocation that was confirmed reaches every gate; and the ledgers hold all
// that the gates wrote. A third ledgerd of a name that is taken is refused.
func TestOneOfTwoLedgersIsKilled(t *testing.T) {
	const tickets, revoked = 30, 20
	ctx := t.Context()
	s := newSite(t, "a", "b")
	store, err := pgstore.Open(ctx, pgstore.Options{URL: s.url, Process: "setup", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := openFair(t, store, s.sign)
	gates := []*box{s.gate(l, "North"), s.gate(l, "South"), s.gate(l, "East")}
	a, b := s.start("a", true), s.start("b", true)
	twin := s.start("a", false)
	twin.said.await(t, "another ledger process has this name", nil)
	if err := <-twin.ended; err == nil || twin.cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("a second process of one name: %v", err)
	}
	twin.ended <- nil
	s.settled(l, gates) // they are connected, and have the programme
	var load errgroup.Group
	half, killed := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	firsts, answered := map[int]int{}, 0
	for _, g := range gates {
		load.Go(func() error {
			for n := range tickets {
				r, err := g.ask(ctx, fairUnit(n))
				if err != nil {
					return err
				}
				mu.Lock()
				if r.Answer == ticket.AnswerFirst {
					firsts[n]++
				}
				if answered++; answered == tickets {
					close(half)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	var confirmed []ticket.Unit
	load.Go(func() error {
		at := []*process{a, b}
		for n := range revoked {
			u := fairUnit(1000 + n)
			if n == revoked/2 {
				<-killed
			}
			err := at[n%2].api.Revoke(ctx, u.Format, u.Ticket, true)
			if err == nil {
				confirmed = append(confirmed, u)
			} else if at[n%2] == b {
				return fmt.Errorf("revocation %d, at the ledger that lives: %w", n, err)
			}
		}
		return nil
	})
	<-half
	a.kill()
	close(killed)
	if err := load.Wait(); err != nil {
		t.Fatal(err)
	}
	again := s.start("a", true)
	u := fairUnit(2000)
	if err := again.api.Revoke(ctx, u.Format, u.Ticket, true); err != nil {
		t.Fatal(err)
	}
	confirmed = append(confirmed, u)
	for n := range tickets {
		if firsts[n] != 1 {
			t.Errorf("ticket %d has %d firsts", n, firsts[n])
		}
	}
	s.settled(l, gates)
	for _, g := range gates {
		for _, u := range confirmed {
			if v, err := g.store.View(u); err != nil || !v.Revoked {
				t.Errorf("gate %s does not know that ticket %s is revoked (%v)", g.device, u.Ticket, err)
			}
		}
	}
	feeds := map[ticket.Source]bool{}
	for _, p := range s.heads(l) {
		if strings.HasPrefix(string(p.Source), "ledger/") {
			feeds[p.Source] = true
		}
	}
	if !feeds["ledger/a"] || !feeds["ledger/b"] {
		t.Errorf("feeds of %v, want of both ledgers", feeds)
	}
	ledgertest.Check(t, store)
}

// heads gives how far each run is held at the centre.
func (s *site) heads(l *ledger.Ledger) []ticket.StreamPos {
	r, err := l.Hello(s.t.Context(), "nobody", ledger.Hello{Place: "-"})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Heads
}

// settled returns when the centre and all gates have the same.
func (s *site) settled(l *ledger.Ledger, gates []*box) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	for {
		behind := s.behind(l, gates)
		if behind == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			s.t.Fatal(behind)
		}
	}
}

func (s *site) behind(l *ledger.Ledger, gates []*box) error {
	heads := s.heads(l)
	for _, g := range gates {
		own, err := g.store.Own()
		if err != nil {
			return err
		}
		for _, p := range own {
			i := slices.IndexFunc(heads, func(h ticket.StreamPos) bool { return h.Stream() == p.Stream() })
			if p.Pos > 0 && (i < 0 || heads[i].Pos < p.Pos) {
				return fmt.Errorf("the ledger has not all of gate %s", g.device)
			}
		}
		for _, h := range heads {
			if h.Source != g.device && g.has(h.Stream()) < h.Pos {
				return fmt.Errorf("gate %s has %d of %d of %s", g.device, g.has(h.Stream()), h.Pos, h.Source)
			}
		}
	}
	return nil
}
