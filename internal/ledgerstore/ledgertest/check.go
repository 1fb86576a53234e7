package ledgertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"admitone/internal/ledger"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// Check derives everything anew from the records that a ledger's store holds and
// fails the test where a stored row says something else: high-waters, the claims
// of each unit, the holder of its row of the seen table, its conflict, the event's
// count. Run it after a test has done its worst. Pruned events are left out.
func Check(t testing.TB, s ledger.Store) {
	t.Helper()
	err := s.View(context.Background(), func(tx ledger.Tx) error {
		c := checker{t: t, tx: tx, revs: map[ticket.ClaimID][]ticket.Claim{}}
		if err := c.runs(); err != nil {
			return err
		}
		return c.units()
	})
	if err != nil {
		t.Fatalf("check store: %v", err)
	}
}

type checker struct {
	t    testing.TB
	tx   ledger.Tx
	revs map[ticket.ClaimID][]ticket.Claim // all revisions
}

// runs checks the marks of each run and gathers the claims.
func (c checker) runs() error {
	rows := map[ticket.Stream]ledger.StreamRow{}
	var order []ticket.Stream
	err := c.tx.Streams("", func(s ticket.Stream, r ledger.StreamRow) bool {
		rows[s], order = r, append(order, s)
		return true
	})
	if err != nil {
		return err
	}
	for _, s := range order {
		r := rows[s]
		upTo, top, gaps, next := uint64(0), uint64(0), uint64(0), r.Base+1
		err := c.tx.Records(s, 0, func(pos uint64, k ledger.Kept) bool {
			if pos >= next && pos <= r.High {
				gaps += pos - next
				next = pos + 1
			}
			if pos <= r.High {
				upTo = pos
			}
			c.add(s, pos, k)
			top = pos
			return true
		})
		switch {
		case err != nil:
			return err
		case gaps > r.Lost:
			c.t.Errorf("run %s/%s: %d positions missing below high-water %d, %d of them known as lost", s.Source, s.Run, gaps, r.High, r.Lost)
		case upTo < r.High && r.Lost == 0 && r.Base < r.High:
			c.t.Errorf("run %s/%s: high-water %d, last record below it %d", s.Source, s.Run, r.High, upTo)
		case top > r.Top || top > r.Head:
			c.t.Errorf("run %s/%s: record at %d above top %d or head %d", s.Source, s.Run, top, r.Top, r.Head)
		}
		if _, ok, err := c.tx.Record(s, r.High+1); ok || err != nil {
			c.t.Errorf("run %s/%s: high-water %d stands still before a record (%v)", s.Source, s.Run, r.High, err)
		}
	}
	return nil
}

func (c checker) add(s ticket.Stream, pos uint64, k ledger.Kept) {
	rec, err := ticket.DecodeRecord(k.Raw)
	if k.Aside {
		return
	}
	if err != nil || rec.Stream() != s || rec.Pos != pos {
		c.t.Errorf("record at %s/%s/%d does not belong there: %v", s.Source, s.Run, pos, err)
		return
	}
	if rec.Claim == nil {
		return
	}
	c.revs[rec.Claim.ID] = append(c.revs[rec.Claim.ID], *rec.Claim)
}

// winner gives a claim's revision that counts, among those of the unit that it
// stands with; false where there is none.
func (c checker) winner(id ticket.ClaimID, revs []ticket.Claim) (ticket.Claim, bool, error) {
	var best ticket.Claim
	unit, ok, err := c.tx.ClaimUnit(id)
	if err != nil || !ok {
		return best, false, err
	}
	found := false
	for _, cl := range revs {
		if cl.Unit == unit && (!found || ticket.Wins(cl, best)) {
			best, found = cl, true
		}
	}
	return best, found, nil
}

