package boltfile

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"admitone/internal/kv"
)

// commit is the group's kv.Commit.
func (f *File) commit(fns []func(kv.Tx) error) []error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	errs := make([]error, len(fns))
	tx, err := f.db.Begin(true)
	if err != nil {
		return kv.Settle(errs, fmt.Errorf("begin transaction: %w", err))
	}
	defer func() { _ = abandon(tx) }() // of no effect after a commit
	dirty, err := f.runAll(tx, fns, errs)
	if err != nil || !dirty {
		return kv.Settle(errs, err)
	}
	return kv.Settle(errs, f.flush(tx, len(fns)))
}

// runAll runs the functions, and undoes those that fail or may not grow the store.
// It reports whether the file has to change, and an error where the transaction as a
// whole is of no use: nothing was written then.
func (f *File) runAll(tx *bbolt.Tx, fns []func(kv.Tx) error, errs []error) (dirty bool, err error) {
	full := f.live(tx) >= f.max
	b := newBatch(tx, true)
	for i, fn := range fns {
		t := &txn{batch: b, writable: true}
		errs[i] = fn(t)
		t.done = true
		if errs[i] == nil && full && t.grown > 0 {
			errs[i] = fmt.Errorf("write %d bytes more: %w", t.grown, kv.ErrFull)
		}
		if b.broken != nil {
			return false, b.broken
		}
		if errs[i] != nil {
			t.rollBack()
		}
	}
	return b.apply()
}

// flush makes the transaction durable. While it runs no View begins: bbolt shows
// a commit to readers before its last flush has returned.
func (f *File) flush(tx *bbolt.Tx, fns int) error {
	f.visible.Lock()
	defer f.visible.Unlock()
	before := tx.ID() - 1
	err := f.commitTx(tx)
	if err == nil {
		f.commits.Add(1)
		f.functions.Add(uint64(fns))
		return nil
	}
	if noSpace(err) && f.shows(before) {
		return fmt.Errorf("commit: %w: %w", kv.ErrFull, err)
	}
	f.unknown.Store(true)
	return fmt.Errorf("commit: %w: %w", kv.ErrUnknown, err)
}

// commitBolt commits. A panic is an error here: it means that pages already in
// use make no sense.
func commitBolt(tx *bbolt.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("write pages: %v: %w", r, kv.ErrCorrupt)
		}
	}()
	return tx.Commit()
}

// abandon ends a transaction without writing.
func abandon(tx *bbolt.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("roll back: %v: %w", r, kv.ErrUnknown)
		}
	}()
	if err := tx.Rollback(); err != nil && !errors.Is(err, berrors.ErrTxClosed) {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// noSpace says whether a commit failed for want of space. bbolt wraps the errors
// of growing the file without their type, so that only their text is left.
func noSpace(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, no) || strings.Contains(err.Error(), no.Error()) {
			return true
		}
	}
	return false
}

// shows says whether the file's newest state is still the one of transaction id:
// the failed one has not reached the meta page, and left nothing. bbolt has
// rolled it back by then; where it could not, the answer is no.
func (f *File) shows(id int) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	tx, err := f.db.Begin(false)
	if err != nil {
		return false
	}
	same = tx.ID() == id
	return abandon(tx) == nil && same
}
