package turnstile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// edge is a change of an output, at a time since the bench was made.
type edge struct {
	line   Line
	active bool
	at     time.Duration
}

func (e edge) String() string { return fmt.Sprintf("%v=%v@%v", e.line, e.active, e.at) }

// bench is a driver that writes down what happens to it, and can fail and hang.
type bench struct {
	wired   []Line
	changes *mailbox[Change]
	lost    chan error // an error ends Watch
	start   time.Time

	mu     sync.Mutex
	active [lineCount]bool
	edges  []edge
	sets   [lineCount]int
	fail   func(line Line, active bool) error
	hang   map[Line]chan struct{}
}

func newBench(wired ...Line) *bench {
	return &bench{
		wired: wired, changes: newMailbox[Change](), lost: make(chan error, 1), start: time.Now(),
		fail: func(Line, bool) error { return nil }, hang: map[Line]chan struct{}{},
	}
}

func (b *bench) Set(line Line, active bool) error {
	b.mu.Lock()
	hang := b.hang[line]
	b.mu.Unlock()
	if hang != nil {
		<-hang
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sets[line]++
	if err := b.fail(line, active); err != nil {
		return err
	}
	if b.active[line] != active {
		b.active[line] = active
		b.edges = append(b.edges, edge{line, active, time.Since(b.start)})
	}
	return nil
}

func (b *bench) Inputs() []Line { return b.wired }

func (b *bench) Watch(ctx context.Context, changed func(Change)) error {
	for {
		for _, c := range b.changes.take() {
			changed(c)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-b.lost:
			return err
		case <-b.changes.wake:
		}
	}
}

func (b *bench) Close() error { return nil }

// failing makes the writes fail that the function names; nil: none.
func (b *bench) failing(fail func(line Line, active bool) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if fail == nil {
		fail = func(Line, bool) error { return nil }
	}
	b.fail = fail
}

// input makes an input change now.
func (b *bench) input(line Line, active bool) {
	b.changes.put(Change{Line: line, Active: active, At: time.Now()})
}

// release makes every line inactive, as the end of the process that held them does.
func (b *bench) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active = [lineCount]bool{}
}

// of gives the edges of some lines.
func (b *bench) of(lines ...Line) []edge {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []edge
	for _, e := range b.edges {
		if slices.Contains(lines, e.line) {
			found = append(found, e)
		}
	}
	return found
}

func (b *bench) isActive(line Line) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active[line]
}

// rig is a turnstile that runs in a bubble.
type rig struct {
	*Turnstile
	t      *testing.T
	b      *bench
	cancel context.CancelFunc
	ended  chan error
}

// inBubble runs f with a turnstile over a bench, and stops it; the bubble's end
// proves that no goroutine is left.
func inBubble(t *testing.T, o Options, wired []Line, f func(t *testing.T, r *rig)) {
	t.Helper()
	overLines(t, func(b *bench) Lines { return b }, o, wired, f)
}

// overLines is inBubble with something around the bench.
func overLines(t *testing.T, wrap func(*bench) Lines, o Options, wired []Line, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(wired...)
		ts, err := New(wrap(b), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{Turnstile: ts, t: t, b: b, cancel: cancel, ended: make(chan error, 1)}
		go func() { r.ended <- ts.Run(ctx) }()
		f(t, r)
		cancel()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// wait lets time pass and everything that is due happen.
func (r *rig) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// events gives the events that are there to be read.
func (r *rig) drain() []Event {
	var got []Event
	for {
		synctest.Wait()
		select {
		case e := <-r.Events():
			got = append(got, e)
		default:
			return got
		}
	}
}

func kinds(events []Event) []Kind {
	var k []Kind
	for _, e := range events {
		k = append(k, e.Kind)
	}
	return k
}

func (r *rig) mustOpen(d time.Duration) Opening {
	r.t.Helper()
	o, err := r.Open(d)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func (r *rig) mustPulse(d time.Duration) Opening {
	r.t.Helper()
	o, err := r.Pulse(d)
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func (r *rig) wantEdges(want []edge, lines ...Line) {
	r.t.Helper()
	synctest.Wait()
	if got := r.b.of(lines...); !slices.Equal(got, want) {
		r.t.Errorf("edges of %v:\n got %v\nwant %v", lines, got, want)
	}
}

func (r *rig) wantKinds(want ...Kind) {
	r.t.Helper()
	if got := kinds(r.drain()); !slices.Equal(got, want) {
		r.t.Errorf("events: got %v, want %v", got, want)
	}
}
