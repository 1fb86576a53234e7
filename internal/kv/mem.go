package kv

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// Fate is what becomes of one commit of a Mem.
type Fate uint8

// The fates.
const (
	Durable  Fate = iota // the commit succeeds
	FailLost             // it fails, and its writes are gone after Crash
	FailKept             // it fails, and yet its writes are there after Crash: fsync failed after the last write
)

// Mem is a Store in memory, for tests and the simulation: it can crash, keep only
// what was committed, and fail a commit in both ways a disk can. It does no I/O,
// starts no goroutine and waits on channels only, so it works in a testing/synctest
// bubble if it was made there.
type Mem struct {
	group *Group

	mu      sync.Mutex
	state   state              // committed; a map in here never changes
	tip     state              // with what the newest batch wrote
	fate    func(fns int) Fate // asked before each commit
	next    Fate               // of the next commit, once
	commits int
	crashed bool
}

type state map[string]*node

// NewMem gives an empty store.
func NewMem() *Mem { return newMem(state{}) }

func newMem(s state) *Mem {
	m := &Mem{state: s, tip: s, fate: func(int) Fate { return Durable }}
	m.group = NewGroup(m.begin)
	return m
}

// View is Store.View. It never waits.
func (m *Mem) View(fn func(Tx) error) error {
	if err := m.group.Err(); err != nil {
		return err
	}
	tx := &memTx{state: m.committed()}
	defer tx.end()
	return fn(tx)
}

// Update is Store.Update.
func (m *Mem) Update(ctx context.Context, fn func(Tx) error) error {
	return m.group.Update(ctx, fn)
}

// Close is Store.Close. The content is gone, unless Crash is called instead.
func (m *Mem) Close() error {
	m.group.Close()
	return nil
}

// Crash is the power cut: it gives a new store that holds what was committed, and
// ends this one, whose later calls return ErrClosed (ErrUnknown if a commit had
// failed). A commit under way is lost, and its callers are told ErrUnknown. What
// OnCommit and OnGroup set does not pass to the new store.
func (m *Mem) Crash() *Mem {
	m.mu.Lock()
	m.crashed = true
	s := m.state
	m.mu.Unlock()
	m.group.mu.Lock()
	m.group.fail(ErrClosed)
	m.group.mu.Unlock()
	return newMem(s)
}

// Copy gives a new store that holds what is committed now, and leaves this one as
// it is: a backup, to be put back later.
func (m *Mem) Copy() *Mem { return newMem(m.committed()) }

// FailNext gives the next commit that has writes another fate, once.
func (m *Mem) FailNext(f Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = f
}

// OnCommit sets what is asked before each commit that has writes, with the number
// of functions in it: the place for a simulated flush (it may sleep), a random
// fate, or a Crash.
func (m *Mem) OnCommit(fate func(fns int) Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate = fate
}

// OnGroup sets how many of the queued functions share the next commit, so that a
// simulation can choose at random; the answer is brought between 1 and queued.
func (m *Mem) OnGroup(take func(queued int) int) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.group.take = take
}

// Commits is how many commits with writes became durable since the store was made.
func (m *Mem) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

func (m *Mem) committed() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// memBatch is a Batch: an undo is to go on with the state before.
type memBatch struct {
	m     *Mem
	state state
	wrote bool
	fns   int
}

func (m *Mem) begin() Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memBatch{m: m, state: m.tip}
}

// Run is Batch.Run.
func (b *memBatch) Run(fn func(Tx) error) error {
	tx := &memTx{state: maps.Clone(b.state), writable: true}
	b.fns++
	err := fn(tx)
	tx.end()
	if err == nil && tx.wrote {
		b.state, b.wrote = tx.state, true
		b.m.mu.Lock()
		b.m.tip = b.state
		b.m.mu.Unlock()
	}
	return err
}

// Flush is Batch.Flush. Every failure is ErrUnknown and ends the store, so none
// that follows is flushed.
func (b *memBatch) Flush() error {
	if !b.wrote {
		return nil
	}
	return b.m.publish(b.state, b.fns)
}

// Drop is Batch.Drop.
func (b *memBatch) Drop() {}

// publish makes s the committed state if fate allows.
func (m *Mem) publish(s state, fns int) error {
	m.mu.Lock()
	fate, next := m.fate, m.next
	m.next = Durable
	m.mu.Unlock()
	f := fate(fns) // may sleep: no lock is held
	if next != Durable {
		f = next
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed {
		return fmt.Errorf("commit: store crashed: %w", ErrUnknown)
	}
	if f != FailLost {
		m.state = s
	}
	if f != Durable {
		return fmt.Errorf("commit: injected failure: %w", ErrUnknown)
	}
	m.commits++
	return nil
}
