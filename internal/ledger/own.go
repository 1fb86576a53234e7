package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"admitone/internal/ticket"
)

// The first parts of the sources that ledger processes write: their feeds, and
// what they write for hand-held scanners.
const (
	feedSource = "ledger/"
	handSource = "http/"
)

func isLedger(s ticket.Source) bool { return strings.HasPrefix(string(s), feedSource) }

// central reports whether a ledger process writes the source, so that no gate has
// more of it than was told once by a ledger.
func central(s ticket.Source) bool {
	return isLedger(s) || strings.HasPrefix(string(s), handSource)
}

// ownRun is a run that this process writes now.
type ownRun struct {
	ticket.Stream
	head atomic.Uint64 // committed
}

// ownRuns are the runs of this opening: one for the feeds, and one for each
// caller with a hand-held scanner, begun when it first claims. Several processes
// on one store may serve the same caller: each has a run of its own.
type ownRuns struct {
	newRun func() ticket.Run
	unsure atomic.Bool // a commit's outcome is unknown: a head may be behind what is stored

	mu  sync.Mutex
	all []*ownRun // the feeds' first
}

// of gives the source's run, beginning one where there is none.
func (o *ownRuns) of(source ticket.Source) *ownRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.all {
		if r.Source == source {
			return r
		}
	}
	r := &ownRun{Stream: ticket.Stream{Source: source, Run: o.newRun()}}
	o.all = append(o.all, r)
	return r
}

// has reports whether this process writes the run.
func (o *ownRuns) has(s ticket.Stream) bool {
	return slices.ContainsFunc(o.list(), func(r *ownRun) bool { return r.Stream == s })
}

func (o *ownRuns) list() []*ownRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// Stream is the run that this opening writes its feeds under.
func (l *Ledger) Stream() ticket.Stream { return l.own.of(l.source).Stream }

// Own gives the runs that this process writes now and how far each is committed,
// its feeds' first.
func (l *Ledger) Own() []ticket.StreamPos {
	var out []ticket.StreamPos
	for _, r := range l.own.list() {
		out = append(out, ticket.StreamPos{Source: r.Source, Run: r.Run, Pos: r.head.Load()})
	}
	return out
}

// raiseHeads reads how far the own runs are committed where a commit's outcome is
// unknown: a record that is there though its caller was told nothing shows in the
// next heads, and gates fetch it.
func (l *Ledger) raiseHeads(ctx context.Context) error {
	if !l.own.unsure.Swap(false) {
		return nil
	}
	for _, own := range l.own.list() {
		err := l.view(ctx, func(t *txn) error {
			row, err := t.Stream(own.Stream)
			if err == nil {
				raise(&own.head, row.High)
			}
			return err
		})
		if err != nil {
			l.own.unsure.Store(true)
			return wrap("read own heads", err)
		}
	}
	return nil
}

// next gives the next position of one of this process's own runs.
func (t *txn) next(source ticket.Source) (ticket.Stream, uint64, error) {
	st, err := t.stream(t.l.own.of(source).Stream)
	if err != nil {
		return ticket.Stream{}, 0, err
	}
	return st.Stream, st.row.High + 1, nil
}

// write puts a record at the next position of an own run, to be published after
// the commit, and lets it have its effect.
func (t *txn) write(source ticket.Source, rec ticket.Record) (ticket.Record, error) {
	st, err := t.stream(t.l.own.of(source).Stream)
	if err != nil {
		return rec, err
	}
	rec.Source, rec.Run, rec.Pos = st.Source, st.Run, st.row.High+1
	raw, err := rec.Encode()
	if err != nil {
		return rec, fmt.Errorf("write record: %w", err)
	}
	put, err := t.PutRecord(st.Stream, rec.Pos, Kept{Raw: raw})
	if err = cmp.Or(err, taken(put)); err != nil {
		return rec, fmt.Errorf("write record at %s/%s/%d: %w", rec.Source, rec.Run, rec.Pos, err)
	}
	if err := t.advance(st, rec.Pos); err != nil {
		return rec, err
	}
	t.written = append(t.written, rec)
	return rec, t.apply(arrival{stream: st.Stream, pos: rec.Pos, raw: raw, rec: &rec})
}

// taken is the error where a position of an own run was not free: another writes
// under the same run.
func taken(p Put) error {
	if p == PutNew {
		return nil
	}
	return errors.New("the position is taken: does another process write under this run?")
}
