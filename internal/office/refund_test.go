package office_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

func (s *stage) refund(o *office.Office, key, order string, r office.Return) told {
	s.t.Helper()
	got, err := o.Refund(s.t.Context(), s.refunding(key), order, r)
	if err != nil || got.Outcome != seen.Won {
		s.t.Fatalf("refund: outcome %d, %v", got.Outcome, err)
	}
	return parse(s.t, got.Answer)
}

func (s *stage) refusesRefund(o *office.Office, what, order string, r office.Return, want office.Error) {
	s.t.Helper()
	got, err := o.Refund(s.t.Context(), s.refunding("refused"), order, r)
	if !errors.Is(err, &want) {
		s.t.Errorf("%s: outcome %d, %v, want kind %d of %q", what, got.Outcome, err, want.Kind, want.Field)
	}
}

// voided counts the tickets that gates were told to refuse.
func (s *stage) voided() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.revoked)
}

// TestRefund: shares add up to the charge, tickets are void at the gates and can be
// given back once, and what a repeat gets is the first answer.
func TestRefund(t *testing.T) {
	s := newStage(t)
	o, _ := s.open("1", nil)
	b := sale(3, office.Cash)
	*b.Amount = 1000
	sold := s.sell(o, "k", b)
	one := s.refund(o, "r1", sold.Order, office.Return{Tickets: sold.Tickets[:1], Note: "ill"})
	if one.Amount != 333 || len(one.Tickets) != 1 || !s.revoked[sold.Tickets[0]] || s.revoked[sold.Tickets[1]] {
		t.Errorf("one ticket: %+v, revoked %v", one, s.revoked)
	}
	s.refusesRefund(o, "the same ticket again", sold.Order, office.Return{Tickets: sold.Tickets[:1]}, office.Error{Kind: office.Conflict, Field: "tickets"})
	s.refusesRefund(o, "a ticket of nobody", sold.Order, office.Return{Tickets: []ticket.ID{{1}}}, office.Error{Kind: office.Conflict, Field: "tickets"})
	s.refusesRefund(o, "a ticket twice", sold.Order, office.Return{Tickets: []ticket.ID{{1}, {1}}}, office.Error{Kind: office.Invalid, Field: "tickets[1]"})
	s.refusesRefund(o, "no order", "ord_x", office.Return{}, office.Error{Kind: office.Missing})
	much := int64(668)
	s.refusesRefund(o, "more than is left", sold.Order, office.Return{Amount: &much}, office.Error{Kind: office.Conflict, Field: "amount"})
	less := int64(-1)
	s.refusesRefund(o, "less than nothing", sold.Order, office.Return{Amount: &less}, office.Error{Kind: office.Invalid, Field: "amount"})
	rest := s.refund(o, "r2", sold.Order, office.Return{})
	if rest.Amount != 667 || len(rest.Tickets) != 2 {
		t.Errorf("the rest: %+v", rest)
	}
	s.refusesRefund(o, "all again", sold.Order, office.Return{}, office.Error{Kind: office.Conflict})
	if r, err := o.Refund(t.Context(), s.refunding("r2"), sold.Order, office.Return{}); err != nil || r.Outcome != seen.Echoed || parse(t, r.Answer).Refund != rest.Refund {
		t.Errorf("a repeat: %+v, %v", r, err)
	}
	a, err := o.Order(t.Context(), sold.Order)
	if err != nil || a.Left() != 0 || len(a.Refunds) != 2 || a.Refunds[0].Note != "ill" || len(s.revoked) != 3 {
		t.Errorf("order: %+v, %v", a, err)
	}
	for _, tk := range a.Tickets {
		if tk.Refund == "" {
			t.Errorf("ticket %s is not marked", tk.ID)
		}
	}
}

// TestUsedTicket: somebody is in with it, so that it is given back by force only.
func TestUsedTicket(t *testing.T) {
	s := newStage(t)
	o, _ := s.open("1", nil)
	sold := s.sell(o, "k", sale(2, office.Cash))
	s.used[sold.Tickets[1]] = true
	s.refusesRefund(o, "a used ticket", sold.Order, office.Return{}, office.Error{Kind: office.Conflict, Field: "tickets"})
	if len(s.revoked) != 0 {
		t.Errorf("revoked %v", s.revoked)
	}
	if r := s.refund(o, "r", sold.Order, office.Return{Force: true}); len(r.Tickets) != 2 || len(s.revoked) != 2 {
		t.Errorf("by force: %+v, revoked %v", r, s.revoked)
	}
}

// TestRefundsAtOnce: different keys, one order: each ticket goes back once.
func TestRefundsAtOnce(t *testing.T) {
	s := newStage(t)
	o, _ := s.open("1", nil)
	sold := s.sell(o, "k", sale(4, office.Cash))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			in := s.refunding("r" + string(rune('a'+i)))
			_, err := o.Refund(context.Background(), in, sold.Order, office.Return{Tickets: sold.Tickets[i%4 : i%4+1]})
			if err != nil && !errors.Is(err, &office.Error{Kind: office.Conflict}) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a, err := o.Order(t.Context(), sold.Order)
	if err != nil || len(a.Refunds) != 4 || a.Left() != 0 {
		t.Errorf("order: %+v, %v", a, err)
	}
}

// TestCardRefund: the acquirer gives back what it charged, before the tickets are
// void; while it is silent nobody else can give them back, and where it declines or
// fails they are as before.
func TestCardRefund(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, kill := s.open("1", nil)
		sold := parse(t, s.wants(o, "k", seen.Won).Answer)
		b.behave(down)
		s.refusesRefund(o, "an acquirer that is down", sold.Order, office.Return{}, office.Error{Kind: office.Unavailable})
		b.behave(func(context.Context, func() office.Moved) (office.Moved, error) {
			return office.Moved{Declined: "too old"}, nil
		})
		if r := s.refund(o, "declined", sold.Order, office.Return{}); r.Declined != "too old" || s.voided() != 0 {
			t.Errorf("declined: %+v, revoked %d", r, s.voided())
		}
		b.behave(lost)
		if r, err := o.Refund(s.t.Context(), s.refunding("r"), sold.Order, office.Return{}); err != nil || r.Outcome != seen.InProgress {
			t.Fatalf("a silent acquirer: outcome %d, %v", r.Outcome, err)
		}
		s.refusesRefund(o, "meanwhile", sold.Order, office.Return{}, office.Error{Kind: office.Conflict})
		kill()
		s.crash()
		o, _ = s.open("1", nil)
		time.Sleep(time.Minute)
		a, err := o.Order(s.t.Context(), sold.Order)
		if err != nil || len(a.Refunds) != 1 || a.Refunds[0].Pending || a.Left() != 0 || s.voided() != 2 {
			t.Fatalf("order: %+v, %v, revoked %d", a, err, s.voided())
		}
		if m := b.moved[a.Refunds[0].ID]; m.Refund != a.Charge.Reference || m.Amount != a.Charge.Amount {
			t.Errorf("the acquirer gave back %+v", m)
		}
	})
}
