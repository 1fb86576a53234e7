package kv

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// MaxGroup is how many functions share one commit at most. It bounds how long
// the first of them waits for the others to run, and the pages one commit writes.
const MaxGroup = 256

// Commit runs the functions in order in one write transaction, undoes the writes
// of those that return an error, makes the rest durable, and gives one error per
// function. Where the commit fails, Settle gives the errors.
type Commit func(fns []func(Tx) error) []error

// Settle gives the errors of the functions of one commit, in place. Where the
// commit failed its error is everybody's, also of those that wrote nothing: what
// they read may have been written by others in the same transaction.
func Settle(errs []error, commit error) []error {
	if commit != nil {
		for i := range errs {
			errs[i] = commit
		}
	}
	return errs
}

// Group is the writers' queue of a store: concurrent calls of Update share
// commits, in the order of their arrival. There is no goroutine behind it:
// whoever holds the turn commits for all that are queued. Every wait is on a
// channel, so a store that is built on it can be used under testing/synctest.
type Group struct {
	commit Commit
	turn   chan struct{} // holds one token; who took it writes

	mu    sync.Mutex // held for bookkeeping only, never while waiting
	queue []*job
	take  func(queued int) int
	err   error // ErrUnknown or ErrClosed, once and for ever
	shut  bool  // Close was called
}

type job struct {
	fn   func(Tx) error
	done chan struct{} // closed once err is set
	err  error
}

// NewGroup gives a queue in front of commit, which is never called twice at once.
func NewGroup(commit Commit) *Group {
	g := &Group{commit: commit, turn: make(chan struct{}, 1), take: func(n int) int { return min(n, MaxGroup) }}
	g.turn <- struct{}{}
	return g
}

// Update is Store.Update.
func (g *Group) Update(ctx context.Context, fn func(Tx) error) error {
	j, err := g.push(ctx, fn)
	if err != nil {
		return err
	}
	for {
		select {
		case <-j.done:
			return j.err
		case <-g.turn:
			g.lead()
		case <-ctx.Done():
			if g.withdraw(j) {
				return fmt.Errorf("wait for the store: %w", ctx.Err())
			}
			<-j.done
			return j.err
		}
	}
}

// Err is ErrUnknown or ErrClosed where no further call is served.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Close refuses the functions still queued, waits for the commit under way, and
// reports whether this was the first call.
func (g *Group) Close() bool {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	g.fail(ErrClosed)
	g.mu.Unlock()
	if first {
		<-g.turn
	}
	return first
}

// push queues fn behind a last look at ctx, so that nothing runs for a caller who
// has gone.
func (g *Group) push(ctx context.Context, fn func(Tx) error) (*job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("enter the store: %w", err)
	}
	j := &job{done: make(chan struct{}), fn: func(tx Tx) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for the store: %w", err)
		}
		return call(fn, tx)
	}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return nil, g.err
	}
	g.queue = append(g.queue, j)
	return j, nil
}

// withdraw takes a job out of the queue; false: it was taken by a writer.
func (g *Group) withdraw(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, q := range g.queue {
		if q == j {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

// lead commits for what is queued, and hands the turn on. The defer also covers a
// function that ends its goroutine (testing.T.FailNow does): the transaction
// was then left open, so the store can only be given up.
func (g *Group) lead() {
	batch := g.pop()
	var errs []error
	defer func() {
		g.answer(batch, errs)
		g.turn <- struct{}{}
	}()
	if len(batch) == 0 {
		return
	}
	fns := make([]func(Tx) error, len(batch))
	for i, j := range batch {
		fns[i] = j.fn
	}
	errs = g.commit(fns)
}

func (g *Group) pop() []*job {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return nil
	}
	n := max(1, min(g.take(len(g.queue)), len(g.queue)))
	batch := g.queue[:n:n]
	g.queue = g.queue[n:]
	return batch
}

// answer gives each job its error. One unknown outcome ends the store before any
// caller hears of it.
func (g *Group) answer(batch []*job, errs []error) {
	for i, j := range batch {
		j.err = fmt.Errorf("transaction function ended its goroutine: %w", ErrUnknown)
		if i < len(errs) {
			j.err = errs[i]
		}
	}
	g.mu.Lock()
	for _, j := range batch {
		if errors.Is(j.err, ErrUnknown) {
			g.fail(j.err)
			break
		}
	}
	g.mu.Unlock()
	for _, j := range batch {
		close(j.done)
	}
}

// fail makes err the answer to everything from now on; g.mu is held.
func (g *Group) fail(err error) {
	if g.err == nil {
		g.err = err
	}
	for _, j := range g.queue {
		j.err = g.err
		close(j.done)
	}
	g.queue = nil
}

// call turns a panic of fn into an error: the others in the commit did nothing
// wrong.
func call(fn func(Tx) error, tx Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	return fn(tx)
}
