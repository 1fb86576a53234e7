package gatestore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// append gives the next position of the present run to a record and puts it in
// the log.
func (s *Store) append(tx kv.Tx, make func(pos uint64) ticket.Record) (ticket.Record, error) {
	st, err := getStream(tx, s.Stream())
	if err != nil {
		return ticket.Record{}, err
	}
	st.have++
	st.head = st.have
	rec := make(st.have)
	rec.Source, rec.Run, rec.Pos = s.device, s.run, st.have
	b, err := rec.Encode()
	if err != nil {
		return ticket.Record{}, err
	}
	if err := putStream(tx, st); err != nil {
		return ticket.Record{}, err
	}
	return rec, tx.Put(bLog, logKey(st.Stream, st.have), b)
}

// index makes a claim record the one that views show, if it wins over the stored
// one, and keeps the list of own pending claims.
func (s *Store) index(tx kv.Tx, rec ticket.Record) error {
	c := *rec.Claim
	k := append(c.Unit.Key(), c.ID.Bytes()...)
	was, err := latest(tx, k)
	if err != nil {
		return err
	}
	if was != nil && !ticket.Wins(c, *was.Claim) {
		return nil
	}
	if err := tx.Put(bClaims, k, logKey(rec.Stream(), rec.Pos)); err != nil {
		return err
	}
	if c.ID.Gate != s.device {
		return nil
	}
	if err := mark(tx, bOpen, c, c.State == ticket.Pending); err != nil {
		return err
	}
	return mark(tx, bUntrusted, c, c.Claimed.Class == ticket.Untrusted)
}

// mark keeps a claim in a list bucket, or takes it out, touching the bucket only
// where that changes it.
func mark(tx kv.Tx, bucket string, c ticket.Claim, in bool) error {
	k := c.ID.Bytes()
	was, err := tx.Get(bucket, k)
	switch {
	case err != nil || (was != nil) == in:
		return err
	case in:
		return tx.Put(bucket, k, c.Unit.Key())
	}
	return tx.Delete(bucket, k)
}

// latest gives the record that a row of the claims bucket points at, nil where
// there is no such row.
func latest(tx kv.Tx, key []byte) (*ticket.Record, error) {
	at, err := tx.Get(bClaims, key)
	if err != nil || at == nil {
		return nil, err
	}
	return claimAt(tx, at)
}

func claimAt(tx kv.Tx, at []byte) (*ticket.Record, error) {
	b, err := tx.Get(bLog, at)
	if err != nil {
		return nil, err
	}
	rec, err := ticket.DecodeRecord(b)
	if err != nil || rec.Claim == nil {
		return nil, fmt.Errorf("read claim at %x: %w", at, kv.ErrCorrupt)
	}
	return &rec, nil
}

func splitPointer(v []byte) (ticket.Stream, uint64, error) {
	if len(v) < 17 {
		return ticket.Stream{}, 0, fmt.Errorf("read pointer %x: %w", v, kv.ErrCorrupt)
	}
	st, err := splitStreamKey(v[:len(v)-8])
	return st, binary.BigEndian.Uint64(v[len(v)-8:]), err
}

// find looks a claim up by its id alone.
func find(tx kv.Tx, id ticket.ClaimID) (ticket.Claim, bool, error) {
	key, err := rowOf(tx, id)
	if err != nil || key == nil {
		return ticket.Claim{}, false, err
	}
	rec, err := latest(tx, key)
	if err != nil || rec == nil {
		return ticket.Claim{}, false, err
	}
	return *rec.Claim, true, nil
}

// rowOf gives the key of a claim's row, nil where there is none. Its rev 0 stands
// at its own position and names the unit. Where that was lost with a store, and a
// later revision came back, the row is looked for.
func rowOf(tx kv.Tx, id ticket.ClaimID) (key []byte, err error) {
	b, err := tx.Get(bLog, logKey(ticket.Stream{Source: id.Gate, Run: id.Run}, id.Pos))
	if err != nil {
		return nil, err
	}
	if first, err := ticket.DecodeRecord(b); err == nil {
		if first.Claim == nil {
			return nil, nil
		}
		return append(first.Claim.Unit.Key(), id.Bytes()...), nil
	}
	err = tx.Scan(bClaims, nil, nil, func(k, _ []byte) (bool, error) {
		if bytes.HasSuffix(k, id.Bytes()) {
			key = bytes.Clone(k)
		}
		return key == nil, nil
	})
	return key, err
}

func loadView(tx kv.Tx, u ticket.Unit) (ticket.View, error) {
	v := ticket.View{Unit: u}
	var at [][]byte
	err := tx.Scan(bClaims, u.Key(), nil, func(_, p []byte) (bool, error) {
		at = append(at, p)
		return true, nil
	})
	if err != nil {
		return v, err
	}
	for _, p := range at {
		rec, err := claimAt(tx, p)
		if err != nil {
			return v, err
		}
		rev, ok, err := released(tx, rec.Claim.ID)
		if err != nil {
			return v, err
		}
		v.Claims = append(v.Claims, ticket.Known{Claim: *rec.Claim, Released: ok && rev == rec.Claim.Rev})
	}
	f, err := feedOf(tx, ticket.RevokeSubject(u.Format, u.Ticket))
	if err != nil {
		return v, err
	}
	v.Revoked = f != nil && f.Revoke != nil && f.Revoke.Revoked
	return v, nil
}

func released(tx kv.Tx, id ticket.ClaimID) (rev uint32, ok bool, err error) {
	b, err := tx.Get(bReleased, id.Bytes())
	if err != nil || len(b) != 4 {
		return 0, false, err
	}
	return binary.BigEndian.Uint32(b), true, nil
}

// settleRow brings a unit's row of the seen table in line with its claims: the
// holder is the first claim that holds, and the result is what became of it. A
// row whose holder no longer holds is taken over in place.
func settleRow(tx kv.Tx, u ticket.Unit) error {
	v, err := loadView(tx, u)
	if err != nil {
		return err
	}
	rows, k := kvseen.Bind(tx), ticketKey(u)
	row, have, err := rows.Get(k)
	if err != nil {
		return err
	}
	holder, held := v.Holder(ticket.ClaimID{})
	if !held {
		return finishFreed(rows, v, row, have)
	}
	c := holder.Claim
	r := seen.Request{Key: k, At: stampTime(c), Place: c.Place, Holder: c.ID.String()}
	switch {
	case !have:
		_, err = rows.Claim(policy, r)
	case row.Holder != r.Holder:
		_, err = rows.Take(policy, row.Holder, r)
	}
	if err != nil || c.State == ticket.Pending {
		return err
	}
	_, err = rows.Finish(k, r.Holder, []byte(c.State.String()))
	return err
}

// finishFreed stores what became of the last holder where nobody holds the unit.
func finishFreed(rows seen.Tx, v ticket.View, row seen.Row, have bool) error {
	if !have {
		return nil
	}
	id, err := ticket.ParseClaimID(row.Holder)
	if err != nil {
		return fmt.Errorf("read row: %w", err)
	}
	if k, ok := v.Find(id); ok {
		_, err = rows.Finish(row.Key, row.Holder, []byte(k.Claim.State.String()))
	}
	return err
}
