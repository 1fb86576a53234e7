package ledgertest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"admitone/internal/ledger"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// Run proves an implementation of ledger.Store. Each part opens a new, empty store.
func Run(t *testing.T, open func(t *testing.T) ledger.Store) {
	parts := map[string]func(s *suite){
		"records":   (*suite).records,
		"streams":   (*suite).streams,
		"claims":    (*suite).claims,
		"due":       (*suite).due,
		"subjects":  (*suite).subjects,
		"lists":     (*suite).lists,
		"counts":    (*suite).counts,
		"rollback":  (*suite).rollback,
		"dropping":  (*suite).dropping,
		"late":      (*suite).late,
		"one a run": (*suite).serial,
		"all count": (*suite).counted,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(&suite{T: t, store: open(t)}) })
	}
}

type suite struct {
	*testing.T
	store  ledger.Store
	inside bool // of a write transaction
}

// in runs fn in a write transaction that must succeed.
func (s *suite) in(fn func(tx ledger.Tx)) {
	s.Helper()
	s.ok(s.update(func(tx ledger.Tx) error { fn(tx); return nil }))
}

// update runs fn in a write transaction. What ok is given within it is the
// function's error: a store may have its reasons to run it again.
func (s *suite) update(fn func(tx ledger.Tx) error) error {
	return s.store.Update(context.Background(), func(tx ledger.Tx) (err error) {
		s.inside = true
		defer func() {
			s.inside = false
			if r := recover(); r != nil {
				var is bool
				if err, is = r.(error); !is {
					panic(r)
				}
			}
		}()
		return fn(tx)
	})
}

func (s *suite) see(fn func(tx ledger.Tx)) {
	s.Helper()
	err := s.store.View(context.Background(), func(tx ledger.Tx) error {
		fn(tx)
		return nil
	})
	s.ok(err)
}

func (s *suite) ok(err error) {
	s.Helper()
	switch {
	case err == nil:
	case s.inside:
		panic(err) // as far as update
	default:
		s.Fatal(err)
	}
}

func stream(source string, run uint64) ticket.Stream {
	return ticket.Stream{Source: ticket.Source(source), Run: ticket.Run(run)}
}

func (s *suite) records() {
	a := stream("a", 1)
	put := func(pos uint64, k ledger.Kept, want ledger.Put) {
		s.Helper()
		s.in(func(tx ledger.Tx) {
			if got, err := tx.PutRecord(a, pos, k); err != nil || got != want {
				s.Errorf("put at %d: outcome %d, %v, want %d", pos, got, err, want)
			}
		})
	}
	put(2, ledger.Kept{Raw: []byte("two")}, ledger.PutNew)
	put(2, ledger.Kept{Raw: []byte("two")}, ledger.PutDuplicate)
	put(2, ledger.Kept{Raw: []byte("other")}, ledger.PutForked)
	put(2, ledger.Kept{Raw: []byte("two"), Aside: true}, ledger.PutForked)
	put(3, ledger.Kept{Aside: true}, ledger.PutNew)
	put(3, ledger.Kept{Aside: true}, ledger.PutDuplicate)
	put(1<<63, ledger.Kept{Raw: []byte("far")}, ledger.PutNew)
	s.in(func(tx ledger.Tx) {
		s.ok(tx.SetRecord(a, 3, ledger.Kept{Raw: []byte("mended")}))
		_, err := tx.PutRecord(stream("a", 2), 1, ledger.Kept{Raw: []byte("another run")})
		s.ok(err)
		_, err = tx.PutRecord(stream("ab", 1), 1, ledger.Kept{Raw: []byte("another source")})
		s.ok(err)
	})
	s.see(func(tx ledger.Tx) {
		k, ok, err := tx.Record(a, 2)
		if err != nil || !ok || string(k.Raw) != "two" || k.Aside {
			s.Errorf("position 2 holds %q, %t, %v, want the first content", k.Raw, ok, err)
		}
		if _, ok, err := tx.Record(a, 1); ok || err != nil {
			s.Errorf("an empty position: %t, %v", ok, err)
		}
		var got []uint64
		s.ok(tx.Records(a, 2, func(pos uint64, k ledger.Kept) bool {
			got = append(got, pos)
			return true
		}))
		if !slices.Equal(got, []uint64{3, 1 << 63}) {
			s.Errorf("records after 2 at %v", got)
		}
		s.ok(tx.Records(a, 1<<64-1, func(uint64, ledger.Kept) bool { s.Error("a record after the last position"); return true }))
	})
	s.in(func(tx ledger.Tx) { s.ok(tx.DropRecord(a, 2)); s.ok(tx.DropRecord(a, 2)) })
	put(2, ledger.Kept{Raw: []byte("other")}, ledger.PutNew)
}

