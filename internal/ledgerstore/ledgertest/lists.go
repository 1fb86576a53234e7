package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"admitone/internal/ledger"
)

func (s *suite) lists() {
	u := unit("fair", 1, 0)
	s.in(func(tx ledger.Tx) {
		for i, at := range []int64{20, 10, 20, 30} {
			s.ok(tx.PutAlarm(ledger.Alarm{ID: fmt.Sprint(i), Kind: ledger.AlarmSkew, At: at, Detail: "x"}))
			c := ledger.ConflictRow{
				ID: fmt.Sprint(i), Unit: u, Announced: at, State: ledger.ConflictOpen, Certain: true, Note: "n",
				Sides: []ledger.Side{{Claim: claim("a", 1, u).ID, Place: "North", Time: 7}},
			}
			s.ok(tx.PutConflict(c))
			c.State = ledger.ConflictWithdrawn
			s.ok(tx.PutConflict(c)) // again: one entry
		}
	})
	s.see(func(tx ledger.Tx) {
		c, ok, err := tx.Conflict("2")
		if err != nil || !ok || c.State != ledger.ConflictWithdrawn || len(c.Sides) != 1 || c.Sides[0].Place != "North" || c.Unit != u {
			s.Errorf("conflict %+v, %t, %v", c, ok, err)
		}
		if a, ok, err := tx.Alarm("3"); err != nil || !ok || a.At != 30 || a.Detail != "x" {
			s.Errorf("alarm %+v, %t, %v", a, ok, err)
		}
		if _, ok, err := tx.Alarm("none"); ok || err != nil {
			s.Errorf("an unknown alarm: %t, %v", ok, err)
		}
		want := []string{"1", "0", "2", "3"}
		conflicts := pages(s, func(after string) (ids []string, next string, err error) {
			rows, next, err := tx.Conflicts(after, 3)
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return ids, next, err
		})
		alarms := pages(s, func(after string) (ids []string, next string, err error) {
			rows, next, err := tx.Alarms(after, 1)
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return ids, next, err
		})
		if !slices.Equal(conflicts, want) || !slices.Equal(alarms, want) {
			s.Errorf("conflicts %v, alarms %v, want %v", conflicts, alarms, want)
		}
		if _, _, err := tx.Alarms("no cursor", 1); !errors.Is(err, ledger.ErrInvalid) {
			s.Errorf("a bad cursor: %v, want ErrInvalid", err)
		}
	})
}

// pages reads a list to its end: a page of none repeats the cursor.
func pages(s *suite, page func(after string) ([]string, string, error)) (all []string) {
	s.Helper()
	for after := ""; ; {
		ids, next, err := page(after)
		s.ok(err)
		if len(ids) == 0 {
			if next != after {
				s.Errorf("an empty page moved the cursor from %q to %q", after, next)
			}
			return all
		}
		all, after = append(all, ids...), next
	}
}

func (s *suite) counts() {
	row := ledger.EventRow{Admitted: 1, Conflicts: 2, Alarms: 3, Late: 4, Forget: 7, Closed: 5, Pruned: true, Swept: true}
	gate := ledger.GateRow{Place: "North", Hello: 6}
	s.in(func(tx ledger.Tx) {
		s.ok(tx.PutEvent("b", row))
		s.ok(tx.PutEvent("a", ledger.EventRow{Admitted: 9}))
		s.ok(tx.PutGate("dev", gate))
	})
	s.see(func(tx ledger.Tx) {
		if r, err := tx.Event("b"); err != nil || r != row {
			s.Errorf("event %+v, %v", r, err)
		}
		for _, id := range []string{"", "none"} {
			if r, err := tx.Event(id); err != nil || r != (ledger.EventRow{}) {
				s.Errorf("an unknown event %+v, %v", r, err)
			}
		}
		var got []string
		s.ok(tx.Events(func(id string, r ledger.EventRow) bool { got = append(got, id); return true }))
		if !slices.Equal(got, []string{"a", "b"}) {
			s.Errorf("events %v", got)
		}
		if g, err := tx.Gate("dev"); err != nil || g != gate {
			s.Errorf("gate %+v, %v", g, err)
		}
		if g, err := tx.Gate("none"); err != nil || g != (ledger.GateRow{}) {
			s.Errorf("an unknown gate %+v, %v", g, err)
		}
	})
}

