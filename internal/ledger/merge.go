package ledger

import (
	"fmt"

	"admitone/internal/ticket"
)

// arrival is what came for one position of a run: a record that reads and stands
// where it says, or raw bytes to be set aside.
type arrival struct {
	stream ticket.Stream
	pos    uint64
	raw    []byte
	rec    *ticket.Record
}

// read decodes bytes that came for a position. Bytes that do not read, or that
// speak of another position, are an arrival without a record.
func read(s ticket.Stream, pos uint64, raw []byte) arrival {
	a := arrival{stream: s, pos: pos, raw: raw}
	if len(raw) > ticket.MaxRecord {
		a.raw = nil // not even kept: the position is what must pass
		return a
	}
	rec, err := ticket.DecodeRecord(raw)
	if err == nil && rec.Stream() == s && rec.Pos == pos && kindFits(rec) {
		a.rec = &rec
	}
	return a
}

// kindFits reports whether the source may write such a record: feeds are the
// ledgers' alone, and ledgers write nothing else.
func kindFits(r ticket.Record) bool { return isLedger(r.Source) == (r.Feed != nil) }

// merge takes one arrival in: once, whatever the order and however often it
// comes. It reports whether it was set aside now or before.
func (t *txn) merge(a arrival) (aside bool, err error) {
	st, err := t.stream(a.stream)
	if err != nil {
		return false, err
	}
	k := Kept{Raw: a.raw, Aside: a.rec == nil}
	if a.pos <= st.row.High {
		return t.repeat(a, k)
	}
	if a.rec != nil && a.rec.Claim != nil {
		// Before its rev 0 is stored: behind that, it would have to be read to find
		// that it stands nowhere yet.
		if _, _, err := t.unitOf(a.rec.Claim.ID); err != nil {
			return false, err
		}
	}
	put, err := t.PutRecord(a.stream, a.pos, k)
	switch {
	case err != nil:
		return false, fmt.Errorf("store record: %w", err)
	case put == PutDuplicate:
		return k.Aside, nil
	case put == PutForked:
		return t.fork(a, k)
	}
	if k.Aside {
		st.row.Aside++
		t.say(func() {
			t.l.counts.aside.Add(1)
			t.l.log.Warn("record set aside", "source", a.stream.Source, "run", a.stream.Run, "pos", a.pos)
		})
	}
	if err := t.advance(st, a.pos); err != nil {
		return false, err
	}
	return k.Aside, t.apply(a)
}

// advance moves a run's marks after a position was stored.
func (t *txn) advance(st *streamState, pos uint64) error {
	st.dirty = true
	st.row.Top = max(st.row.Top, pos)
	st.row.Head = max(st.row.Head, pos)
	if pos == st.row.High+1 {
		st.row.High = pos
	}
	return t.close(st)
}

// close moves the high-water over records that waited beyond a gap.
func (t *txn) close(st *streamState) error {
	if st.row.High >= st.row.Top {
		return nil
	}
	return t.Records(st.Stream, st.row.High, func(pos uint64, _ Kept) bool {
		if pos != st.row.High+1 {
			return false
		}
		st.row.High = pos
		return true
	})
}

// repeat handles a position at or below the high-water: a repeat without any row,
// unless the row is still there and says something else.
func (t *txn) repeat(a arrival, k Kept) (aside bool, err error) {
	was, ok, err := t.Record(a.stream, a.pos)
	if err != nil || !ok {
		return false, err
	}
	if was.Aside == k.Aside && string(was.Raw) == string(k.Raw) {
		return was.Aside, nil
	}
	return t.fork(a, k)
}

