package ledger

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// Options of a ledger. Process, Now and Log are required.
type Options struct {
	// Process names this ledger process: its feeds are the source "ledger/PROCESS".
	Process string

	// Now is the ledger's clock: what overdue, announced and feeds are dated by.
	Now func() time.Time

	// ClockTrusted reports whether Now may close and prune events; nil: it may.
	ClockTrusted func() bool

	// Log receives one line for each conflict, alarm and admin write.
	Log *slog.Logger

	// ProgrammeKey signs programmes. Without it none can be pushed, and every
	// event is unknown.
	ProgrammeKey ed25519.PrivateKey

	// Demo lets keys of tickets count that are marked so: their private halves are
	// public.
	Demo bool

	// TicketKey is the public half of the key that tickets are minted with here; it
	// enters every programme's events of the format a1. Its zero value: none.
	TicketKey ticket.ProgrammeKey

	// DeviceID derives a device's id from its public key (wire.DeviceID). Without
	// it no gate can be enrolled.
	DeviceID func(publicKey string) (ticket.Source, error)

	// DeviceKey gives the key that a device signs by (wire.VerifyingKey). Without it
	// nothing can be imported.
	DeviceKey func(publicKey string) (ed25519.PublicKey, error)

	// Tell passes on what other systems are told, within the transaction that makes
	// it true; nil: nobody is told.
	Tell func(tx Tx, n News) error

	// NewRun gives 64 random bits; nil: from crypto/rand.
	NewRun func() ticket.Run

	// Grace is how long after its end a closed event is kept at the least; 0: 14
	// days (spec, section 1: an ask is remembered for at least that long).
	Grace time.Duration
}

// Numbers of the protocol.
const (
	defaultGrace = 14 * 24 * time.Hour
	maxSkew      = time.Minute      // beyond it an alarm (spec, section 5)
	helloEvery   = 10 * time.Minute // how old a stored hello may be before a new one is written
	feedBacklog  = 256              // feed records waiting to be published; further ones are found by heads
	uploadChunk  = 256              // records of an upload in one transaction, so that asks get between
)

// The policies of the ledger's two rows an ask. They are fixed: changing them is
// a configuration problem. Both live as long as the event.
var (
	askPolicy    = seen.Policy{Endpoint: "ask", OnRepeat: seen.Echo}
	ticketPolicy = seen.Policy{Endpoint: "ticket", OnRepeat: seen.Refuse}
)

// Ledger is one ledger process.
type Ledger struct {
	store  Store
	opt    Options
	log    *slog.Logger
	source ticket.Source // of this process's feeds
	own    ownRuns

	feeds    chan ticket.Record
	broken   chan error
	prog     atomic.Pointer[knownProgramme]
	verifies atomic.Pointer[knownVerifier]
	live     live
	verdicts verdicts
	counts   counters
}

// New opens a ledger on a store, under a new run. It starts nothing.
func New(store Store, o Options) (*Ledger, error) {
	switch {
	case o.Process == "" || strings.ContainsAny(o.Process, "/. *>\x00"):
		return nil, fmt.Errorf("open ledger: process %q, want a name without dots, slashes and wildcards", o.Process)
	case o.Now == nil || o.Log == nil:
		return nil, errors.New("open ledger: no clock or no log")
	}
	if o.NewRun == nil {
		o.NewRun = randomRun
	}
	if o.ClockTrusted == nil {
		o.ClockTrusted = func() bool { return true }
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	l := &Ledger{
		store: store, opt: o, log: o.Log, source: feedSource + ticket.Source(o.Process),
		own:    ownRuns{newRun: o.NewRun},
		feeds:  make(chan ticket.Record, feedBacklog),
		broken: make(chan error, 1),
		live:   live{gates: map[ticket.Source]heard{}},
	}
	l.own.of(l.source) // the run begins with the opening
	return l, nil
}

func randomRun() ticket.Run {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return ticket.Run(binary.BigEndian.Uint64(b[:]))
}

// Feeds gives the records that this process wrote, its feeds and hand-helds'
// claims, after their commit, to be published. A record that finds the channel full is left out: gates see the gap
// by the head and fetch it.
func (l *Ledger) Feeds() <-chan ticket.Record { return l.feeds }

// Run does the work that no message starts: overdue claims, alarms of heads, the
// end of events, pruning. It returns nil when cancelled, and an error for which
// errors.Is(err, ErrBroken) holds as soon as the store is of no more use.
func (l *Ledger) Run(ctx context.Context) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.broken:
			return fmt.Errorf("run ledger: %w", err)
		case <-second.C:
		}
		if err := l.tick(ctx, n); err != nil && ctx.Err() == nil {
			if errors.Is(err, ErrBroken) {
				return fmt.Errorf("run ledger: %w", err)
			}
			l.log.Error("ledger upkeep", "err", err)
		}
	}
}

// tick is called each second; n counts from 0.
func (l *Ledger) tick(ctx context.Context, n int) error {
	const often, seldom = 10, 3600
	errs := []error{l.raiseHeads(ctx), l.raiseOverdue(ctx), l.raiseSkew(ctx)}
	if n%often == 0 && l.opt.ClockTrusted() {
		errs = append(errs, l.closeDue(ctx), l.Prune(ctx))
	}
	if n%seldom == 0 && l.opt.ClockTrusted() {
		errs = append(errs, l.forget(ctx))
	}
	return errors.Join(errs...)
}

// update runs fn as one transaction. What fn collected to be said leaves the
// process after the commit only.
func (l *Ledger) update(ctx context.Context, fn func(*txn) error) error {
	var t *txn
	err := l.store.Update(ctx, func(tx Tx) error {
		t = newTxn(l, tx)
		if err := fn(t); err != nil {
			return err
		}
		return t.flush()
	})
	if errors.Is(err, ErrBroken) {
		select {
		case l.broken <- err:
		default: // Run knows already
		}
	}
	if errors.Is(err, ErrUnknown) {
		l.own.unsure.Store(true) // what was written may be there, and was not told to the gates
	}
	if err != nil {
		return err
	}
	for _, say := range t.after {
		say()
	}
	for _, r := range t.written {
		raise(&l.own.of(r.Source).head, r.Pos)
		select {
		case l.feeds <- r:
		default:
			l.counts.unpublished.Add(1)
		}
	}
	return nil
}

// raise sets a to n unless it is higher already.
func raise(a *atomic.Uint64, n uint64) {
	for was := a.Load(); was < n; was = a.Load() {
		if a.CompareAndSwap(was, n) {
			return
		}
	}
}

// view runs fn in a read transaction.
func (l *Ledger) view(ctx context.Context, fn func(*txn) error) error {
	return l.store.View(ctx, func(tx Tx) error { return fn(newTxn(l, tx)) })
}
