package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"admitone/internal/kv"
)

var errBoom = errors.New("boom")

// spoil overwrites, deletes, makes and re-makes keys, in an old bucket and a new one.
func spoil(tx kv.Tx) error {
	return errors.Join(
		tx.Put("a", []byte("kept"), []byte("spoiled")),
		tx.Delete("a", []byte("kept")),
		tx.Put("a", []byte("kept"), []byte("spoiled again")),
		tx.Delete("a", []byte("kept2")),
		tx.Put("a", []byte("fresh"), []byte("x")),
		tx.Delete("a", []byte("fresh")),
		tx.Put("a", []byte("fresh"), nil),
		tx.Put("new bucket", []byte("fresh"), []byte("x")))
}

func unspoiled(t *testing.T, tx kv.Tx) error {
	t.Helper()
	want(t, tx, "a", "kept", []byte("1"))
	want(t, tx, "a", "kept2", []byte{})
	want(t, tx, "a", "fresh", nil)
	want(t, tx, "new bucket", "fresh", nil)
	return nil
}

func fill(tx kv.Tx) error {
	return errors.Join(tx.Put("a", []byte("kept"), []byte("1")), tx.Put("a", []byte("kept2"), nil))
}

func testUndo(t *testing.T, s kv.Store) {
	update(t, s, fill)
	err := s.Update(context.Background(), func(tx kv.Tx) error { return errors.Join(spoil(tx), errBoom) })
	if !errors.Is(err, errBoom) {
		t.Errorf("update: %v, want the function's error", err)
	}
	view(t, s, func(tx kv.Tx) error { return unspoiled(t, tx) })
}

func testPanic(t *testing.T, s kv.Store) {
	update(t, s, fill)
	err := s.Update(context.Background(), func(tx kv.Tx) error {
		if err := spoil(tx); err != nil {
			return err
		}
		panic("boom")
	})
	var p *kv.PanicError
	if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "testPanic") {
		t.Errorf("update: %v, want a PanicError with the stack", err)
	}
	view(t, s, func(tx kv.Tx) error { return unspoiled(t, tx) })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic in a View does not reach its caller")
			}
		}()
		_ = s.View(func(kv.Tx) error { panic("boom") })
	}()
	update(t, s, func(tx kv.Tx) error { return tx.Put("a", []byte("after"), nil) })
}

// testCancelled holds the writer's turn, so that others have to wait, and ends their
// contexts: one at once, one by a function that runs in the same commit before it.
// Neither runs. The function that holds the turn is cancelled too, and its outcome
// is waited for.
func testCancelled(t *testing.T, s kv.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Update(ctx, func(tx kv.Tx) error {
			close(begun)
			<-release
			return tx.Put("a", []byte("first"), nil)
		})
	}()
	<-begun
	late, cancelLate := context.WithCancel(context.Background())
	defer cancelLate()
	ran := 0 // functions run one at a time
	run := func(kv.Tx) error { ran++; return nil }
	waiting := queued(s, ctx, run)
	killer := queued(s, context.Background(), func(kv.Tx) error { cancelLate(); return nil })
	victim := queued(s, late, run)
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) { // before the turn is free
		t.Errorf("the one that waited: %v, want context.Canceled", err)
	}
	close(release)
	if err := errors.Join(<-first, <-killer); err != nil {
		t.Errorf("the ones that ran: %v", err)
	}
	if err := <-victim; !errors.Is(err, context.Canceled) {
		t.Errorf("the one cancelled before its turn: %v, want context.Canceled", err)
	}
	if err := s.Update(ctx, run); !errors.Is(err, context.Canceled) {
		t.Errorf("the one cancelled before it came: %v, want context.Canceled", err)
	}
	update(t, s, func(tx kv.Tx) error {
		want(t, tx, "a", "first", []byte{})
		return nil
	})
	if ran > 0 {
		t.Errorf("%d functions ran for callers that had gone", ran)
	}
}

// queued calls Update and returns when the call is in the queue, behind those
// before it.
func queued(s kv.Store, ctx context.Context, fn func(kv.Tx) error) <-chan error {
	out, entered := make(chan error, 1), make(chan struct{})
	go func() { out <- s.Update(&noticed{Context: ctx, entered: entered}, fn) }()
	<-entered
	return out
}

