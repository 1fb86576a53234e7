package ledger

import (
	"context"
	"fmt"
	"sync/atomic"

	"admitone/internal/ticket"
)

// feed writes an entry of the ledger's own feed: the next position of its run,
// the next version of its subject.
//
// A version is at least the time in milliseconds, so that an entry written after
// a restore from a backup stands above any that was lost with the newer state and
// comes back from the gates. Programmes keep the version they are signed with.
func (t *txn) feed(f ticket.Feed) (ticket.Record, error) {
	f.At = t.now.UnixNano()
	if f.Version == 0 {
		was, _, err := t.Subject(f.Subject)
		if err != nil {
			return ticket.Record{}, err
		}
		f.Version = max(was.Version+1, uint64(max(0, t.now.UnixMilli())))
	}
	return t.write(t.l.source, ticket.Record{Feed: &f})
}

// applyFeed lets an entry hold if its version is the highest of its subject.
func (t *txn) applyFeed(rec ticket.Record) error {
	f := rec.Feed
	was, ok, err := t.Subject(f.Subject)
	if err != nil || ok && was.Version >= f.Version {
		t.tie = t.tie || was.Version == f.Version && f.Programme != nil
		return err
	}
	if f.Programme != nil {
		if ok, err := t.programmed(f); err != nil || !ok {
			return err
		}
	}
	err = t.PutSubject(f.Subject, SubjectRow{Version: f.Version, Source: rec.Source, Run: rec.Run, Pos: rec.Pos})
	if err != nil {
		return fmt.Errorf("store subject %q: %w", f.Subject, err)
	}
	switch {
	case f.Release != nil:
		u, err := t.unit(f.Release.Unit)
		if err != nil {
			return err
		}
		u.touched = u.touched || len(u.rows) > 0
	case f.Closed != nil:
		ev, err := t.event(f.Closed.Event)
		if err != nil || ev.row.Closed != 0 {
			return err
		}
		ev.row.Closed, ev.dirty = f.At, true
	}
	return nil
}

// programmed notes the events of a programme entry. It reports false where this
// ledger did not sign it, or not with the version that it claims.
func (t *txn) programmed(f *ticket.Feed) (bool, error) {
	p, err := t.l.openProgramme(f.Programme.Signed)
	if err != nil || p.Version != f.Version {
		return false, nil
	}
	for _, e := range p.Events {
		ev, err := t.event(e.ID)
		if err != nil {
			return false, err
		}
		ev.row.Forget, ev.dirty = e.Forget.UnixNano(), true
	}
	return true, nil
}

// feedOf gives the entry that holds for a subject, nil where there is none.
func (t *txn) feedOf(subject string) (*ticket.Feed, error) {
	raw, err := t.feedRaw(subject)
	if err != nil || raw == nil {
		return nil, err
	}
	rec, err := ticket.DecodeRecord(raw)
	if err != nil {
		return nil, fmt.Errorf("read subject %q: %w", subject, err)
	}
	return rec.Feed, nil
}

func (t *txn) feedRaw(subject string) ([]byte, error) {
	at, ok, err := t.Subject(subject)
	if err != nil || !ok {
		return nil, err
	}
	k, ok, err := t.Record(ticket.Stream{Source: at.Source, Run: at.Run}, at.Pos)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("read subject %q: its record is missing", subject)
	}
	return k.Raw, nil
}

// Learn takes records that this ledger lost and a gate still holds: after a restore
// from a backup what ledgers wrote under earlier runs, which nobody else can give
// back, and what gates wrote that are gone. The present runs are complete here by
// definition and are not taken from anybody.
func (l *Ledger) Learn(ctx context.Context, arrived []ticket.Arrival) error {
	in := make([]arrival, 0, len(arrived))
	for _, a := range arrived {
		if l.own.has(a.Stream) || a.Stream.Source == "" || a.Pos == 0 {
			l.counts.refused.Add(1)
			return fmt.Errorf("learn record %d of %s: %w", a.Pos, a.Stream.Source, ErrForeign)
		}
		in = append(in, read(a.Stream, a.Pos, a.Raw))
	}
	err := l.update(ctx, func(t *txn) error {
		for _, a := range in {
			if _, err := t.merge(a); err != nil {
				return err
			}
		}
		return t.outbid()
	})
	return wrap("learn records", err)
}

// outbid signs the programme that holds here again, one version up, where another
// of the same version came back from the gates: it was pushed after the state with
// the other one was lost, and two programmes of one version would stay in use.
func (t *txn) outbid() error {
	if !t.tie {
		return nil
	}
	p, err := t.programme()
	if err != nil {
		return err
	}
	again := p.prog
	again.Version++
	return t.signProgramme(again)
}

// LostFeeds compares what a gate has of what ledgers wrote (the cursors of its
// hello) with what is here. It names the runs to fetch from that gate, and the
// positions after which: none but after a restore from a backup.
func (l *Ledger) LostFeeds(ctx context.Context, cursors []ticket.StreamPos) (out []ticket.StreamPos, err error) {
	err = l.view(ctx, func(t *txn) error {
		out, err = t.lost(cursors)
		return err
	})
	return out, err
}

func (t *txn) lost(cursors []ticket.StreamPos) (out []ticket.StreamPos, err error) {
	for _, c := range cursors {
		if !central(c.Source) || t.l.own.has(c.Stream()) {
			continue
		}
		st, err := t.stream(c.Stream())
		if err != nil {
			return nil, err
		}
		if c.Pos > st.row.High {
			out = append(out, ticket.StreamPos{Source: c.Source, Run: c.Run, Pos: st.row.High})
		}
	}
	return out, nil
}

// knownProgramme is the decoded programme with the place of its record.
type knownProgramme struct {
	at     SubjectRow
	prog   ticket.Programme
	events map[string]ticket.ProgrammeEvent
}

// programme gives the programme that holds, decoded once per version.
func (t *txn) programme() (*knownProgramme, error) {
	at, ok, err := t.Subject(ticket.ProgrammeSubject)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &knownProgramme{}, nil
	}
	if p := t.l.prog.Load(); p != nil && p.at == at {
		return p, nil
	}
	f, err := t.feedOf(ticket.ProgrammeSubject)
	if err != nil {
		return nil, err
	}
	prog, err := t.l.openProgramme(f.Programme.Signed)
	if err != nil {
		return nil, fmt.Errorf("read programme: %w", err)
	}
	p := &knownProgramme{at: at, prog: prog, events: make(map[string]ticket.ProgrammeEvent, len(prog.Events))}
	for _, e := range prog.Events {
		p.events[e.ID] = e
	}
	if len(t.written) == 0 { // what this very transaction wrote may yet be undone
		t.l.prog.Store(p)
	}
	return p, nil
}

// open reports whether an event is on the programme and not closed.
func (t *txn) open(event string) (bool, error) {
	p, err := t.programme()
	if err != nil {
		return false, err
	}
	ev, err := t.event(event)
	if err != nil {
		return false, err
	}
	_, known := p.events[event]
	return known && ev.row.Closed == 0, nil
}

type counters struct {
	asks, hands, refused, aside, unpublished atomic.Uint64
}
