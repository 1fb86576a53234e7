package kv

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// MaxGroup is how many functions share one commit at most. It bounds how long
// the first of them waits for the others to run, and the pages one commit writes.
const MaxGroup = 256

// Batch is one commit in the making, of which a Group runs the functions.
type Batch interface {
	// Run runs a function, and undoes its writes where it returns an error.
	Run(fn func(Tx) error) error

	// Flush makes the writes durable. It is called once, behind every Run, or never.
	Flush() error

	// Drop gives up what the batch holds. It is called once, at the end.
	Drop()
}

// Group is the writers' queue of a store: concurrent calls of Update share
// commits, in the order of their arrival. There is no goroutine behind it: the
// first of those queued leads. It runs their functions, and those of whoever comes
// while the commit before is flushed; then it hands the lead on and flushes. Every
// wait is on a channel, so a store that is built on it can be used under
// testing/synctest.
type Group struct {
	begin func() Batch
	flush chan struct{}  // holds one token; who took it flushes
	came  chan struct{}  // holds a mark where calls were queued
	busy  sync.WaitGroup // of those that lead or flush

	mu    sync.Mutex // held for bookkeeping only, never while waiting
	queue []*job
	led   bool // somebody leads, or was told to
	next  *job // whose caller was told to lead, and has not begun
	take  func(queued int) int
	err   error // ErrUnknown or ErrClosed, once and for ever
	shut  bool  // Close was called
}

type job struct {
	fn   func(Tx) error
	lead chan struct{} // closed: its caller leads
	done chan struct{} // closed once err is set
	err  error
}

// NewGroup gives a queue in front of batches. begin is called, and functions are
// run, for one batch at a time; and so are batches flushed, in the same order. A
// batch may begin while the one before is flushed. It then reads what that one has
// written, and its Flush must fail where that one's failed.
func NewGroup(begin func() Batch) *Group {
	g := &Group{begin: begin, flush: make(chan struct{}, 1), came: make(chan struct{}, 1)}
	g.flush <- struct{}{}
	return g
}

// Update is Store.Update.
func (g *Group) Update(ctx context.Context, fn func(Tx) error) error {
	j, err := g.push(ctx, fn)
	if err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-j.lead:
		if g.follow(j) {
			g.lead()
		}
		<-j.done
	case <-ctx.Done():
		if g.withdraw(j) {
			return fmt.Errorf("wait for the store: %w", ctx.Err())
		}
		<-j.done
	}
	return j.err
}

// Err is ErrUnknown or ErrClosed where no further call is served.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Close refuses the functions still queued, waits for the commits under way, and
// reports whether this was the first call.
func (g *Group) Close() bool {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	g.fail(ErrClosed)
	g.mu.Unlock()
	if first {
		g.busy.Wait()
	}
	return first
}

// push queues fn behind a last look at ctx, so that nothing runs for a caller who
// has gone.
func (g *Group) push(ctx context.Context, fn func(Tx) error) (*job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("enter the store: %w", err)
	}
	j := &job{lead: make(chan struct{}), done: make(chan struct{}), fn: func(tx Tx) error {
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
	if !g.led {
		g.appoint()
	} else if len(g.came) == 0 {
		g.came <- struct{}{}
	}
	return j, nil
}

// appoint has the first of those queued lead, if there is one; g.mu is held.
func (g *Group) appoint() {
	if g.led = len(g.queue) > 0; g.led {
		g.next = g.queue[0]
		g.busy.Add(1)
		close(g.next.lead)
	}
}

// follow reports whether the caller of a job is still to lead.
func (g *Group) follow(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next != j {
		return false
	}
	g.next = nil
	return true
}

// withdraw takes a job out of the queue; false: it was taken by a leader.
func (g *Group) withdraw(j *job) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, j)
	if i < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	if g.next == j {
		g.next = nil
		g.appoint()
		g.busy.Done()
	}
	return true
}

// lead makes one commit. The defer also covers a function that ends its goroutine
// (testing.T.FailNow does): the batch was then left half-done, so the store can
// only be given up.
func (g *Group) lead() {
	b, flushing := g.begin(), false
	var jobs []*job
	var errs []error
	defer func() {
		b.Drop()
		g.answer(jobs, errs)
		if flushing {
			g.flush <- struct{}{}
		} else {
			g.handOn()
		}
		g.busy.Done()
	}()
	for {
		for _, j := range g.pop(len(jobs), flushing) {
			jobs = append(jobs, j)
			errs = append(errs, b.Run(j.fn))
		}
		if flushing {
			break
		}
		select {
		case <-g.flush:
			flushing = true
		case <-g.came:
		}
	}
	g.handOn()
	err := g.Err() // of the commit before, that is, where it is ErrUnknown
	if !errors.Is(err, ErrUnknown) {
		err = b.Flush()
	}
	if err == nil {
		return
	}
	// It is everybody's, also of those that wrote nothing: what they read may have
	// been written by others.
	for i := range errs {
		errs[i] = err
	}
}

// pop takes the next jobs for a commit that has some already.
func (g *Group) pop(have int, flushing bool) []*job {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := MaxGroup - have
	if g.take != nil {
		if n = 0; flushing && len(g.queue) > 0 {
			n = max(1, g.take(len(g.queue)))
		}
	}
	n = min(n, len(g.queue))
	jobs := g.queue[:n:n]
	g.queue = g.queue[n:]
	return jobs
}

func (g *Group) handOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.appoint()
}

// answer gives each job its error. One unknown outcome ends the store before any
// caller hears of it.
func (g *Group) answer(jobs []*job, errs []error) {
	for i, j := range jobs {
		j.err = fmt.Errorf("transaction function ended its goroutine: %w", ErrUnknown)
		if i < len(errs) {
			j.err = errs[i]
		}
	}
	g.mu.Lock()
	for _, j := range jobs {
		if errors.Is(j.err, ErrUnknown) {
			g.fail(j.err)
			break
		}
	}
	g.mu.Unlock()
	for _, j := range jobs {
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
	if g.next != nil {
		g.next, g.led = nil, false
		g.busy.Done()
	}
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