func (s *suite) streams() {
	row := ledger.StreamRow{High: 1, Top: 2, Head: 3, Base: 4, Lost: 5, Aside: 6}
	all := []ticket.Stream{stream("a", 1), stream("a", 1<<63), stream("ab", 7), stream("b", 2)}
	s.in(func(tx ledger.Tx) {
		for i := range all {
			r := row
			r.Head += uint64(i)
			s.ok(tx.PutStream(all[len(all)-1-i], r))
		}
		if r, err := tx.Stream(all[3]); err != nil || r != row {
			s.Errorf("row %+v, %v, want %+v", r, err, row)
		}
		if r, err := tx.Stream(stream("c", 1)); err != nil || r != (ledger.StreamRow{}) {
			s.Errorf("row of an unknown run %+v, %v, want zero", r, err)
		}
	})
	list := func(source ticket.Source, most int) (out []ticket.Stream) {
		s.see(func(tx ledger.Tx) {
			s.ok(tx.Streams(source, func(st ticket.Stream, r ledger.StreamRow) bool {
				out = append(out, st)
				return len(out) < most
			}))
		})
		return out
	}
	for _, c := range []struct {
		source ticket.Source
		most   int
		want   []ticket.Stream
	}{{"", 9, all}, {"a", 9, all[:2]}, {"", 3, all[:3]}, {"x", 9, nil}} {
		if got := list(c.source, c.most); !slices.Equal(got, c.want) {
			s.Errorf("runs of %q: %v, want %v", c.source, got, c.want)
		}
	}
}

// claim is a claim at its own position.
func claim(gate string, pos uint64, u ticket.Unit) ticket.Claim {
	return ticket.Claim{
		ID: ticket.ClaimID{Gate: ticket.Source(gate), Run: 1, Pos: pos}, Unit: u,
		State: ticket.Pending, Place: "North", Lease: 1,
	}
}

func unit(event string, n byte, entry uint32) ticket.Unit {
	return ticket.Unit{Event: event, Format: ticket.FormatA1, Ticket: ticket.ID{n}, Entry: entry}
}

// put stores a claim with its record, and gives the row.
func (s *suite) put(tx ledger.Tx, c ticket.Claim, pos uint64) ledger.ClaimRow {
	s.Helper()
	raw, err := ticket.Record{Source: c.ID.Gate, Run: c.ID.Run, Pos: pos, Claim: &c}.Encode()
	s.ok(err)
	_, err = tx.PutRecord(ticket.Stream{Source: c.ID.Gate, Run: c.ID.Run}, pos, ledger.Kept{Raw: raw})
	s.ok(err)
	r := ledger.ClaimRow{Claim: c, Raw: raw, Run: c.ID.Run, Pos: pos, Since: int64(pos)}
	s.ok(tx.PutClaim(r))
	return r
}

