package boltfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

func putRow(i int) func(kv.Tx) error {
	return func(tx kv.Tx) error { return tx.Put("rows", rowKey(i), rowValue(i)) }
}

func stats(t *testing.T, f *File) Stats {
	t.Helper()
	s, err := f.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestShared: who comes while a commit is under way shares the next one, and the
// failing and panicking among them cost the others nothing.
func TestShared(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), options())
	begun, release := make(chan struct{}), make(chan struct{})
	f.commitTx = func(tx *bbolt.Tx) error {
		select {
		case <-begun:
		default:
			close(begun)
			<-release
		}
		return commitBolt(tx)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.Update(t.Context(), putRow(0)) })
	<-begun
	var entered sync.WaitGroup
	for i := range 90 {
		entered.Add(1)
		ctx := &entering{Context: t.Context(), done: entered.Done}
		wg.Go(func() {
			err := f.Update(ctx, func(tx kv.Tx) error {
				if err := putRow(i + 1)(tx); err != nil || i%3 == 0 {
					return err
				}
				if i%3 == 1 {
					return context.DeadlineExceeded
				}
				panic("boom")
			})
			if (err == nil) != (i%3 == 0) {
				t.Errorf("function %d: %v", i, err)
			}
		})
	}
	entered.Wait()
	close(release)
	wg.Wait()
	if s := stats(t, f); s.Commits != 2 || s.Functions != 91 {
		t.Errorf("%d functions in %d commits", s.Functions, s.Commits)
	}
	if right, _ := readAll(t, f, "shared"); right != 31 {
		t.Errorf("%d rows, want 31", right)
	}
}

// entering is a context that tells when a store begins to wait on it.
type entering struct {
	context.Context
	once sync.Once
	done func()
}

func (c *entering) Done() <-chan struct{} {
	c.once.Do(c.done)
	return c.Context.Done()
}

// TestViewWaits: what is not durable yet is not shown. bbolt would show it.
func TestViewWaits(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), options())
	written, release := make(chan struct{}), make(chan struct{})
	f.commitTx = func(tx *bbolt.Tx) error {
		err := commitBolt(tx)
		close(written)
		<-release
		return errors.Join(err, syscall.EIO) // of the flush after the meta page
	}
	update, view := make(chan error, 1), make(chan error, 1)
	go func() { update <- f.Update(t.Context(), putRow(0)) }()
	<-written
	go func() { view <- f.View(func(kv.Tx) error { return nil }) }()
	select {
	case err := <-view:
		t.Fatalf("a View ended during the flush: %v", err)
	case <-time.After(50 * time.Millisecond): // enough for a View that waits for nothing
	}
	close(release)
	for _, err := range []error{<-update, <-view, f.Update(t.Context(), putRow(1))} {
		if !errors.Is(err, kv.ErrUnknown) {
			t.Errorf("%v, want ErrUnknown", err)
		}
	}
	if _, err := f.Stats(); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("stats: %v, want ErrUnknown", err)
	}
}

// TestViewAfterFailure: a View that was let in by the end of a failed flush comes
// before the queue knows of the failure, and must know all the same.
func TestViewAfterFailure(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), options())
	f.commitTx = func(tx *bbolt.Tx) error { return errors.Join(commitBolt(tx), syscall.EIO) }
	b := f.begin()
	defer b.Drop()
	if err := errors.Join(b.Run(putRow(0)), b.Flush()); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("commit: %v, want ErrUnknown", err)
	}
	if err := f.View(func(kv.Tx) error { return nil }); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("view: %v, want ErrUnknown", err)
	}
}

// TestPanicInCommit: bbolt panics on pages that make no sense. The outcome is
// unknown, and the file can be closed.
func TestPanicInCommit(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), options())
	f.commitTx = func(tx *bbolt.Tx) (err error) {
		tx.OnCommit(func() { panic("page 7 already freed") })
		return commitBolt(tx)
	}
	if err := f.Update(t.Context(), putRow(0)); !errors.Is(err, kv.ErrUnknown) || !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("update: %v, want ErrUnknown", err)
	}
	f = openAt(t, temp(t), options())
	f.commitTx = func(*bbolt.Tx) error { return errors.New("ended half-way") } // the transaction is left open
	if err := f.Update(t.Context(), putRow(0)); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("update: %v, want ErrUnknown", err)
	}
}