func (s *suite) dropping() {
	kept := claim("a", 9, unit("fairs", 1, 0))
	s.in(func(tx ledger.Tx) {
		for n := range 5 {
			c := claim("a", uint64(n+1), unit("fair", byte(n), 0))
			r := s.put(tx, c, c.ID.Pos)
			s.ok(tx.PutDue(r.Since+int64(c.Lease), c.ID, c.Unit))
		}
		s.put(tx, kept, 9)
	})
	for _, want := range []int{3, 2, 0} {
		s.in(func(tx ledger.Tx) {
			if n, err := tx.DropClaims("fair", 3); err != nil || n != want {
				s.Errorf("dropped %d, %v, want %d", n, err, want)
			}
		})
	}
	s.see(func(tx ledger.Tx) {
		if _, ok, err := tx.ClaimUnit(claim("a", 1, unit("fair", 0, 0)).ID); ok || err != nil {
			s.Errorf("the unit of a dropped claim is known: %v", err)
		}
		if rows, err := tx.Due(99, 9); err != nil || len(rows) != 0 {
			s.Errorf("%d dropped claims are due, %v", len(rows), err)
		}
		if rows, err := tx.Claims(kept.Unit); err != nil || len(rows) != 1 {
			s.Errorf("%d claims of another event, %v, want it kept", len(rows), err)
		}
		if _, ok, err := tx.Record(stream("a", 1), 1); !ok || err != nil {
			s.Errorf("a record went with its claim: %v", err)
		}
	})
}

func (s *suite) late() {
	s.in(func(tx ledger.Tx) {
		s.ok(tx.PutLate("fair", stream("a", 1), 1, []byte("one")))
		s.ok(tx.PutLate("fair", stream("a", 1), 1, []byte("one")))
		s.ok(tx.PutLate("other", stream("b", 1), 1, []byte("two")))
	})
	s.see(func(tx ledger.Tx) {
		got := pages(s, func(after string) (out []string, next string, err error) {
			rows, next, err := tx.Late(after, 1)
			for _, r := range rows {
				out = append(out, r.Event+" "+string(r.Raw))
			}
			return out, next, err
		})
		slices.Sort(got)
		if !slices.Equal(got, []string{"fair one", "other two"}) {
			s.Errorf("late %v", got)
		}
	})
}

// serial proves that what a transaction read of a run stays true until it is
// committed: concurrent ones count up without a loss.
func (s *suite) serial() {
	const each, writers = 25, 8
	a := stream("a", 1)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				err := s.store.Update(context.Background(), func(tx ledger.Tx) error {
					r, err := tx.Stream(a)
					if err != nil {
						return err
					}
					r.High++
					return tx.PutStream(a, r)
				})
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.see(func(tx ledger.Tx) {
		if r, err := tx.Stream(a); err != nil || r.High != each*writers {
			s.Errorf("counted %d, %v, want %d", r.High, err, each*writers)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.store.View(ctx, func(ledger.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		s.Errorf("view after the end: %v, want its error", err)
	}
}

// counted proves that what many count of an event at once is the sum: down as well as
// up, and whatever else changes of it.
func (s *suite) counted() {
	const each, writers = 20, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				err := s.store.Update(context.Background(), func(tx ledger.Tx) error {
					r, err := tx.Event("fair")
					if err != nil {
						return err
					}
					r.Admitted += 3
					if n%2 == 1 {
						r.Admitted -= 4
					}
					r.Conflicts++
					if w == 0 && n == each/2 {
						r.Forget = 7
					}
					return tx.PutEvent("fair", r)
				})
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.see(func(tx ledger.Tx) {
		want := ledger.EventRow{Admitted: writers * each, Conflicts: writers * each, Forget: 7}
		if r, err := tx.Event("fair"); err != nil || r != want {
			s.Errorf("counted %+v, %v, want %+v", r, err, want)
		}
	})
}
