package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ticket"
)

// Limits of the ledger's side: how many of each kind run at once. Asks run
// together so that the store can commit them together.
const (
	maxAsks      = 256
	maxPeeks     = 64
	maxSpends    = 64
	maxUploads   = 4
	maxHellos    = 4
	maxFetches   = 4
	maxRepairs   = 64
	uploadYields = 50 * time.Millisecond  // how long an upload lets asks go first
	serveFor     = 10 * time.Second       // after it nobody waits for the answer
	stuckAfter   = 250 * time.Millisecond // asks that long without any answer: the store hangs
)

// LedgerOptions set a ledger process's side of the wire up.
type LedgerOptions struct {
	Process string           // its name; one token of a subject
	Log     *slog.Logger     // nil: slog.Default
	Now     func() time.Time // the ledger's clock; nil: time.Now
}

// Ledger serves gates over a Conn. Several processes on one store share the
// requests in a queue group.
type Ledger struct {
	conn Conn
	svc  LedgerService
	o    LedgerOptions
	log  *slog.Logger

	slots   map[string]chan struct{} // of each kind of request
	idle    chan task                // to goroutines that have answered one
	pace    askPace
	repairs chan repair
	heard   sync.Map // gate -> time.Time of its last head
	gates   chan struct{}
	start   time.Time

	instance uint64
	count    ledgerCounters

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup // requests; none is added once stopped is set
}

type ledgerCounters struct {
	refused, unreadable, failed, served, repaired, heldBack atomic.Uint64
}

// LedgerStats counts what happened since Run began.
type LedgerStats struct {
	Served     uint64 // requests answered
	Failed     uint64 // requests not answered: it could not be found out
	Refused    uint64 // messages whose author is not their records' source
	Unreadable uint64 // messages and live records that could not be read
	Repaired   uint64 // lost records fetched back from gates
	HeldBack   uint64 // probes not answered because the store hung
}

// NewLedger makes the serving side; Run starts it.
func NewLedger(conn Conn, svc LedgerService, o LedgerOptions) (*Ledger, error) {
	if !validToken(o.Process) || o.Process == "fetch" {
		return nil, fmt.Errorf("set up wire: ledger process %q, want a name without dots and blanks", o.Process)
	}
	if conn == nil || svc == nil {
		return nil, errors.New("set up wire: want a connection and a ledger")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Ledger{conn: conn, svc: svc, o: o, log: o.Log, slots: make(map[string]chan struct{}),
		idle: make(chan task), start: time.Now(), instance: rand.Uint64(), repairs: make(chan repair, maxRepairs), gates: make(chan struct{}, 1)}
	for kind, n := range map[string]int{"ask": maxAsks, "peek": maxPeeks, "spend": maxSpends, "upload": maxUploads,
		"hello": maxHellos, "fetch": maxFetches, "probe": maxPeeks, "gates": maxFetches} {
		l.slots[kind] = make(chan struct{}, n)
	}
	return l, nil
}

// Stats gives the counts.
func (l *Ledger) Stats() LedgerStats {
	c := &l.count
	return LedgerStats{Served: c.served.Load(), Failed: c.failed.Load(), Refused: c.refused.Load(),
		Unreadable: c.unreadable.Load(), Repaired: c.repaired.Load(), HeldBack: c.heldBack.Load()}
}

// Run serves until ctx ends, and returns nil then, after the requests under way.
func (l *Ledger) Run(ctx context.Context) error {
	defer l.finish()
	eg, ctx := errgroup.WithContext(ctx)
	if err := l.subscribe(ctx); err != nil {
		return err
	}
	for _, loop := range []func(context.Context){l.publishFeeds, l.publishHeads, l.publishGates, l.repair} {
		eg.Go(func() error { loop(ctx); return nil })
	}
	return eg.Wait()
}

// finish waits for the requests under way, and lets no other begin.
func (l *Ledger) finish() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.running.Wait()
}

func (l *Ledger) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.running.Add(1)
	}
	return !l.stopped
}

func (l *Ledger) subscribe(ctx context.Context) error {
	for _, s := range []struct {
		subject, kind string
		h             func(context.Context, ticket.Source, Msg) (any, error)
	}{
		{"gate.*.ask", "ask", l.ask},
		{"gate.*.peek", "peek", serve(l.svc.Peek)},
		{"gate.*.upload", "upload", l.upload},
		{"gate.*.hello", "hello", l.hello},
		{"gate.*.probe", "probe", l.probe},
		{"gate.*.fetch." + ledgerName, "fetch", l.fetch},
		{"gate.*.spend", "spend", l.spend},
		{"broker.*.gates", "gates", l.gateList},
	} {
		err := l.conn.Subscribe(s.subject, group, func(m Msg) { l.accept(ctx, task{s.kind, m, s.h}) })
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", s.subject, err)
		}
	}
	for subject, h := range map[string]func(Msg){"gate.*.head": l.onHead, "gate.*.verdict": l.onVerdict} {
		err := l.conn.Subscribe(subject, "", func(m Msg) {
			if ctx.Err() == nil {
				h(m)
			}
		})
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
	}
	return nil
}