func (c checker) units() error {
	byUnit := map[ticket.Unit][]ticket.Claim{}
	entered := map[string]uint64{}
	for id, revs := range c.revs {
		cl, ok, err := c.winner(id, revs)
		if err != nil {
			return err
		}
		if !ok {
			cl = revs[0]
		}
		ev, err := c.tx.Event(cl.Unit.Event)
		if err != nil {
			return err
		}
		if ev.Pruned {
			continue
		}
		if !ok {
			c.t.Errorf("claim %s has %d records and no row", id, len(revs))
			continue
		}
		byUnit[cl.Unit] = append(byUnit[cl.Unit], cl)
		if cl.State == ticket.Admitted || cl.State == ticket.Presumed {
			entered[cl.Unit.Event]++
		} else {
			entered[cl.Unit.Event] += 0
		}
	}
	for u, claims := range byUnit {
		if err := c.unit(u, claims); err != nil {
			return err
		}
	}
	for id, n := range entered {
		if ev, err := c.tx.Event(id); err != nil || ev.Admitted != n {
			c.t.Errorf("event %q counts %d admitted, its records say %d (%v)", id, ev.Admitted, n, err)
		}
	}
	return nil
}

func (c checker) unit(u ticket.Unit, claims []ticket.Claim) error {
	rows, err := c.tx.Claims(u)
	if err != nil {
		return err
	}
	v := ticket.View{Unit: u}
	for _, r := range rows {
		i := slices.IndexFunc(claims, func(x ticket.Claim) bool { return x.ID == r.Claim.ID })
		if i < 0 || claims[i].Rev != r.Claim.Rev || claims[i].State != r.Claim.State {
			c.t.Errorf("claim %s stands at rev %d %s, its records say otherwise", r.Claim.ID, r.Claim.Rev, r.Claim.State)
		}
		rel, err := c.released(r.Claim)
		if err != nil {
			return err
		}
		v.Claims = append(v.Claims, ticket.Known{Claim: r.Claim, Released: rel, Unanswered: r.Answer != ticket.AnswerFirst})
	}
	if len(rows) != len(claims) {
		c.t.Errorf("unit %s has %d claims, its records say %d", u.Ticket, len(rows), len(claims))
	}
	if err := c.row(v); err != nil {
		return err
	}
	return c.conflict(v)
}

func (c checker) released(cl ticket.Claim) (bool, error) {
	at, ok, err := c.tx.Subject(ticket.ReleaseSubject(cl.ID))
	if err != nil || !ok {
		return false, err
	}
	k, _, err := c.tx.Record(ticket.Stream{Source: at.Source, Run: at.Run}, at.Pos)
	if err != nil {
		return false, err
	}
	rec, err := ticket.DecodeRecord(k.Raw)
	if err != nil || rec.Feed == nil || rec.Feed.Release == nil {
		return false, fmt.Errorf("release of %s points at no release: %w", cl.ID, err)
	}
	return rec.Feed.Release.Rev == cl.Rev, nil
}

// row checks that where a claim holds, the unit's row names one that does.
func (c checker) row(v ticket.View) error {
	first, held := v.Holder(ticket.ClaimID{})
	if !held {
		return nil
	}
	row, ok, err := c.tx.Seen().Get(seen.Key{Endpoint: "ticket", Scope: v.Unit.Event, ID: string(v.Unit.Key())})
	if err != nil {
		return err
	}
	if !ok {
		c.t.Errorf("unit %s is held by %s without a row", v.Unit.Ticket, first.Claim.ID)
		return nil
	}
	id, err := ticket.ParseClaimID(row.Holder)
	if err != nil {
		return err
	}
	if k, ok := v.Find(id); !ok || !k.Holds() {
		c.t.Errorf("unit %s: its row names %s, which does not hold it", v.Unit.Ticket, id)
	}
	return nil
}

func (c checker) conflict(v ticket.View) error {
	want, derived := ticket.DeriveConflict(v)
	got, known, err := c.tx.Conflict(ticket.ConflictID(v.Unit))
	if err != nil {
		return err
	}
	stands := known && got.State != ledger.ConflictWithdrawn
	if stands != derived {
		c.t.Errorf("unit %s: conflict stands %t, derived %t", v.Unit.Ticket, stands, derived)
		return nil
	}
	if !derived {
		return nil
	}
	var ids, wantIDs []ticket.ClaimID
	for _, s := range got.Sides {
		ids = append(ids, s.Claim)
	}
	for _, cl := range want.Claims {
		wantIDs = append(wantIDs, cl.ID)
	}
	if !slices.Equal(ids, wantIDs) || got.Certain != want.Certain || got.Ordered != want.Ordered {
		c.t.Errorf("unit %s: conflict of %v, derived of %v", v.Unit.Ticket, ids, wantIDs)
	}
	return nil
}