// testCounter has many callers add one to the same number and to their own: a lost
// or a doubled call, or one that did not see the call before it, shows in the sum.
func testCounter(t *testing.T, s kv.Store) {
	const callers, rounds = 16, 20
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for r := range rounds {
				err := s.Update(context.Background(), func(tx kv.Tx) error {
					n, err := add(tx, "sum")
					own, oerr := add(tx, fmt.Sprintf("own %d", c))
					if own != r+1 || n < own {
						return fmt.Errorf("caller %d in round %d reads %d of %d", c, r, own, n)
					}
					return errors.Join(err, oerr)
				})
				if err != nil {
					t.Errorf("update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	view(t, s, func(tx kv.Tx) error {
		want(t, tx, "n", "sum", fmt.Append(nil, callers*rounds))
		return nil
	})
}

func add(tx kv.Tx, key string) (int, error) {
	old, err := tx.Get("n", []byte(key))
	if err != nil {
		return 0, err
	}
	n := 0
	if old != nil {
		if _, err := fmt.Sscan(string(old), &n); err != nil {
			return 0, err
		}
	}
	return n + 1, tx.Put("n", []byte(key), fmt.Append(nil, n+1))
}

// testNeighbours queues functions behind one that holds the turn, so that they
// share a commit: good ones, failing ones and panicking ones. They run in the
// order of arrival, once each, and only the good ones leave something, for those
// behind them, too.
func testNeighbours(t *testing.T, s kv.Store) {
	const n = 30
	update(t, s, fill)
	begun, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Update(context.Background(), func(kv.Tx) error { close(begun); <-release; return nil })
	}()
	<-begun
	var order []int // only touched by functions, one at a time
	var outs []<-chan error
	for i := range n {
		outs = append(outs, queued(s, context.Background(), func(tx kv.Tx) error {
			order = append(order, i)
			switch i % 3 {
			case 0:
				rows, err := pairs(tx, "a", "good", nil, 0)
				if len(rows) != i/3 {
					t.Errorf("function %d sees what %d before it left: %q", i, i/3, rows)
				}
				return errors.Join(err, unspoiled(t, tx), tx.Put("a", fmt.Appendf(nil, "good %02d", i), nil))
			case 1:
				return errors.Join(spoil(tx), errBoom)
			}
			if err := spoil(tx); err != nil {
				return err
			}
			panic("boom")
		}))
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the one in front: %v", err)
	}
	for i, out := range outs {
		err := <-out
		var p *kv.PanicError
		if ok := []bool{err == nil, errors.Is(err, errBoom), errors.As(err, &p)}[i%3]; !ok {
			t.Errorf("function %d: %v", i, err)
		}
	}
	if len(order) != n {
		t.Fatalf("%d functions ran: %v", len(order), order)
	}
	for i, o := range order {
		if i != o {
			t.Fatalf("order of running: %v", order)
		}
	}
	view(t, s, func(tx kv.Tx) error {
		got, err := pairs(tx, "a", "good", nil, 0)
		if len(got) != n/3 {
			t.Errorf("%d good functions left something: %v", len(got), got)
		}
		return errors.Join(err, unspoiled(t, tx))
	})
}

// noticed is a context that tells when somebody begins to wait on it, which a
// store does after it has queued the call.
type noticed struct {
	context.Context
	once    sync.Once
	entered chan struct{}
}

func (c *noticed) Done() <-chan struct{} {
	c.once.Do(func() { close(c.entered) })
	return c.Context.Done()
}

func testClosed(t *testing.T, s kv.Store) {
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("close twice: %v", err)
	}
	ran := false
	fn := func(kv.Tx) error { ran = true; return nil }
	for name, err := range map[string]error{"view": s.View(fn), "update": s.Update(context.Background(), fn)} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s after close: %v, want ErrClosed", name, err)
		}
	}
	if ran {
		t.Error("a function ran on a closed store")
	}
}

func testReopen(t *testing.T, s kv.Store, reopen func(t *testing.T, s kv.Store) kv.Store) {
	update(t, s, fill)
	_ = s.Update(context.Background(), func(tx kv.Tx) error { return errors.Join(spoil(tx), errBoom) })
	s = reopen(t, s)
	view(t, s, func(tx kv.Tx) error { return unspoiled(t, tx) })
	update(t, s, func(tx kv.Tx) error { return tx.Put("a", []byte("more"), []byte("m")) })
	s = reopen(t, s)
	view(t, s, func(tx kv.Tx) error {
		want(t, tx, "a", "more", []byte("m"))
		return unspoiled(t, tx)
	})
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
