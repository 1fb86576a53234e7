package simtest

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/gatestore"
	"admitone/internal/kv"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// Gate is one box at its place: what of it outlives its process, and the process
// that runs now.
type Gate struct {
	w     *World
	n     int // from 0
	dice  *dice
	id    ticket.Source
	place string
	site  string
	mem   *kv.Mem // under mu
	link  wiretest.Link
	lanes []*lane
	proc  *proc // nil: down

	mu       sync.Mutex
	boot     ticket.BootID
	bootAt   time.Time
	offset   time.Duration // of the wall clock
	drift    float64       // of the wall clock since the boot, where NTP does not hold it
	ntp      bool
	fired    map[ticket.ClaimID]bool // the file on tmpfs
	doom     doom                    // when the process is to die
	verdicts []ticket.Verdict
	results  []ticket.Result
	runs     []ticket.Run // all so far
	lost     []ticket.Run // those of which a store was lost or put back
}

// proc is one process of a gate, with its handles on the box.
type proc struct {
	g     *Gate
	gate  *gate.Gate
	wire  *wire.Gate
	store *gatestore.Store
	conn  *wiretest.Conn
	lanes []*handle
	stop  context.CancelFunc
	ended chan error
	dead  atomic.Bool
	was   map[ticket.ClaimID]bool // marks found at the start

	mu       sync.Mutex
	marked   ticket.ClaimID // the last one, until the relay moves
	known    map[ticket.Unit]map[ticket.ClaimID]arrived
	released map[ticket.ClaimID]uint32
	answers  map[ticket.ClaimID]answer
}

// arrived is a claim of another gate, and since when it is known.
type arrived struct {
	claim ticket.Claim
	at    time.Time
}

type answer struct {
	ticket.Answered
	at time.Time
}

func newGate(w *World, n int, site string) *Gate {
	g := &Gate{w: w, n: n, dice: newDice(w.seed, firstGate+uint64(n)), id: ticket.Source(fmt.Sprintf("g%d", n+1)), place: fmt.Sprintf("Gate %d", n+1), site: site,
		mem: kv.NewMem(), link: w.setup.link, ntp: true, fired: map[ticket.ClaimID]bool{}}
	for i := range w.setup.lanes {
		g.lanes = append(g.lanes, &lane{g: g, n: i, passage: 200 * time.Millisecond})
	}
	g.reboot()
	return g
}

// reboot is what a power cut does besides ending the process.
func (g *Gate) reboot() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.boot {
		g.boot[i] = byte(g.dice.N(256))
	}
	g.bootAt = time.Now().Add(-20 * time.Second)
	g.fired = map[ticket.ClaimID]bool{}
}

// Up starts the gate, unless it runs.
func (g *Gate) Up() {
	if g.proc != nil {
		return
	}
	w := g.w
	g.mem.OnCommit(g.commit)
	p := &proc{g: g, ended: make(chan error, 2), known: map[ticket.Unit]map[ticket.ClaimID]arrived{},
		released: map[ticket.ClaimID]uint32{}, answers: map[ticket.ClaimID]answer{}}
	g.mu.Lock()
	p.was = maps.Clone(g.fired)
	g.mu.Unlock()
	if err := g.assemble(p); err != nil {
		if p.conn != nil {
			p.conn.Close()
		}
		if errors.Is(err, kv.ErrUnknown) { // it happens while opening, too: try again
			g.mem = g.mem.Crash()
			g.Up()
			return
		}
		w.t.Fatalf("start %s: %v", g.id, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	g.mu.Lock()
	g.runs = append(g.runs, p.store.Run())
	g.proc = p
	g.mu.Unlock()
	go func() {
		err := p.gate.Run(ctx)
		if err != nil { // the process ends
			p.dead.Store(true)
			cancel()
		}
		p.ended <- err
	}()
	go func() { p.ended <- p.wire.Run(ctx) }()
	synctest.Wait()
}

// assemble puts a process together as cmd/gated does.
func (g *Gate) assemble(p *proc) (err error) {
	w, log := g.w, g.w.logger(string(g.id))
	p.store, err = gatestore.New(context.Background(), g.mem, gatestore.Options{Device: g.id, NewRun: g.dice.run})
	if err != nil {
		return err
	}
	o := gate.Options{
		Device: g.id, Place: g.place, ProgrammeKey: key("programme").Public().(ed25519.PublicKey), Log: log, Clock: g.newClock(),
		Verdict: p.verdict, Result: p.result,
	}
	for _, l := range g.lanes {
		h := &handle{lane: l, p: p, events: make(chan gate.TurnstileEvent, 64)}
		p.lanes = append(p.lanes, h)
		o.Lanes = append(o.Lanes, gate.LaneOptions{Name: fmt.Sprint(l.n + 1), Sensor: true, Turnstile: h})
	}
	if w.setup.options != nil {
		w.setup.options(g.n, &o)
	}
	if p.gate, err = gate.New(p.store, p, o); err != nil {
		return err
	}
	p.conn = w.net.ConnAt(g.site, string(g.id))
	p.conn.SetLink(g.link)
	p.wire, err = wire.NewGate(p.conn, p.store, events{p.gate, p}, wire.GateOptions{
		Device: g.id, HeadInfo: p.head, Log: log, Now: g.wall,
	})
	if err != nil {
		return err
	}
	p.gate.Connect(network{p.wire, p})
	return nil
}

func (g *Gate) newClock() *gate.Clock {
	g.mu.Lock()
	boot, at := g.boot, g.bootAt
	g.mu.Unlock()
	return gate.NewClock(gate.ClockOptions{
		Wall: g.wall, Up: func() time.Duration { return time.Since(at) }, Boot: boot,
		Synced: func() (bool, time.Duration) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.ntp, 10 * time.Millisecond
		},
	})
}

func (g *Gate) wall() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	off := g.offset
	if !g.ntp {
		off += time.Duration(g.drift * float64(time.Since(g.bootAt)))
	}
	return time.Now().Add(off)
}