// TestFull fills a store to its limit. From then on what makes it larger is
// refused, alone, while what makes it smaller or changes a row in place goes on;
// after enough was deleted it takes rows again.
func TestFull(t *testing.T) {
	t.Parallel()
	path := temp(t)
	o := small()
	f := openAt(t, path, o)
	f.db.NoSync = true // thousands of commits, and the disk is not the matter
	value := bytes.Repeat([]byte("x"), 400)
	fill := func(i int) error {
		return f.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("rows", rowKey(i), value) })
	}
	n, err := 0, error(nil)
	for ; err == nil; n++ {
		err = fill(n)
	}
	if !errors.Is(err, kv.ErrFull) || n < 500 {
		t.Fatalf("row %d: %v", n, err)
	}
	if s := stats(t, f); s.Live < o.MaxSize || s.Live > o.MaxSize+20*pageSize || s.Max != o.MaxSize {
		t.Errorf("full at %+v", s)
	}
	mixed(t, f, n, value)
	// A pruner that shares its commits with refused claims must get through.
	var wg sync.WaitGroup
	order := rand.New(rand.NewPCG(1, 1)).Perm(n)
	for lane := range 8 {
		wg.Go(func() {
			for _, i := range order[:n/2] {
				if i%8 != lane {
					continue
				}
				if err := fill(n + i); err != nil && !errors.Is(err, kv.ErrFull) {
					t.Errorf("claim: %v", err)
				}
				err := f.Update(t.Context(), func(tx kv.Tx) error {
					return errors.Join(tx.Delete("rows", rowKey(i)), tx.Delete("rows", rowKey(n+i)))
				})
				if err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := range n / 8 {
		if err := fill(2*n + i); err != nil {
			t.Fatalf("row %d after the deletes: %v", i, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := inChild(t, path); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// mixed tries what a full store takes and what it does not.
func mixed(t *testing.T, f *File, n int, value []byte) {
	t.Helper()
	put := func(i int, v []byte) func(tx kv.Tx) error {
		return func(tx kv.Tx) error { return tx.Put("rows", rowKey(i), v) }
	}
	del := func(i int) func(tx kv.Tx) error {
		return func(tx kv.Tx) error { return tx.Delete("rows", rowKey(i)) }
	}
	both := func(a, b func(tx kv.Tx) error) func(tx kv.Tx) error {
		return func(tx kv.Tx) error { return errors.Join(a(tx), b(tx)) }
	}
	for _, c := range []struct { // what is refused first: a delete may make room
		name string
		fn   func(tx kv.Tx) error
		want error
	}{
		{"new row", put(n, value), kv.ErrFull},
		{"longer row", put(1, append(value, 'y')), kv.ErrFull},
		{"delete and a larger row", both(del(3), put(1, bytes.Repeat(value, 3))), kv.ErrFull},
		{"changed row", put(2, bytes.ToUpper(value)), nil},
		{"row put and dropped", both(put(n, value), del(n)), nil},
		{"delete", del(4), nil},
		{"row for row", both(put(4, value), del(5)), nil},
	} {
		err := f.Update(t.Context(), c.fn)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	err := f.View(func(tx kv.Tx) error {
		row1, err1 := tx.Get("rows", rowKey(1))
		rown, err2 := tx.Get("rows", rowKey(n))
		if !bytes.Equal(row1, value) || rown != nil {
			t.Error("what was refused left something")
		}
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHardLimit has one function write more than bbolt may grow by at all: nothing
// was written, and the store goes on.
func TestHardLimit(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), small())
	err := f.Update(t.Context(), func(tx kv.Tx) error {
		for i := range 8 {
			if err := tx.Put("rows", fmt.Append(nil, i), make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, kv.ErrFull) {
		t.Errorf("update: %v, want ErrFull", err)
	}
	if err := f.Update(t.Context(), putRow(1)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if right, _ := readAll(t, f, "hard"); right != 1 {
		t.Errorf("%d rows", right)
	}
}

// TestMetaIsOurs: functions cannot reach the description of the file.
func TestMetaIsOurs(t *testing.T) {
	t.Parallel()
	f := openAt(t, temp(t), small())
	err := f.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(metaBucket, []byte("kind"), nil) })
	if !errors.Is(err, kv.ErrKey) {
		t.Errorf("put: %v, want ErrKey", err)
	}
}
