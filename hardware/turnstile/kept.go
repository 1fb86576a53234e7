package turnstile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// The times of a keeper and its parent.
const (
	// DefaultSilent is how long a keeper bears a silent parent while an output is
	// active. A parent is heard four times as often, so that a machine under load
	// drops no relay.
	DefaultSilent = time.Second

	// DefaultPatience is how long a keeper has to answer before it is replaced.
	DefaultPatience = 2 * time.Second

	// overMaxOn is what a keeper allows the relay beyond the maximum on-time, which
	// the turnstile itself keeps: it acts where that one does not.
	overMaxOn = 250 * time.Millisecond

	// firstBackOff and lastBackOff bound the pause before another keeper.
	firstBackOff = 100 * time.Millisecond
	lastBackOff  = 5 * time.Second
)

// KeptOptions of lines that a keeper holds. A zero time means its default.
type KeptOptions struct {
	Command  []string  // starts a process that runs Keeper
	Stderr   io.Writer // gets what the keeper says when it breaks; nil: nobody
	Wiring   Wiring
	MaxOn    time.Duration // as the turnstile's
	Silent   time.Duration
	Patience time.Duration
	Log      *slog.Logger // default: discard
}

// Kept is a driver whose lines another process holds, a keeper, so that they are
// idle when this one is killed, stopped, or stalls. A keeper that ends or does not
// answer is replaced by another, which opens the lines idle: of registers that
// keep their levels, that is what ends an opening whose keeper was killed.
type Kept struct {
	o      KeptOptions
	notify func(error)
	start  func() (*link, error)

	mu     sync.Mutex
	link   *link
	closed bool
	opened chan struct{} // closed when the first try to open is over
}

// NewKept makes the driver and starts nothing: Watch does. It returns an error for
// a wiring that no driver could work with.
func NewKept(o KeptOptions) (*Kept, error) {
	if err := o.Wiring.check(); err != nil {
		return nil, fmt.Errorf("keep turnstile: %w", err)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.MaxOn, DefaultMaxOn)
	def(&o.Silent, DefaultSilent)
	def(&o.Patience, DefaultPatience)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Kept{o: o, notify: func(error) {}, opened: make(chan struct{}), start: func() (*link, error) {
		return startKeeper(o.Command, o.Stderr)
	}}, nil
}

// Notify implements Supervised.
func (k *Kept) Notify(f func(why error)) { k.notify = f }

// Inputs implements Lines.
func (k *Kept) Inputs() []Line { return k.o.Wiring.inputs() }

// Set implements Lines. Before the lines were opened for the first time it waits
// for that; later it answers ErrLost while there is no keeper.
func (k *Kept) Set(line Line, active bool) error {
	return k.order(frame{Do: verbSet, Line: line, Active: active})
}

// SetPassage is Sim.SetPassage for a simulated turnstile behind the keeper.
func (k *Kept) SetPassage(p Passage) error {
	return k.order(frame{Do: verbPassage, Passage: p})
}

// SetInput is Sim.SetInput for a simulated turnstile behind the keeper.
func (k *Kept) SetInput(line Line, active bool) error {
	return k.order(frame{Do: verbInput, Line: line, Active: active})
}

func (k *Kept) order(fr frame) error {
	select {
	case <-k.opened:
	case <-time.After(k.o.Patience):
	}
	k.mu.Lock()
	l, closed := k.link, k.closed
	k.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case l == nil:
		return ErrLost
	}
	err := l.call(fr, k.o.Patience)
	if errors.Is(err, ErrLost) {
		k.drop(l, err) // so that nobody finds it there after this answer
	}
	return err
}

// Watch implements Lines: it starts the keeper and watches over it until ctx ends.
// The keeper then still holds the lines, until Close. Lines that cannot be opened
// are no error here, but lost, and tried again.
func (k *Kept) Watch(ctx context.Context, changed func(Change)) error {
	pause, told := time.Duration(0), ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		err := k.keep(ctx, changed)
		if ctx.Err() != nil {
			return nil
		}
		if why := err.Error(); why != told {
			k.o.Log.Error("turnstile's lines are lost and tried again", "err", err)
			told = why
		}
		if time.Since(began) > lastBackOff {
			pause = 0 // it worked for a while: another one at once
		} else {
			pause = min(max(2*pause, firstBackOff), lastBackOff)
		}
	}
}

// keep has one keeper open the lines, and passes on what it tells, until it ends
// or ctx does.
func (k *Kept) keep(ctx context.Context, changed func(Change)) error {
	l, err := k.start()
	if err != nil {
		err = fmt.Errorf("start turnstile's keeper: %w", err)
		k.drop(nil, err)
		return err
	}
	go l.read(k.o.Patience, func(c Change) {
		if ctx.Err() == nil {
			changed(c)
		}
	}, k.tripped)
	err = l.open(ctx, terms{Wiring: k.o.Wiring, MaxOn: k.o.MaxOn + overMaxOn, Silent: k.o.Silent, Retry: k.o.Patience / 2})
	switch {
	case err == nil && !k.adopt(l):
		return l.end()
	case err == nil:
		k.o.Log.Info("turnstile's lines are open, every output inactive", "driver", k.o.Wiring.Driver)
		if err = l.watch(ctx, k.o.Silent/4, k.o.Patience); ctx.Err() != nil {
			return nil // Close ends it
		}
		k.drop(l, err)
	default:
		k.drop(nil, err)
	}
	_ = l.end() // err is the reason
	return err
}

// adopt puts a keeper to use that has opened the lines.
func (k *Kept) adopt(l *link) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.link = l
	k.notify(nil)
	k.tried()
	return true
}

// drop gives a keeper up; nil stands for one that never was in use.
func (k *Kept) drop(l *link, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.link != l || k.closed {
		return // another one is in use already
	}
	k.link = nil
	k.notify(why)
	k.tried()
}

// tripped takes it that the keeper made outputs inactive by itself: what was
// thought to be active is not, and the lines are in reach.
func (k *Kept) tripped(why error) {
	k.o.Log.Error("turnstile's keeper made its lines inactive", "err", why)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notify(why)
	k.notify(nil)
}

// tried lets those go on who wait for the first opening; k.mu is held.
func (k *Kept) tried() {
	select {
	case <-k.opened:
	default:
		close(k.opened)
	}
}

// Close implements Lines: the keeper makes every output inactive and ends. It may
// be called more than once. Watch must have returned.
func (k *Kept) Close() error {
	k.mu.Lock()
	l := k.link
	k.link, k.closed = nil, true
	k.tried()
	k.mu.Unlock()
	if l == nil {
		return nil
	}
	if err := l.end(); err != nil {
		return fmt.Errorf("end turnstile's keeper: %w", err)
	}
	return nil
}
