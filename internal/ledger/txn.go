package ledger

import (
	"fmt"
	"time"

	"admitone/internal/ticket"
)

// txn is one transaction with what it has read and changed so far, so that a
// batch of records on one run or unit reads and writes its rows once.
type txn struct {
	Tx
	l   *Ledger
	now time.Time

	streams []*streamState
	units   []*unitState
	events  []*eventState
	absent  ticket.ClaimID // not in the store before this transaction, as was looked up last

	after   []func()        // to be said after the commit
	written []ticket.Record // own records, to be published after the commit
	tie     bool            // another programme came with the version of the one that holds
}

func newTxn(l *Ledger, tx Tx) *txn { return &txn{Tx: tx, l: l, now: l.opt.Now()} }

// say puts off fn until after the commit.
func (t *txn) say(fn func()) { t.after = append(t.after, fn) }

type streamState struct {
	ticket.Stream
	row   StreamRow
	dirty bool
}

// stream gives the row of a run, to be changed in place with dirty set.
func (t *txn) stream(s ticket.Stream) (*streamState, error) {
	for _, st := range t.streams {
		if st.Stream == s {
			return st, nil
		}
	}
	row, err := t.Stream(s)
	if err != nil {
		return nil, fmt.Errorf("read run %s/%s: %w", s.Source, s.Run, err)
	}
	st := &streamState{Stream: s, row: row}
	t.streams = append(t.streams, st)
	return st, nil
}

type eventState struct {
	id    string
	row   EventRow
	dirty bool
}

func (t *txn) event(id string) (*eventState, error) {
	for _, e := range t.events {
		if e.id == id {
			return e, nil
		}
	}
	row, err := t.Event(id)
	if err != nil {
		return nil, fmt.Errorf("read event %q: %w", id, err)
	}
	e := &eventState{id: id, row: row}
	t.events = append(t.events, e)
	return e, nil
}

// flush settles the units that changed and writes what is left to write. Units
// first: settling them counts alarms and conflicts of their events.
func (t *txn) flush() error {
	for i := 0; i < len(t.units); i++ {
		if err := t.settle(t.units[i]); err != nil {
			return err
		}
	}
	for _, st := range t.streams {
		if !st.dirty {
			continue
		}
		if err := t.PutStream(st.Stream, st.row); err != nil {
			return fmt.Errorf("store run: %w", err)
		}
		st.dirty = false
	}
	for _, e := range t.events {
		if !e.dirty {
			continue
		}
		if err := t.PutEvent(e.id, e.row); err != nil {
			return fmt.Errorf("store event: %w", err)
		}
		e.dirty = false
	}
	return nil
}