func (p *proc) head() wire.Head {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	h := wire.Head{Place: p.g.place}
	if s, err := p.gate.Status(ctx); err == nil {
		h.Clock, h.Mode, h.Note = s.Clock, s.Mode, s.Note()
	}
	return h
}

// commit takes its time.
func (g *Gate) commit(int) kv.Fate {
	time.Sleep(time.Microsecond + g.dice.Span(g.w.setup.disk))
	return kv.Durable
}

// doom is a moment at which a process can be made to die.
type doom int

const (
	never       doom = iota
	beforeRelay      // the mark is written, the relay not moved
	afterRelay
)

// Doom has the process die at its next relay command.
func (g *Gate) Doom(d doom) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doom = d
}

// die ends the process from within, if it is doomed to: it does nothing any more,
// and Kill tidies up.
func (p *proc) die(at doom) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.g.doom != at {
		return
	}
	p.g.doom = never
	p.dead.Store(true)
	p.g.mem = p.g.mem.Crash()
}

// Kill ends the process at once: what was committed stays, and the marks.
func (g *Gate) Kill() {
	p := g.proc
	if p == nil {
		return
	}
	p.dead.Store(true)
	g.mu.Lock()
	g.proc, g.doom = nil, never
	g.mem = g.mem.Crash()
	g.mu.Unlock()
	p.stop()
	p.conn.Close()
	for range 2 {
		if err := <-p.ended; err != nil && !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrClosed) {
			g.w.Errorf("%s ended with %v", g.id, err)
		}
	}
}

// PowerCut is Kill, and what was in memory is gone: the marks, and the time.
func (g *Gate) PowerCut() {
	g.Kill()
	g.reboot()
}

// Fail gives the next commit another fate; the process ends by itself then.
func (g *Gate) Fail(f kv.Fate) { g.disk().FailNext(f) }

func (g *Gate) disk() *kv.Mem {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mem
}

// Backup copies the store as it is now.
func (g *Gate) Backup() *kv.Mem { return g.disk().Copy() }

// PutBack replaces the store with a copy (nil: with an empty one, as when it was
// damaged and set aside) and starts on it after a power cut.
func (g *Gate) PutBack(backup *kv.Mem) {
	g.mu.Lock()
	g.lost = g.runs[:len(g.runs):len(g.runs)]
	g.mu.Unlock()
	g.PowerCut()
	if backup == nil {
		backup = kv.NewMem()
	}
	g.mu.Lock()
	g.mem = backup.Copy()
	g.mu.Unlock()
	g.Up()
}

// hasLost reports whether a store with this run was lost or put back.
func (g *Gate) hasLost(run ticket.Run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.lost, run)
}

// SetLink changes the gate's link, also that of its later processes.
func (g *Gate) SetLink(k wiretest.Link) {
	g.link = k
	if g.proc != nil {
		g.proc.conn.SetLink(k)
	}
}

// Cut, Hang and Heal are as the ledger's.
func (g *Gate) Cut()  { g.SetLink(wiretest.Link{Cut: true}) }
func (g *Gate) Hang() { g.SetLink(wiretest.Link{Hang: true}) }
func (g *Gate) Heal() { g.SetLink(g.w.setup.link) }

// Clock sets how far the wall clock is off, and whether NTP holds it.
func (g *Gate) Clock(offset time.Duration, ntp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offset, g.ntp = offset, ntp
}