// task is a request to be answered.
type task struct {
	kind string
	m    Msg
	h    func(context.Context, ticket.Source, Msg) (any, error)
}

// accept has a goroutine answer a request; when as many of its kind are answered as
// may be at once, it waits, and so do those behind it.
func (l *Ledger) accept(ctx context.Context, r task) {
	select {
	case l.slots[r.kind] <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if !l.begin() {
		return
	}
	select {
	case l.idle <- r: // to one whose stack has grown already
	default:
		go l.work(ctx, r)
	}
}

// work answers a request, and then others until ctx ends.
func (l *Ledger) work(ctx context.Context, r task) {
	for {
		l.serveOne(ctx, r)
		select {
		case r = <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}

func (l *Ledger) serveOne(ctx context.Context, r task) {
	defer l.running.Done()
	defer func() { <-l.slots[r.kind] }()
	ctx, cancel := context.WithTimeout(ctx, serveFor)
	defer cancel()
	l.answer(ctx, r.kind, r.m, r.h)
}

func (l *Ledger) answer(ctx context.Context, kind string, m Msg, h func(context.Context, ticket.Source, Msg) (any, error)) {
	from, _ := author(m.Subject) // a broker's request has none
	reply, err := h(ctx, from, m)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			l.count.failed.Add(1)
			l.log.Error("request could not be answered", "kind", kind, "gate", string(from), "err", err)
		}
		return
	}
	if reply == nil || m.Respond == nil {
		return
	}
	data, ready := reply.([]byte)
	if !ready {
		if data, err = encode(reply); err != nil {
			l.log.Error("answer could not be sent", "kind", kind, "gate", string(from), "err", err)
			return
		}
	}
	if m.Respond(data) == nil {
		l.count.served.Add(1)
	}
}

// serve turns a method of the service into a handler.
func serve[M, R any](method func(context.Context, ticket.Source, M) (R, error)) func(context.Context, ticket.Source, Msg) (any, error) {
	return func(ctx context.Context, from ticket.Source, m Msg) (any, error) {
		var v M
		if err := decode(m.Data, &v); err != nil {
			return nil, err
		}
		return method(ctx, from, v)
	}
}

// ask serves one ask. Its claim must be the asking gate's own; the ledger says the
// same of its records, which it has to read anyway.
func (l *Ledger) ask(ctx context.Context, from ticket.Source, m Msg) (any, error) {
	var a Ask
	if err := decode(m.Data, &a); err != nil {
		l.count.unreadable.Add(1)
		return nil, err
	}
	if a.Claim.Gate != from {
		l.count.refused.Add(1)
		return nil, fmt.Errorf("check ask: %s asks for a claim of another", from)
	}
	l.pace.begin(time.Now())
	defer func() { l.pace.end(time.Now()) }()
	return l.svc.Ask(ctx, from, a)
}

// upload lets asks that are under way go first, for a little while.
func (l *Ledger) upload(ctx context.Context, from ticket.Source, m Msg) (any, error) {
	select {
	case <-l.pace.idle():
	case <-time.After(uploadYields):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return serve(l.svc.Upload)(ctx, from, m)
}

func (l *Ledger) probe(context.Context, ticket.Source, Msg) (any, error) {
	if l.pace.stuck(time.Now()) {
		l.count.heldBack.Add(1)
		return nil, nil
	}
	return ProbeReply{Time: l.o.Now().UnixNano()}, nil
}

func (l *Ledger) fetch(ctx context.Context, _ ticket.Source, m Msg) (any, error) {
	var f Fetch
	if err := decode(m.Data, &f); err != nil {
		return nil, err
	}
	if f.Run == 0 {
		return FetchReply{}, nil // what the ledger has is in its answer to a hello
	}
	read := l.svc.Read
	if f.Beyond {
		read = l.svc.Beyond
	}
	return read(ctx, ticket.Stream{Source: f.Source, Run: f.Run}, f.After, clamp(f.Limit, FetchMax), maxBatchBytes)
}

// spend takes a record that a gate published. There is no answer: its upload is
// what counts.
func (l *Ledger) spend(ctx context.Context, from ticket.Source, m Msg) (any, error) {
	r, err := ticket.DecodeRecord(m.Data)
	switch {
	case err != nil:
		l.count.unreadable.Add(1)
		return nil, nil
	case r.Source != from:
		l.count.refused.Add(1)
		l.log.Warn("record refused, its author is another", "author", string(from), "source", string(r.Source))
		return nil, nil
	}
	return nil, l.svc.Spend(ctx, from, m.Data)
}

func (l *Ledger) onHead(m Msg) {
	from, ok := author(m.Subject)
	var h Head
	if !ok || decode(m.Data, &h) != nil {
		l.count.unreadable.Add(1)
		return
	}
	l.heard.Store(from, time.Now())
	l.svc.Heard(from, h)
}

func (l *Ledger) onVerdict(m Msg) {
	if from, ok := author(m.Subject); ok && len(m.Data) <= 4<<10 {
		l.svc.Verdict(from, m.Data)
	}
}

func (l *Ledger) gateList(ctx context.Context, _ ticket.Source, _ Msg) (any, error) {
	return l.svc.GateList(ctx)
}
