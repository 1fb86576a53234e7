package boltfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

// held is a file with rows 0 to 2, of which a commit that replaces 0, deletes 1 and
// adds 3 stands in its flush until release gives what becomes of it.
type held struct {
	*File
	release chan error
	first   chan error
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{File: openAt(t, temp(t), options()), release: make(chan error), first: make(chan error, 1)}
	for i := range 3 {
		if err := h.Update(t.Context(), putRow(i)); err != nil {
			t.Fatal(err)
		}
	}
	flushing := make(chan struct{})
	h.commitTx = func(tx *bbolt.Tx) error {
		h.commitTx = commitBolt // under the token of the flush, as this is
		close(flushing)
		if err := <-h.release; err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return commitBolt(tx)
	}
	go func() {
		h.first <- h.Update(t.Context(), func(tx kv.Tx) error {
			return errors.Join(tx.Put("rows", rowKey(0), []byte("new")), tx.Delete("rows", rowKey(1)),
				tx.Put("rows", rowKey(3), rowValue(3)), tx.Put("other", []byte("k"), nil))
		})
	}()
	<-flushing
	return h
}

// shown gives the rows as the transaction scans them, each held against a Get.
func shown(t *testing.T, tx kv.Tx) (out []string, err error) {
	t.Helper()
	err = tx.Scan("rows", nil, nil, func(k, v []byte) (bool, error) {
		got, err := tx.Get("rows", k)
		if string(got) != string(v) {
			t.Errorf("get %s: %q, the scan has %q", k, got, v)
		}
		out = append(out, fmt.Sprintf("%s=%.10s", k, v))
		return true, err
	})
	return out, err
}

// TestNextCommitReadsTheOneInItsFlush: the functions of the next commit run while one
// is flushed, on what it leaves, and what they leave is on top of it.
func TestNextCommitReadsTheOneInItsFlush(t *testing.T) {
	t.Parallel()
	h := hold(t)
	want := []string{string(rowKey(0)) + "=new"}
	for _, i := range []int{2, 3} {
		want = append(want, fmt.Sprintf("%s=%.10s", rowKey(i), rowValue(i)))
	}
	ran, second := make(chan struct{}), make(chan error, 1)
	go func() {
		second <- h.Update(t.Context(), func(tx kv.Tx) error {
			defer close(ran)
			got, err := shown(t, tx)
			if !slices.Equal(got, want) {
				t.Errorf("it reads %q, want %q", got, want)
			}
			v, gerr := tx.Get("rows", rowKey(1))
			if v != nil {
				t.Errorf("it reads a deleted row: %q", v)
			}
			return errors.Join(err, gerr, tx.Delete("rows", rowKey(3)), tx.Put("rows", rowKey(1), []byte("again")), tx.Delete("other", []byte("k")))
		})
	}()
	<-ran
	select {
	case err := <-second:
		t.Errorf("it was answered before the flush it builds on: %v", err)
	default:
	}
	h.release <- nil
	if err := errors.Join(<-h.first, <-second); err != nil {
		t.Fatal(err)
	}
	want = []string{want[0], string(rowKey(1)) + "=again", want[1]}
	err := h.View(func(tx kv.Tx) error {
		got, err := shown(t, tx)
		if !slices.Equal(got, want) {
			t.Errorf("the file has %q, want %q", got, want)
		}
		v, gerr := tx.Get("other", []byte("k"))
		if v != nil {
			t.Errorf("the file has a deleted row: %q", v)
		}
		return errors.Join(err, gerr)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNextCommitFailsWithTheOneBefore: where a flush fails, whoever read what it did
// not write fails with it, also who wrote nothing; and nothing of either is left.
func TestNextCommitFailsWithTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flush, want error }{{syscall.ENOSPC, kv.ErrFull}, {syscall.EIO, kv.ErrUnknown}} {
		h := hold(t)
		reads := func(tx kv.Tx) error { _, err := shown(t, tx); return err }
		var outs []chan error
		var ran sync.WaitGroup
		for _, fn := range []func(kv.Tx) error{reads, putRow(7)} {
			out := make(chan error, 1)
			outs = append(outs, out)
			ran.Add(1)
			go func() {
				out <- h.Update(context.Background(), func(tx kv.Tx) error { defer ran.Done(); return fn(tx) })
			}()
		}
		ran.Wait()
		h.release <- c.flush
		for i, out := range append([]chan error{h.first}, outs...) {
			if err := <-out; !errors.Is(err, c.want) {
				t.Errorf("after %v, function %d: %v, want %v", c.flush, i, err, c.want)
			}
		}
		if c.want == kv.ErrUnknown {
			continue
		}
		if err := h.Update(t.Context(), putRow(8)); err != nil {
			t.Errorf("the commit after: %v", err)
		}
		if right, _ := readAll(t, h.File, "after a full disk"); right != 4 {
			t.Errorf("%d rows, want the 3 of before and 1", right)
		}
	}
}
