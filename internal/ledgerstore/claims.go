package ledgerstore

import (
	"encoding/binary"
	"fmt"

	"admitone/internal/ledger"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// claimKey is the key of a claim's row, a guest among those of the seen table: an ask
// reads and writes both, and its own row, on one page.
func claimKey(u ticket.Unit, id ticket.ClaimID) ([]byte, error) {
	return kvseen.GuestKey(u.Event, append(u.Key(), id.Bytes()...))
}

// unitKeyLen is the length of a unit's key without the event's name.
const unitKeyLen = 22

// PutClaim is ledger.Tx.PutClaim. A claim whose rev 0 came first needs no entry in
// claim.unit: that record stands at the claim's own position and names the unit.
func (t tx) PutClaim(r ledger.ClaimRow) error {
	id := r.Claim.ID.Bytes()
	v := binary.BigEndian.AppendUint64(nil, uint64(r.Run))
	v = binary.BigEndian.AppendUint64(v, r.Pos)
	v = binary.BigEndian.AppendUint64(v, uint64(r.Since))
	key, err := claimKey(r.Claim.Unit, r.Claim.ID)
	if err != nil {
		return err
	}
	was, err := t.kv.Get(kvseen.Rows, key)
	if err != nil {
		return err
	}
	if was == nil && r.Claim.Rev > 0 {
		if err := t.kv.Put("claim.unit", id, r.Claim.Unit.Key()); err != nil {
			return err
		}
	}
	return t.kv.Put(kvseen.Rows, key, append(v, r.Answer...))
}

// Claims is ledger.Tx.Claims.
func (t tx) Claims(u ticket.Unit) ([]ledger.ClaimRow, error) { return t.claims(u.Event, u.Key(), -1) }

// TicketClaims is ledger.Tx.TicketClaims.
func (t tx) TicketClaims(event string, f ticket.Format, id ticket.ID) ([]ledger.ClaimRow, error) {
	prefix := append(append(ticket.EventPrefix(event), byte(f)), id[:]...)
	return t.claims(event, prefix, -1)
}

// claims reads the rows of the units whose keys begin with a prefix, at most limit
// (negative: all), with the records they point at.
func (t tx) claims(event string, prefix []byte, limit int) ([]ledger.ClaimRow, error) {
	prefix, err := kvseen.GuestPrefix(event, prefix)
	if err != nil {
		return nil, err
	}
	var rows []ledger.ClaimRow
	err = t.kv.Scan(kvseen.Rows, prefix, nil, func(k, v []byte) (bool, error) {
		k, ours := kvseen.GuestID(k)
		if !ours {
			return true, nil
		}
		if len(rows) == limit {
			return false, nil
		}
		r, err := parseClaim(k, v)
		rows = append(rows, r)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := t.loadClaim(&rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// parseClaim reads a row; of the claim only the id is set.
func parseClaim(k, v []byte) (r ledger.ClaimRow, err error) {
	i := len(ticket.EventPrefix(eventOf(k))) - 1 + unitKeyLen
	if len(v) < 24 || len(k) < i {
		return r, damaged("claim", fmt.Errorf("%d bytes", len(v)))
	}
	if r.Claim.ID, err = ticket.ClaimIDFromBytes(k[i:]); err != nil {
		return r, damaged("claim", err)
	}
	r.Run, r.Pos = ticket.Run(binary.BigEndian.Uint64(v)), binary.BigEndian.Uint64(v[8:])
	r.Since, r.Answer = int64(binary.BigEndian.Uint64(v[16:])), ticket.Answer(v[24:])
	return r, nil
}

func eventOf(k []byte) string {
	for i, c := range k {
		if c == 0 {
			return string(k[:i])
		}
	}
	return string(k)
}

// loadClaim fills the row from the record that it points at.
func (t tx) loadClaim(r *ledger.ClaimRow) error {
	id := r.Claim.ID
	k, ok, err := t.Record(ticket.Stream{Source: id.Gate, Run: r.Run}, r.Pos)
	if err != nil {
		return err
	}
	rec, err := ticket.DecodeRecord(k.Raw)
	if err != nil || !ok || rec.Claim == nil || rec.Claim.ID != id {
		return damaged("claim", fmt.Errorf("claim %s points at %s/%d, which is no record of it", id, r.Run, r.Pos))
	}
	r.Claim, r.Raw = *rec.Claim, k.Raw
	return nil
}

// ClaimUnit is ledger.Tx.ClaimUnit.
func (t tx) ClaimUnit(id ticket.ClaimID) (ticket.Unit, bool, error) {
	v, err := t.kv.Get("claim.unit", id.Bytes())
	if err != nil {
		return ticket.Unit{}, false, err
	}
	if v == nil {
		return t.firstUnit(id)
	}
	u, err := ticket.UnitFromKey(v)
	if err != nil {
		return u, false, damaged("claim.unit", err)
	}
	return u, true, nil
}

// firstUnit finds a claim by its rev 0, if that is stored as a claim.
func (t tx) firstUnit(id ticket.ClaimID) (u ticket.Unit, ok bool, err error) {
	k, ok, err := t.Record(ticket.Stream{Source: id.Gate, Run: id.Run}, id.Pos)
	if err != nil || !ok || k.Aside {
		return u, false, err
	}
	rec, err := ticket.DecodeRecord(k.Raw)
	if err != nil || rec.Claim == nil || rec.Claim.ID != id || rec.Claim.Rev != 0 {
		return u, false, nil
	}
	key, err := claimKey(rec.Claim.Unit, id)
	if err != nil {
		return u, false, err
	}
	row, err := t.kv.Get(kvseen.Rows, key)
	return rec.Claim.Unit, row != nil, err
}

// PutDue is ledger.Tx.PutDue.
func (t tx) PutDue(at int64, id ticket.ClaimID, u ticket.Unit) error {
	return t.kv.Put("due", append(timeKey(at), id.Bytes()...), u.Key())
}

// DropDue is ledger.Tx.DropDue.
func (t tx) DropDue(at int64, id ticket.ClaimID) error {
	return t.kv.Delete("due", append(timeKey(at), id.Bytes()...))
}

// Due is ledger.Tx.Due.
func (t tx) Due(before int64, limit int) (rows []ledger.DueRow, err error) {
	err = t.kv.Scan("due", nil, nil, func(k, v []byte) (bool, error) {
		at, rest, err := splitTime(k)
		if err != nil || at >= before || len(rows) == limit {
			return false, err
		}
		row := ledger.DueRow{At: at}
		if row.Claim, err = ticket.ClaimIDFromBytes(rest); err == nil {
			row.Unit, err = ticket.UnitFromKey(v)
		}
		if err != nil {
			return false, damaged("due", err)
		}
		rows = append(rows, row)
		return true, nil
	})
	return rows, err
}

// DropClaims is ledger.Tx.DropClaims.
func (t tx) DropClaims(event string, limit int) (int, error) {
	rows, err := t.claims(event, nil, limit)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		id := r.Claim.ID
		key, err := claimKey(r.Claim.Unit, id)
		if err != nil {
			return 0, err
		}
		if err := t.kv.Delete(kvseen.Rows, key); err != nil {
			return 0, err
		}
		if err := t.kv.Delete("claim.unit", id.Bytes()); err != nil {
			return 0, err
		}
		if err := t.DropDue(r.Since+int64(r.Claim.Lease), id); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}
