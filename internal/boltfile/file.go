package boltfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"admitone/internal/kv"
)

// File is an open store.
type File struct {
	db       *bbolt.DB
	lock     *os.File
	group    *kv.Group
	newest   *batch // of the group, for its leaders
	max      int64  // Options.MaxSize
	meta     meta
	fresh    bool
	doubtful bool

	// visible keeps Views from beginning while a commit flushes. Once begun they
	// have their own snapshot and need it no more.
	visible sync.RWMutex
	unknown atomic.Bool // set under visible

	commitTx  func(*bbolt.Tx) error // commitBolt, but where a test injects a failure
	commits   atomic.Uint64
	functions atomic.Uint64
}

func newFile(db *bbolt.DB, limit int64, m meta, fresh bool) *File {
	f := &File{db: db, max: limit, meta: m, fresh: fresh, commitTx: commitBolt}
	f.group = kv.NewGroup(f.begin)
	return f
}

// Fresh says whether Open made the file: the store remembers nothing.
func (f *File) Fresh() bool { return f.fresh }

// Doubtful says whether one of the file's two meta pages was damaged when it was
// opened. bbolt goes by the other one then, which may be a commit older. A power cut
// does not do that, as the page's description lies in one sector.
func (f *File) Doubtful() bool { return f.doubtful }

// Created is when the file was made, by the clock of that time, in full seconds.
func (f *File) Created() time.Time { return f.meta.created }

// View is kv.Store.View. It waits for the flush of a commit under way.
func (f *File) View(fn func(kv.Tx) error) error {
	tx, err := f.beginView()
	if err != nil {
		return err
	}
	defer func() { _ = abandon(tx) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	t := &txn{batch: &batch{tx: tx, tables: make(map[string]*table)}}
	defer func() { t.done = true }()
	return fn(t)
}

func (f *File) beginView() (*bbolt.Tx, error) {
	f.visible.RLock()
	defer f.visible.RUnlock()
	if f.unknown.Load() {
		return nil, fmt.Errorf("read store: %w", kv.ErrUnknown)
	}
	if err := f.group.Err(); err != nil {
		return nil, err
	}
	tx, err := f.db.Begin(false)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return nil, kv.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	return tx, nil
}

// Update is kv.Store.Update.
func (f *File) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return f.group.Update(ctx, fn)
}

// Close is kv.Store.Close; it waits for the Views, too. Further calls do nothing.
func (f *File) Close() error {
	if !f.group.Close() {
		return nil
	}
	err := f.db.Close()
	if err = errors.Join(err, f.lock.Close()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Stats is what a store did since it was opened, and how large it is.
type Stats struct {
	Commits   uint64 // commits that were flushed
	Functions uint64 // functions in them; more than Commits where callers shared
	Pages     uint64 // pages that they wrote, without the two of the file's head
	Live      int64  // bytes of pages in use
	Free      int64  // bytes of pages in the file that are free to use
	Max       int64  // bytes that Live may reach
}

// Stats gives the figures of now.
func (f *File) Stats() (Stats, error) {
	s := Stats{Commits: f.commits.Load(), Functions: f.functions.Load(), Max: f.max}
	written := f.db.Stats().TxStats
	s.Pages = uint64(written.GetPageCount())
	tx, err := f.beginView()
	if err != nil {
		return Stats{}, err
	}
	s.Live = f.live(tx)
	s.Free = tx.Size() - s.Live
	return s, abandon(tx)
}

// live is the bytes of pages in use at the last commit.
func (f *File) live(tx *bbolt.Tx) int64 {
	s := f.db.Stats()
	return tx.Size() - int64(s.FreePageN+s.PendingPageN)*pageSize
}
