package gatestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// Learn merges records that came from elsewhere: each once, whatever the order
// and however often it comes. Records beyond a gap count at once, the cursor
// waits.
func (s *Store) Learn(ctx context.Context, arrived []ticket.Arrival) (out ticket.Learned, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		out = ticket.Learned{}
		l := learner{store: s, tx: tx, out: &out, units: map[ticket.Unit]bool{}, runs: map[ticket.Stream]bool{}}
		for _, a := range arrived {
			if err := l.take(a); err != nil {
				return err
			}
		}
		return l.finish()
	})
	if err != nil {
		return ticket.Learned{}, fmt.Errorf("learn records: %w", err)
	}
	return out, nil
}

// enrolled is the state of a device that stands at its place.
const enrolled = "enrolled"

type learner struct {
	store *Store
	tx    kv.Tx
	out   *ticket.Learned
	units map[ticket.Unit]bool
	runs  map[ticket.Stream]bool
}

func (l *learner) take(a ticket.Arrival) error {
	st, err := getStream(l.tx, a.Stream)
	if err != nil {
		return err
	}
	if a.Stream == l.store.Stream() || a.Pos == 0 || a.Pos <= st.base {
		return nil // the present run has one writer; an earlier one may have been put back from a copy
	}
	k := logKey(a.Stream, a.Pos)
	was, err := l.tx.Get(bLog, k)
	if err != nil {
		return err
	}
	if was != nil {
		return l.again(a, was)
	}
	if err := l.tx.Put(bLog, k, a.Raw); err != nil {
		return err
	}
	if a.Pos > st.head {
		st.head = a.Pos
	}
	if err := putStream(l.tx, st); err != nil {
		return err
	}
	l.runs[a.Stream] = true
	return l.apply(a)
}

// again handles a position that is here already: the same bytes are a repeat;
// other bytes are the evidence of a lost store. What reads takes the place of what
// did not, or was given up. The merge rule decides between two contents of one
// revision; of anything else the first stays.
func (l *learner) again(a ticket.Arrival, was []byte) error {
	if bytes.Equal(was, a.Raw) || a.Record == nil || a.Record.Claim == nil {
		return nil
	}
	old, err := ticket.DecodeRecord(was)
	c := a.Record.Claim
	if len(was) > 0 {
		l.out.Forked = append(l.out.Forked, *c)
	}
	if err == nil && (old.Claim == nil || old.Claim.ID != c.ID || old.Claim.Unit != c.Unit || !ticket.Wins(*c, *old.Claim)) {
		return nil // of two units the first stays: its row points here
	}
	if err := l.tx.Put(bLog, logKey(a.Stream, a.Pos), a.Raw); err != nil {
		return err
	}
	return l.apply(a)
}

func (l *learner) apply(a ticket.Arrival) error {
	r := a.Record
	switch {
	case r == nil:
		l.out.Aside++
	case r.Claim != nil:
		return l.claim(*r)
	case r.Feed != nil:
		return l.feed(*r)
	}
	return nil
}

func (l *learner) claim(r ticket.Record) error {
	closed, err := l.tx.Get(bClosed, []byte(r.Claim.Unit.Event))
	if err != nil {
		return err
	}
	if closed != nil {
		l.out.Late++
		return nil
	}
	l.units[r.Claim.Unit] = true
	if r.Source == l.store.device && r.Claim.State == ticket.Pending {
		l.out.Own = append(l.out.Own, *r.Claim)
	}
	return l.store.index(l.tx, r)
}

// feed takes the entry if its version is the highest of its subject.
func (l *learner) feed(r ticket.Record) error {
	f := r.Feed
	was, err := l.tx.Get(bFeeds, []byte(f.Subject))
	if err != nil {
		return err
	}
	if len(was) >= 8 && binary.BigEndian.Uint64(was) >= f.Version {
		return nil
	}
	v := append(binary.BigEndian.AppendUint64(nil, f.Version), logKey(r.Stream(), r.Pos)...)
	if err := l.tx.Put(bFeeds, []byte(f.Subject), v); err != nil {
		return err
	}
	switch {
	case f.Programme != nil:
		l.out.Programme = f.Programme.Signed
	case f.Codes != nil:
		l.out.Codes = append(l.out.Codes, f.Codes.Event)
	case f.Revoke != nil:
		l.out.Revoked = append(l.out.Revoked, f.Revoke.Ticket)
	case f.Gate != nil && f.Gate.Device == l.store.device && f.Gate.State == enrolled:
		l.out.Place = f.Gate.Place
	case f.Closed != nil:
		l.out.Closed = append(l.out.Closed, f.Closed.Event)
		return l.tx.Put(bClosed, []byte(f.Closed.Event), nil)
	case f.Release != nil:
		l.units[f.Release.Unit] = true
		return l.tx.Put(bReleased, f.Release.Claim.Bytes(), binary.BigEndian.AppendUint32(nil, f.Release.Rev))
	}
	return nil
}

// finish moves the cursors over what is contiguous now, and the rows of the units.
func (l *learner) finish() error {
	for id := range l.runs {
		st, err := getStream(l.tx, id)
		if err != nil {
			return err
		}
		for st.have < st.head {
			b, err := l.tx.Get(bLog, logKey(id, st.have+1))
			if err != nil {
				return err
			}
			if b == nil {
				break
			}
			st.have++
		}
		if err := putStream(l.tx, st); err != nil {
			return err
		}
	}
	for u := range l.units {
		if err := settleRow(l.tx, u); err != nil {
			return err
		}
		l.out.Units = append(l.out.Units, u)
	}
	return nil
}

// Skip moves a run's cursor to a base below which its holder has pruned: what is
// there cannot be had any more and is not needed.
func (s *Store) Skip(ctx context.Context, id ticket.Stream, base uint64) error {
	err := s.kv.Update(ctx, func(tx kv.Tx) error {
		st, err := getStream(tx, id)
		if err != nil || id == s.Stream() || base <= st.have {
			return err
		}
		st.have, st.base, st.head = base, max(st.base, base), max(st.head, base)
		return putStream(tx, st)
	})
	if err != nil {
		return fmt.Errorf("skip pruned records: %w", err)
	}
	return nil
}

// feedOf gives the feed entry of the highest version of a subject, nil: none.
func feedOf(tx kv.Tx, subject string) (*ticket.Feed, error) {
	v, err := tx.Get(bFeeds, []byte(subject))
	if err != nil || v == nil {
		return nil, err
	}
	b, err := tx.Get(bLog, v[8:])
	if err != nil {
		return nil, err
	}
	rec, err := ticket.DecodeRecord(b)
	if err != nil || rec.Feed == nil {
		return nil, fmt.Errorf("read feed %q: %w", subject, kv.ErrCorrupt)
	}
	return rec.Feed, nil
}
