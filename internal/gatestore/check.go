package gatestore

import (
	"bytes"
	"errors"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// Check derives everything anew from the records in the log and gives an error for
// each stored row that says something else: cursors, the claims of each unit, the
// lists of open and untrusted claims, the holder of each row of the seen table. It
// reads the whole store; tests run it after they have done their worst.
func (s *Store) Check() error {
	return s.kv.View(func(tx kv.Tx) error {
		c := checker{store: s, tx: tx, best: map[ticket.ClaimID]ticket.Record{}}
		if err := c.records(); err != nil {
			return fmt.Errorf("check store: %w", err)
		}
		if err := errors.Join(c.rows(), c.lists(), c.units()); err != nil {
			return fmt.Errorf("check store: %w", err)
		}
		return errors.Join(c.found...)
	})
}

type checker struct {
	store *Store
	tx    kv.Tx
	best  map[ticket.ClaimID]ticket.Record // the revisions that win
	found []error
}

func (c *checker) say(format string, args ...any) {
	c.found = append(c.found, fmt.Errorf(format, args...))
}

// records goes through the log: each record belongs where it stands, each cursor
// where the gaps say: this opening's run has none. What was set aside does not decode and is left out.
func (c *checker) records() error {
	streams, err := allStreams(c.tx)
	if err != nil {
		return err
	}
	for _, st := range streams {
		next, top := st.base+1, st.base
		err := c.tx.Scan(bLog, streamKey(st.Stream), nil, func(k, raw []byte) (bool, error) {
			_, pos, err := splitPointer(k)
			if err != nil {
				return false, err
			}
			if top = pos; pos == next {
				next++
			}
			c.record(st.Stream, pos, raw)
			return true, nil
		})
		if err != nil {
			return err
		}
		if top = max(top, st.base); st.have != next-1 || st.head < top || st.Stream == c.store.Stream() && st.head != st.have {
			c.say("run %s/%s says %d without a gap and %d at most, its records say %d and %d", st.Source, st.Run, st.have, st.head, next-1, top)
		}
	}
	return nil
}

func (c *checker) record(s ticket.Stream, pos uint64, raw []byte) {
	rec, err := ticket.DecodeRecord(raw)
	if err != nil {
		return
	}
	if rec.Stream() != s || rec.Pos != pos {
		c.say("the record at %s/%s/%d says that it is %s/%s/%d", s.Source, s.Run, pos, rec.Source, rec.Run, rec.Pos)
		return
	}
	if rec.Claim == nil {
		return
	}
	if was, ok := c.best[rec.Claim.ID]; !ok || ticket.Wins(*rec.Claim, *was.Claim) {
		c.best[rec.Claim.ID] = rec
	}
}

// rows holds the claims' rows against the records. A pruned event's claims have
// none, and one that is closed may have lost some.
func (c *checker) rows() error {
	n := 0
	for id, rec := range c.best {
		closed, err := c.tx.Get(bClosed, []byte(rec.Claim.Unit.Event))
		if err != nil {
			return err
		}
		at, err := c.tx.Get(bClaims, append(rec.Claim.Unit.Key(), id.Bytes()...))
		if err != nil {
			return err
		}
		if at != nil {
			n++
		}
		if closed == nil && !bytes.Equal(at, logKey(rec.Stream(), rec.Pos)) {
			c.say("claim %s stands at %x, its highest revision at %s/%s/%d", id, at, rec.Source, rec.Run, rec.Pos)
		}
	}
	rows := 0
	err := c.tx.Scan(bClaims, nil, nil, func(_, _ []byte) (bool, error) {
		rows++
		return true, nil
	})
	if err == nil && rows != n {
		c.say("%d claims have rows, %d have records", rows, n)
	}
	return err
}

// lists holds the lists of own claims against the records.
func (c *checker) lists() error {
	for bucket, in := range map[string]func(ticket.Claim) bool{
		bOpen:      func(cl ticket.Claim) bool { return cl.State == ticket.Pending },
		bUntrusted: func(cl ticket.Claim) bool { return cl.Claimed.Class == ticket.Untrusted },
	} {
		listed := map[string]bool{}
		err := c.tx.Scan(bucket, nil, nil, func(k, _ []byte) (bool, error) {
			listed[string(k)] = true
			return true, nil
		})
		if err != nil {
			return err
		}
		for id, rec := range c.best {
			k := string(id.Bytes())
			if id.Gate == c.store.device && listed[k] != in(*rec.Claim) {
				c.say("claim %s is %s and %s, in the list %q: %v", id, rec.Claim.State, rec.Claim.Claimed.Class, bucket, listed[k])
			}
			delete(listed, k)
		}
		if len(listed) > 0 {
			c.say("%d claims are in the list %q and have no record", len(listed), bucket)
		}
	}
	return nil
}

// units checks that where a claim holds, the unit's row names the first that does.
func (c *checker) units() error {
	units := map[ticket.Unit]bool{}
	for _, rec := range c.best {
		units[rec.Claim.Unit] = true
	}
	for u := range units {
		v, err := loadView(c.tx, u)
		if err != nil {
			return err
		}
		holder, held := v.Holder(ticket.ClaimID{})
		if !held {
			continue
		}
		row, ok, err := kvseen.Bind(c.tx).Get(ticketKey(u))
		if err != nil {
			return err
		}
		if !ok || row.Holder != holder.Claim.ID.String() {
			c.say("ticket %s is held by %s, its row says %q", u.Ticket, holder.Claim.ID, row.Holder)
		}
	}
	return nil
}