func (s *suite) claims() {
	u := unit("fair", 1, 0)
	c, annulled := claim("a", 1, u), claim("a", 7, unit("fair", 3, 0))
	s.in(func(tx ledger.Tx) {
		s.put(tx, c, 1)
		s.put(tx, claim("a", 2, unit("fair", 1, 1)), 2)
		s.put(tx, claim("a", 3, unit("fair", 2, 0)), 3)
		s.put(tx, claim("a", 4, unit("fairs", 1, 0)), 4)
		s.put(tx, claim("0", 1, u), 1)
		c.Rev, c.State = 1, ticket.Admitted
		r := s.put(tx, c, 5)
		r.Answer = ticket.AnswerFirst
		s.ok(tx.PutClaim(r))
		annulled.Rev, annulled.State = 1, ticket.Annulled
		s.put(tx, annulled, 8)
	})
	s.see(func(tx ledger.Tx) {
		rows, err := tx.Claims(u)
		if err != nil || len(rows) != 2 || rows[0].Claim.ID.Gate != "0" || rows[1].Claim.State != ticket.Admitted ||
			rows[1].Answer != ticket.AnswerFirst || rows[1].Pos != 5 || rows[1].Since != 5 || len(rows[1].Raw) == 0 {
			s.Errorf("claims %+v, %v", rows, err)
		}
		if rows, err := tx.TicketClaims("fair", u.Format, u.Ticket); err != nil || len(rows) != 3 {
			s.Errorf("%d claims of the ticket, %v, want those of both entries", len(rows), err)
		}
		if got, ok, err := tx.ClaimUnit(c.ID); err != nil || !ok || got != u {
			s.Errorf("unit of the claim %+v, %t, %v", got, ok, err)
		}
		if got, ok, err := tx.ClaimUnit(annulled.ID); err != nil || !ok || got != annulled.Unit {
			s.Errorf("unit of a claim known by its rev 1 only %+v, %t, %v", got, ok, err)
		}
		if _, ok, err := tx.ClaimUnit(ticket.ClaimID{Gate: "a", Run: 1, Pos: 99}); ok || err != nil {
			s.Errorf("unit of an unknown claim: %t, %v", ok, err)
		}
	})
}

func (s *suite) due() {
	u := unit("fair", 1, 0)
	s.in(func(tx ledger.Tx) {
		for _, at := range []int64{30, -5, 10, 20} {
			s.ok(tx.PutDue(at, claim("a", 1, u).ID, u))
		}
		s.ok(tx.DropDue(10, claim("a", 1, u).ID))
		s.ok(tx.DropDue(11, claim("a", 1, u).ID))
	})
	s.see(func(tx ledger.Tx) {
		var got []int64
		rows, err := tx.Due(30, 9)
		for _, r := range rows {
			got = append(got, r.At)
			if r.Unit != u || r.Claim != claim("a", 1, u).ID {
				s.Errorf("due %+v", r)
			}
		}
		if err != nil || !slices.Equal(got, []int64{-5, 20}) {
			s.Errorf("due before 30: %v, %v", got, err)
		}
		if rows, err := tx.Due(99, 1); err != nil || len(rows) != 1 {
			s.Errorf("%d rows, %v, want the limit of 1", len(rows), err)
		}
	})
}

func (s *suite) subjects() {
	row := ledger.SubjectRow{Version: 3, Source: "ledger/a", Run: 4, Pos: 5}
	s.in(func(tx ledger.Tx) {
		for _, n := range []string{"gate/b", "gate/a", "gates", "closed/x"} {
			s.ok(tx.PutSubject(n, row))
		}
	})
	s.see(func(tx ledger.Tx) {
		if r, ok, err := tx.Subject("gate/a"); err != nil || !ok || r != row {
			s.Errorf("subject %+v, %t, %v", r, ok, err)
		}
		if _, ok, err := tx.Subject("gate/"); ok || err != nil {
			s.Errorf("an unknown subject: %t, %v", ok, err)
		}
		var got []string
		s.ok(tx.Subjects("gate/", func(n string, r ledger.SubjectRow) bool { got = append(got, n); return true }))
		if !slices.Equal(got, []string{"gate/a", "gate/b"}) {
			s.Errorf("subjects %v", got)
		}
	})
}

var errUndo = errors.New("undo")

func (s *suite) rollback() {
	u := unit("fair", 1, 0)
	err := s.update(func(tx ledger.Tx) error {
		s.put(tx, claim("a", 1, u), 1)
		s.ok(tx.PutSubject("x", ledger.SubjectRow{Version: 1, Source: "ledger/a"}))
		_, err := tx.Seen().Claim(seen.Policy{Endpoint: "ticket", OnRepeat: seen.Refuse}, seen.Request{Key: seen.Key{Endpoint: "ticket", ID: "k"}, Holder: "h"})
		s.ok(err)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		s.Errorf("update: %v, want the function's error", err)
	}
	s.see(func(tx ledger.Tx) {
		rows, err := tx.Claims(u)
		_, subject, err2 := tx.Subject("x")
		_, row, err3 := tx.Seen().Get(seen.Key{Endpoint: "ticket", ID: "k"})
		if len(rows) != 0 || subject || row || errors.Join(err, err2, err3) != nil {
			s.Errorf("an undone transaction left %d claims, subject %t, row %t", len(rows), subject, row)
		}
	})
}
