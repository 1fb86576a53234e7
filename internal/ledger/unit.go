package ledger

import (
	"fmt"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// unitState is a unit within a transaction.
type unitState struct {
	id      ticket.Unit
	rows    []ClaimRow
	dirty   []ticket.ClaimID // rows to be written
	touched bool             // what holds or conflicts may have changed
}

func (t *txn) unit(id ticket.Unit) (*unitState, error) {
	for _, u := range t.units {
		if u.id == id {
			return u, nil
		}
	}
	rows, err := t.Claims(id)
	if err != nil {
		return nil, fmt.Errorf("read unit: %w", err)
	}
	u := &unitState{id: id, rows: rows}
	t.units = append(t.units, u)
	return u, nil
}

// unitOf gives the unit that a claim stands with, in this transaction or before it.
func (t *txn) unitOf(id ticket.ClaimID) (ticket.Unit, bool, error) {
	for _, u := range t.units {
		if u.find(id) != nil {
			return u.id, true, nil
		}
	}
	if t.absent == id && !id.IsZero() {
		return ticket.Unit{}, false, nil
	}
	u, ok, err := t.ClaimUnit(id)
	if err == nil && !ok {
		t.absent = id
	}
	return u, ok, wrap("find claim", err)
}

func (u *unitState) find(id ticket.ClaimID) *ClaimRow {
	for i := range u.rows {
		if u.rows[i].Claim.ID == id {
			return &u.rows[i]
		}
	}
	return nil
}

// changed marks a row to be written and its unit to be settled.
func (u *unitState) changed(row *ClaimRow) {
	u.touched = true
	for _, id := range u.dirty {
		if id == row.Claim.ID {
			return
		}
	}
	u.dirty = append(u.dirty, row.Claim.ID)
}

// look gives the unit as the decisions of package ticket see it, by the ledger's
// own clock.
func (t *txn) look(u *unitState) (ticket.View, error) {
	v := ticket.View{Unit: u.id, Claims: make([]ticket.Known, 0, len(u.rows))}
	for _, r := range u.rows {
		released, err := t.released(r.Claim)
		if err != nil {
			return v, err
		}
		v.Claims = append(v.Claims, ticket.Known{
			Claim:      r.Claim,
			Released:   released,
			Overdue:    r.Claim.State == ticket.Pending && t.now.UnixNano() > r.due(),
			Unanswered: r.Answer != ticket.AnswerFirst,
		})
	}
	f, err := t.feedOf(ticket.RevokeSubject(u.id.Format, u.id.Ticket))
	if err != nil {
		return v, err
	}
	v.Revoked = f != nil && f.Revoke != nil && f.Revoke.Revoked
	return v, nil
}

// released reports whether a supervisor released the claim at this revision.
func (t *txn) released(c ticket.Claim) (bool, error) {
	f, err := t.feedOf(ticket.ReleaseSubject(c.ID))
	if err != nil || f == nil || f.Release == nil {
		return false, err
	}
	return f.Release.Rev == c.Rev, nil
}

// settle writes a unit's changed rows and brings all that is derived from them in
// line: the row of the seen table, the conflict, the alarms.
func (t *txn) settle(u *unitState) error {
	if !u.touched {
		return nil
	}
	u.touched = false
	for _, id := range u.dirty {
		if err := t.PutClaim(*u.find(id)); err != nil {
			return fmt.Errorf("store claim: %w", err)
		}
	}
	u.dirty = nil
	v, err := t.look(u)
	if err != nil {
		return err
	}
	if err := t.settleRow(v); err != nil {
		return err
	}
	if err := t.settleConflict(u, v); err != nil {
		return err
	}
	return t.unitAlarms(u, v)
}

// settleRow keeps the unit's row of the seen table true: where a claim holds, the
// row's holder is one that does. A row whose holder does not hold is taken over
// in place, never deleted and inserted.
func (t *txn) settleRow(v ticket.View) error {
	holder, held := v.Holder(ticket.ClaimID{})
	if !held {
		return nil
	}
	r := rowRequest(holder.Claim)
	ans, err := t.Seen().Claim(ticketPolicy, r)
	if err != nil {
		return fmt.Errorf("lock unit: %w", err)
	}
	row := ans.Row
	if cur, ok := holderOf(v, row); !ok || !cur.Holds() {
		if err := t.takeRow(row.Holder, r); err != nil {
			return err
		}
		row = seen.Row{Holder: r.Holder}
	}
	cur := holder
	if row.Holder != r.Holder {
		cur, _ = holderOf(v, row)
	}
	if cur.Claim.State == ticket.Pending || row.Done && string(row.Result) == cur.Claim.State.String() {
		return nil
	}
	if _, err := t.Seen().Finish(r.Key, row.Holder, []byte(cur.Claim.State.String())); err != nil {
		return fmt.Errorf("finish unit: %w", err)
	}
	return nil
}

func (t *txn) takeRow(from string, r seen.Request) error {
	ok, err := t.Seen().Take(ticketPolicy, from, r)
	if err != nil {
		return fmt.Errorf("take over unit: %w", err)
	}
	if !ok {
		return fmt.Errorf("take over unit from %q: it is not the holder", from)
	}
	return nil
}

// rowRequest is a claim's presentation of its unit.
func rowRequest(c ticket.Claim) seen.Request {
	return seen.Request{
		Key:   seen.Key{Endpoint: ticketPolicy.Endpoint, Scope: c.Unit.Event, ID: string(c.Unit.Key())},
		At:    c.Claimed.Time(),
		Place: c.Place, Holder: c.ID.String(),
	}
}

// holderOf finds the claim that a row names as its holder.
func holderOf(v ticket.View, row seen.Row) (ticket.Known, bool) {
	for _, k := range v.Claims {
		if k.Claim.ID.String() == row.Holder {
			return k, true
		}
	}
	return ticket.Known{}, false
}

// records gives what another node must merge to see the unit as the ledger does:
// each claim's highest revision and its release, without those in skip.
func (t *txn) records(u *unitState, skip [][]byte) ([][]byte, error) {
	var out [][]byte
	have := make(map[string]bool, len(skip))
	for _, raw := range skip {
		have[string(raw)] = true
	}
	for _, r := range u.rows {
		if !have[string(r.Raw)] {
			out = append(out, r.Raw)
		}
		raw, err := t.feedRaw(ticket.ReleaseSubject(r.Claim.ID))
		if err != nil {
			return nil, err
		}
		if raw != nil {
			out = append(out, raw)
		}
		if len(out) >= maxUnitRecords {
			break
		}
	}
	return out, nil
}

// maxUnitRecords bounds a reply: a unit with more claims than that is under attack,
// and the first ones are enough to refuse by.
const maxUnitRecords = 64