// fork handles a position that came with two contents, which only a store put
// back from a copy can bring about. What reads replaces what did not; of two
// revisions of one claim the merge rule's winner stays; otherwise the first one.
// The same bytes that read now, because this ledger or the gate was upgraded, are
// no second content.
func (t *txn) fork(a arrival, k Kept) (aside bool, err error) {
	was, _, err := t.Record(a.stream, a.pos)
	if err != nil {
		return false, err
	}
	if k.Aside {
		return was.Aside, nil
	}
	if was.Aside {
		if err := t.mend(a.stream); err != nil {
			return false, err
		}
	}
	if !was.Aside || len(was.Raw) > 0 && string(was.Raw) != string(k.Raw) {
		if err := t.alarmForked(a); err != nil {
			return false, err
		}
	}
	if !was.Aside {
		old, err := ticket.DecodeRecord(was.Raw)
		same := err == nil && old.Claim != nil && a.rec.Claim != nil &&
			old.Claim.ID == a.rec.Claim.ID && old.Claim.Unit == a.rec.Claim.Unit
		if !same || !ticket.Wins(*a.rec.Claim, *old.Claim) {
			return false, nil
		}
	}
	if c := a.rec.Claim; c != nil {
		// The unit's rows point at records: read them before this one is another.
		if _, err := t.unit(c.Unit); err != nil {
			return false, err
		}
	}
	if err := t.SetRecord(a.stream, a.pos, k); err != nil {
		return false, fmt.Errorf("store record: %w", err)
	}
	return false, t.apply(a)
}

// mend counts a position as set aside no longer.
func (t *txn) mend(s ticket.Stream) error {
	st, err := t.stream(s)
	if err == nil && st.row.Aside > 0 {
		st.row.Aside--
		st.dirty = true
	}
	return err
}

// apply lets a new record have its effect, in order or beyond a gap alike.
func (t *txn) apply(a arrival) error {
	switch {
	case a.rec == nil:
		return nil
	case a.rec.Claim != nil:
		return t.applyClaim(*a.rec, a.raw)
	case a.rec.Feed != nil:
		return t.applyFeed(*a.rec)
	}
	return t.applyEvent(*a.rec)
}

func (t *txn) applyClaim(rec ticket.Record, raw []byte) error {
	c := *rec.Claim
	ev, err := t.event(c.Unit.Event)
	if err != nil {
		return err
	}
	if ev.row.Pruned {
		ev.row.Late++
		ev.dirty = true
		return t.PutLate(ev.id, rec.Stream(), rec.Pos, raw)
	}
	u, err := t.unit(c.Unit)
	if err != nil {
		return err
	}
	row := u.find(c.ID)
	if row == nil {
		stands, known, err := t.unitOf(c.ID)
		if err != nil {
			return err
		}
		if known {
			return t.alarmMismatch(c.ID, stands, c.Unit)
		}
		u.rows = append(u.rows, ClaimRow{Claim: c, Since: t.now.UnixNano()})
		row = &u.rows[len(u.rows)-1]
		return t.revised(u, row, nil, rec, raw)
	}
	if ticket.Forked(c, row.Claim) {
		if err := t.alarmForkedClaim(c); err != nil {
			return err
		}
	}
	if !ticket.Wins(c, row.Claim) {
		return nil
	}
	was := *row
	return t.revised(u, row, &was, rec, raw)
}

// revised makes a record the one that a claim's row shows, and keeps the list of
// pending claims and the event's count.
func (t *txn) revised(u *unitState, row, was *ClaimRow, rec ticket.Record, raw []byte) error {
	row.Claim, row.Raw, row.Run, row.Pos = *rec.Claim, raw, rec.Run, rec.Pos
	u.changed(row)
	ev, err := t.event(u.id.Event)
	if err != nil {
		return err
	}
	if err := t.listDue(u, *row, was); err != nil {
		return err
	}
	before, after := was != nil && entered(was.Claim), entered(row.Claim)
	switch {
	case after && !before:
		ev.row.Admitted++
	case before && !after:
		ev.row.Admitted--
	default:
		return nil
	}
	ev.dirty = true
	return nil
}

// listDue keeps the list of pending claims by the time at which they are overdue.
func (t *txn) listDue(u *unitState, row ClaimRow, was *ClaimRow) error {
	if was != nil && was.Claim.State == ticket.Pending {
		if err := t.DropDue(was.due(), row.Claim.ID); err != nil {
			return err
		}
		if row.Claim.State != ticket.Pending {
			return t.endOverdue(row.Claim, was.due())
		}
	}
	if row.Claim.State != ticket.Pending {
		return nil
	}
	return t.PutDue(row.due(), row.Claim.ID, u.id)
}

// entered reports whether somebody went through, or may have.
func entered(c ticket.Claim) bool { return c.State == ticket.Admitted || c.State == ticket.Presumed }
