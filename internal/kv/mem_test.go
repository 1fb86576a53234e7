package kv_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/kv"
	"admitone/internal/kv/kvtest"
)

func TestMem(t *testing.T) {
	kvtest.Run(t,
		func(*testing.T) kv.Store { return kv.NewMem() },
		func(_ *testing.T, s kv.Store) kv.Store { return s.(*kv.Mem).Crash() })
}

func put(key string) func(kv.Tx) error {
	return func(tx kv.Tx) error { return tx.Put("a", []byte(key), []byte("v")) }
}

func has(t *testing.T, s kv.Store, key string) bool {
	t.Helper()
	var v []byte
	if err := s.View(func(tx kv.Tx) (err error) { v, err = tx.Get("a", []byte(key)); return err }); err != nil {
		t.Fatalf("view: %v", err)
	}
	return v != nil
}

// TestUnknown fails a commit in both ways: the store is of no use from then on, and
// only what is opened after it tells what became of the writes.
func TestUnknown(t *testing.T) {
	for fate, kept := range map[kv.Fate]bool{kv.FailLost: false, kv.FailKept: true} {
		m := kv.NewMem()
		if err := m.Update(t.Context(), put("before")); err != nil {
			t.Fatal(err)
		}
		m.FailNext(fate)
		nothing := func(kv.Tx) error { return nil }
		if err := m.Update(t.Context(), nothing); err != nil {
			t.Errorf("an update without writes used up the failure: %v", err)
		}
		for _, err := range []error{
			m.Update(t.Context(), put("lost?")),
			m.Update(t.Context(), put("later")),
			m.Update(t.Context(), nothing),
			m.View(nothing),
		} {
			if !errors.Is(err, kv.ErrUnknown) {
				t.Errorf("fate %d: %v, want ErrUnknown", fate, err)
			}
		}
		n := m.Crash()
		if !has(t, n, "before") || has(t, n, "later") || has(t, n, "lost?") != kept {
			t.Errorf("fate %d: wrong content after the crash", fate)
		}
		if err := n.Update(t.Context(), put("later")); err != nil {
			t.Errorf("update after the crash: %v", err)
		}
	}
}

// TestUnknownIsForAll: who read a neighbour's write in a failed commit must not
// believe it either.
func TestUnknownIsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := kv.NewMem()
		m.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.Durable })
		var wg sync.WaitGroup
		wg.Go(func() { _ = m.Update(t.Context(), put("first")) })
		synctest.Wait()
		m.FailNext(kv.FailLost)
		errs := make([]error, 2)
		wg.Go(func() { errs[0] = m.Update(t.Context(), put("x")) })
		synctest.Wait()
		wg.Go(func() {
			errs[1] = m.Update(t.Context(), func(tx kv.Tx) error {
				if v, err := tx.Get("a", []byte("x")); v == nil || err != nil {
					t.Errorf("the neighbour's write is not there: %v", err)
				}
				return nil
			})
		})
		wg.Wait()
		// The failure was meant for the commit after the first one's flush began.
		for i, err := range errs {
			if !errors.Is(err, kv.ErrUnknown) {
				t.Errorf("function %d: %v, want ErrUnknown", i, err)
			}
		}
	})
}

