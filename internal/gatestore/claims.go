package gatestore

import (
	"context"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// Claim makes a pending claim on a unit if no known claim holds it: insert if
// absent, in one transaction with the record that will be sent. The template
// gives everything but the claim's id, its After and its state (0: Pending). It
// returns after the commit.
func (s *Store) Claim(ctx context.Context, tmpl ticket.Claim, floor *ticket.Floor, judge ticket.Judge) (ticket.Made, error) {
	var made ticket.Made
	err := s.kv.Update(ctx, func(tx kv.Tx) error {
		made = ticket.Made{}
		closed, err := tx.Get(bClosed, []byte(tmpl.Unit.Event))
		if err != nil || closed != nil {
			made.Reason = ticket.Closed
			return err
		}
		view, err := loadView(tx, tmpl.Unit)
		if err != nil {
			return err
		}
		if judge != nil {
			judge(&view)
		}
		if made.Reason, made.Cite = view.Blocked(); made.Reason != ticket.OK {
			return nil
		}
		c := tmpl
		c.After = view.Freed()
		if c.State == 0 {
			c.State = ticket.Pending
		}
		made.Record, err = s.append(tx, func(pos uint64) ticket.Record {
			c.ID = ticket.ClaimID{Gate: s.device, Run: s.run, Pos: pos}
			return ticket.Record{Claim: &c}
		})
		if err != nil {
			return err
		}
		if floor != nil {
			if err := putFloor(tx, *floor); err != nil {
				return err
			}
		}
		if err := s.index(tx, made.Record); err != nil {
			return err
		}
		return settleRow(tx, tmpl.Unit)
	})
	if err != nil {
		return ticket.Made{}, fmt.Errorf("claim: %w", err)
	}
	return made, nil
}

// Revise writes the next revision of an own claim, if change (given the highest
// revision) returns true. It reports the record, or false where change declined
// or the claim is not here.
func (s *Store) Revise(ctx context.Context, id ticket.ClaimID, change func(*ticket.Claim) bool) (rec ticket.Record, ok bool, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		ok = false
		c, found, err := find(tx, id)
		if err != nil || !found {
			return err
		}
		before := c
		if c.ID.Gate != s.device || !change(&c) {
			return nil
		}
		c.ID, c.Unit, c.Rev = before.ID, before.Unit, before.Rev
		rec, err = s.revise(tx, c)
		ok = err == nil
		return err
	})
	if err != nil {
		return ticket.Record{}, false, fmt.Errorf("revise claim: %w", err)
	}
	return rec, ok, nil
}

// Correct gives up to limit own claims of one boot, whose clock was not trusted,
// the time that change finds for them: a new revision of the same state, once per
// claim. It reports the records written; none are left when it returns none.
func (s *Store) Correct(ctx context.Context, boot ticket.BootID, limit int, change func(*ticket.Stamp)) (recs []ticket.Record, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		recs = nil
		claims, err := listed(tx, bUntrusted)
		if err != nil {
			return err
		}
		for _, c := range claims {
			if c.Claimed.Boot != boot || len(recs) == limit {
				continue
			}
			change(&c.Claimed)
			c.Claimed.Class = ticket.Trusted
			rec, err := s.revise(tx, c)
			if err != nil {
				return err
			}
			recs = append(recs, rec)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("correct claims: %w", err)
	}
	return recs, nil
}

// revise writes a claim's next revision with its row.
func (s *Store) revise(tx kv.Tx, c ticket.Claim) (ticket.Record, error) {
	c.Rev++
	rec, err := s.append(tx, func(uint64) ticket.Record { return ticket.Record{Claim: &c} })
	if err != nil {
		return rec, err
	}
	if err := s.index(tx, rec); err != nil {
		return rec, err
	}
	return rec, settleRow(tx, c.Unit)
}

// Find gives the highest revision of a claim.
func (s *Store) Find(id ticket.ClaimID) (c ticket.Claim, ok bool, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		c, ok, err = find(tx, id)
		return err
	})
	return c, ok, err
}

// Record writes an event. Where mode is not empty it becomes the stored mode, in
// the same transaction.
func (s *Store) Record(ctx context.Context, e ticket.Event, mode ticket.GateMode) (rec ticket.Record, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		if mode != "" {
			if err := tx.Put(bMeta, []byte("mode"), []byte(mode)); err != nil {
				return err
			}
		}
		rec, err = s.append(tx, func(uint64) ticket.Record { return ticket.Record{Event: &e} })
		return err
	})
	if err != nil {
		return ticket.Record{}, fmt.Errorf("record event: %w", err)
	}
	return rec, nil
}

// View gives what is known of a unit. Overdue is not set: only the loop knows.
func (s *Store) View(u ticket.Unit) (v ticket.View, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		v, err = loadView(tx, u)
		return err
	})
	if err != nil {
		return ticket.View{}, fmt.Errorf("read unit: %w", err)
	}
	return v, nil
}

// Unreceipted gives this gate's own records of a unit that the ledger has not
// receipted, oldest first.
func (s *Store) Unreceipted(u ticket.Unit) (out [][]byte, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		out = nil
		return tx.Scan(bClaims, u.Key(), nil, func(k, v []byte) (bool, error) {
			at, pos, err := splitPointer(v)
			if err != nil || at.Source != s.device {
				return err == nil, err
			}
			high, err := receipt(tx, at)
			if err != nil || pos <= high {
				return err == nil, err
			}
			id, err := ticket.ClaimIDFromBytes(k[len(u.Key()):])
			if err != nil {
				return false, err
			}
			// Rev 0 first: the ledger must see the claim before what became of it.
			if id.Run != at.Run || id.Pos != pos {
				if first, err := tx.Get(bLog, logKey(ticket.Stream{Source: id.Gate, Run: id.Run}, id.Pos)); err == nil && first != nil {
					out = append(out, first)
				}
			}
			rec, err := tx.Get(bLog, logKey(at, pos))
			if err == nil {
				out = append(out, rec)
			}
			return err == nil, err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read unreceipted records: %w", err)
	}
	return out, nil
}
