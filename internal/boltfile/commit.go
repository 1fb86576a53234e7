package boltfile

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"admitone/internal/kv"
)

// begin is what the group's batches begin with. A commit that is being flushed
// meanwhile is not in the file yet, or not for certain: what it changes stands in
// the batch from the start, as if read.
func (f *File) begin() kv.Batch {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	before := f.newest
	ended := before == nil || before.ended.Load() // looked at first: then the file shows it
	b := &batch{file: f, keep: true, tables: make(map[string]*table)}
	b.changes, f.newest = sync.OnceValue(b.list), b
	if b.tx, b.broken = f.db.Begin(false); b.broken != nil {
		b.broken = fmt.Errorf("begin transaction: %w", b.broken)
		return b
	}
	b.full = f.live(b.tx) >= f.max
	if !ended {
		_ = b.inherit(before) // its error is in b.broken
	}
	return b
}

// Run is kv.Batch.Run. A function that may not grow the store is undone, too.
func (b *batch) Run(fn func(kv.Tx) error) error {
	if b.broken != nil {
		return b.broken
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	t := &txn{batch: b, writable: true}
	b.fns++
	err := fn(t)
	t.done = true
	if err == nil && b.full && t.grown > 0 {
		err = fmt.Errorf("write %d bytes more: %w", t.grown, kv.ErrFull)
	}
	if b.broken != nil {
		return b.broken
	}
	if err != nil {
		t.rollBack()
	}
	return err
}

// Flush is kv.Batch.Flush.
func (b *batch) Flush() error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	b.failed = b.commit()
	b.ended.Store(true)
	return b.failed
}

// commit writes what the functions changed, if anything, to a bbolt transaction of
// its own.
func (b *batch) commit() error {
	switch {
	case b.broken != nil:
		return b.broken
	case b.before != nil && b.before.failed != nil:
		return fmt.Errorf("the commit before, whose writes were read: %w", b.before.failed)
	}
	b.before = nil
	changes := b.changes()
	b.Drop() // or the pages of the commit before would stay in use
	if len(changes) == 0 {
		return nil
	}
	tx, err := b.file.db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = abandon(tx) }() // of no effect after a commit
	if err := apply(tx, changes); err != nil {
		return err // of a damaged page: nothing was written
	}
	return b.file.flush(tx, b.fns)
}

// Drop is kv.Batch.Drop.
func (b *batch) Drop() {
	if b.tx != nil {
		_ = abandon(b.tx)
	}
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