// TestUnknownIsForTheNextToo: the same for who ran while the failed commit was flushed.
func TestUnknownIsForTheNextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := kv.NewMem()
		m.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.FailKept })
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				err := m.Update(t.Context(), func(tx kv.Tx) error {
					v, err := tx.Get("a", []byte("x"))
					if v != nil {
						return err
					}
					return errors.Join(err, put("x")(tx))
				})
				if !errors.Is(err, kv.ErrUnknown) {
					t.Errorf("function %d: %v, want ErrUnknown", i, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestLeaderGone: who is to lead the next commit, and is cancelled at that moment,
// leaves the lead to the one behind.
func TestLeaderGone(t *testing.T) {
	for range 50 { // both ways to take it
		synctest.Test(t, func(t *testing.T) {
			m := kv.NewMem()
			m.OnGroup(func(int) int { return 1 })
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = m.Update(t.Context(), func(kv.Tx) error { <-release; cancel(); return nil })
			})
			synctest.Wait()
			wg.Go(func() {
				if err := m.Update(ctx, put("gone")); !errors.Is(err, context.Canceled) {
					t.Errorf("the cancelled one: %v", err)
				}
			})
			synctest.Wait()
			wg.Go(func() {
				if err := m.Update(t.Context(), put("behind")); err != nil {
					t.Errorf("the one behind: %v", err)
				}
			})
			synctest.Wait()
			close(release)
			wg.Wait()
			if has(t, m, "gone") || !has(t, m, "behind") {
				t.Error("wrong content")
			}
			if err := m.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// TestGroup: who comes during a flush shares the next one, as many as OnGroup says;
// a View does not see what is not durable yet.
func TestGroup(t *testing.T) {
	for share, commits := range map[int]int{1: 11, 4: 4, kv.MaxGroup: 2} {
		synctest.Test(t, func(t *testing.T) {
			m := kv.NewMem()
			m.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.Durable })
			m.OnGroup(func(int) int { return share })
			start := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() { _ = m.Update(t.Context(), put("first")) })
			synctest.Wait()
			if has(t, m, "first") {
				t.Error("a View shows what is not durable")
			}
			for i := range 10 {
				wg.Go(func() { _ = m.Update(t.Context(), put(fmt.Sprint(i))) })
			}
			wg.Wait()
			if m.Commits() != commits || time.Since(start) != time.Duration(commits)*time.Second {
				t.Errorf("share %d: %d commits in %v, want %d", share, m.Commits(), time.Since(start), commits)
			}
		})
	}
}

// TestRunsWhileFlushing: the functions of the next commit run while one is flushed,
// and read what it wrote; neither they nor anybody else is answered before.
func TestRunsWhileFlushing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := kv.NewMem()
		m.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.Durable })
		var wg sync.WaitGroup
		start, ran := time.Now(), 0 // functions run one at a time
		for i := range 10 {
			wg.Go(func() {
				err := m.Update(t.Context(), func(tx kv.Tx) error {
					v, err := tx.Get("n", []byte("n"))
					if ran++; len(v) != i {
						t.Errorf("function %d counts %d before it", i, len(v))
					}
					return errors.Join(err, tx.Put("n", []byte("n"), append(v, 'x')))
				})
				if took := time.Since(start); err != nil || took != time.Duration(min(i+1, 2))*time.Second {
					t.Errorf("caller %d is answered after %v, %v", i, took, err)
				}
			})
			synctest.Wait()
		}
		if ran != 10 || time.Since(start) != 0 {
			t.Errorf("%d functions ran in the first flush", ran)
		}
		wg.Wait()
		if m.Commits() != 2 {
			t.Errorf("%d commits", m.Commits())
		}
	})
}

// TestCrashInCommit: a crash while a commit is under way loses it, tells its caller
// that it is unknown, and ends everybody who waits.
func TestCrashInCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := kv.NewMem()
		if err := m.Update(t.Context(), put("before")); err != nil {
			t.Fatal(err)
		}
		m.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.Durable })
		errs := make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() { errs[0] = m.Update(t.Context(), put("under way")) })
		synctest.Wait()
		wg.Go(func() { errs[1] = m.Update(t.Context(), put("waiting")) })
		synctest.Wait()
		n := m.Crash()
		wg.Wait()
		if !errors.Is(errs[0], kv.ErrUnknown) || !errors.Is(errs[1], kv.ErrUnknown) {
			t.Errorf("under way: %v; in the next commit: %v", errs[0], errs[1])
		}
		if err := m.Update(t.Context(), put("late")); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("the old handle: %v, want ErrClosed", err)
		}
		if !has(t, n, "before") || has(t, n, "under way") || has(t, n, "late") {
			t.Error("wrong content after the crash")
		}
	})
}

// TestGoexit: a function that ends its goroutine, as FailNow does in a test, must
// not leave the others waiting for ever.
func TestGoexit(t *testing.T) {
	m := kv.NewMem()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Update(context.Background(), func(kv.Tx) error { runtime.Goexit(); return nil })
	}()
	<-done
	if err := m.Update(t.Context(), put("k")); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("update: %v, want ErrUnknown", err)
	}
}

// TestCopy: a backup is what was committed when it was made, and neither of the two
// sees what the other does later.
func TestCopy(t *testing.T) {
	m := kv.NewMem()
	if err := m.Update(t.Context(), put("before")); err != nil {
		t.Fatal(err)
	}
	c := m.Copy()
	if err := errors.Join(m.Update(t.Context(), put("here")), c.Update(t.Context(), put("there"))); err != nil {
		t.Fatal(err)
	}
	if !has(t, c, "before") || has(t, c, "here") || has(t, m, "there") {
		t.Error("the two stores are not apart")
	}
}
