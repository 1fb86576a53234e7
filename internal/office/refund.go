package office

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"admitone/internal/ticket"
)

// Return is what somebody wants to give back: the body of POST
// /v1/orders/{id}/refund.
type Return struct {
	Tickets []ticket.ID `json:"tickets,omitempty"` // none: all of the order that are not refunded
	Amount  *int64      `json:"amount,omitempty"`  // minor units; absent: the tickets' share of what is left
	Note    string      `json:"note,omitempty"`    // why, for the records
	Force   bool        `json:"force,omitempty"`   // tickets that were used, too
}

func (r Return) check() error {
	switch {
	case len(r.Tickets) > MaxTickets:
		return refuse(Invalid, "tickets", "at most %d tickets", MaxTickets)
	case r.Amount != nil && (*r.Amount < 0 || *r.Amount > MaxAmount):
		return refuse(Invalid, "amount", "amount is a number of minor units from 0 to %d", int64(MaxAmount))
	case !plainText(r.Note):
		return refuse(Invalid, "note", "note is at most %d bytes of printable text", maxText)
	}
	for i, id := range r.Tickets {
		if slices.Contains(r.Tickets[:i], id) {
			return refuse(Invalid, fmt.Sprintf("tickets[%d]", i), "the ticket is named twice")
		}
	}
	return nil
}

// Refund gives money back for tickets of an order, and has all gates refuse them:
// one transaction. What a card was charged goes back by the acquirer first. The
// errors are of type *Error where the request is wrong, or cannot be done as things
// stand; tickets that were used are a Conflict, unless the return is forced.
func (o *Office) Refund(ctx context.Context, in Intent, order string, r Return) (Reply, error) {
	if err := r.check(); err != nil {
		return Reply{}, err
	}
	a, err := o.Order(ctx, order)
	if err != nil {
		return Reply{}, err
	}
	if a.Charge.Payment != Card || a.Charge.Amount == 0 {
		return o.once(ctx, o.opt.Ledger.Within, in, func(tx Tx, gates Gates) (Result, error) {
			m, err := o.GiveBack(tx, gates, in.Caller, order, r)
			return Result{Refunded: &m}, err
		})
	}
	if o.opt.Acquirer == nil {
		return Reply{}, refuse(Unavailable, "", "the order was paid by card, and no acquirer is configured to give the money back")
	}
	return o.begin(ctx, o.opt.Ledger.Within, in, func(tx Tx, gates Gates) (work, error) {
		m, err := o.plan(tx, gates, in.Caller, order, r)
		if err != nil {
			return work{}, err
		}
		asked := m // the acquirer knows the charge by its reference
		asked.Reference = a.Charge.Reference
		m.Pending = true
		return work{ID: m.ID, Refund: &asked}, reserve(tx, m)
	})
}

// GiveBack is Refund within a transaction of the caller's, for money that no
// acquirer of ours moves: it writes the refund and revokes the tickets.
func (o *Office) GiveBack(tx Tx, gates Gates, by, order string, r Return) (Money, error) {
	if err := r.check(); err != nil {
		return Money{}, err
	}
	m, err := o.plan(tx, gates, by, order, r)
	if err != nil {
		return m, err
	}
	return m, giveBack(tx, gates, m)
}

// plan says what a return comes to as things stand. Reading the order keeps other
// refunds of it away until the commit.
func (o *Office) plan(tx Tx, gates Gates, by, id string, r Return) (Money, error) {
	a, err := account(tx, id)
	if err != nil {
		return Money{}, err
	}
	left, valid := a.Left(), []ticket.ID{}
	for _, t := range a.Tickets {
		if t.Refund == "" {
			valid = append(valid, t.ID)
		}
	}
	m := Money{
		ID: newID("ref"), Order: id, Refund: true, Time: o.opt.Now().UnixNano(), Caller: by, Note: r.Note,
		Currency: a.Charge.Currency, Payment: a.Charge.Payment, Invoice: a.Charge.Invoice, Tickets: r.Tickets,
	}
	if len(m.Tickets) == 0 {
		m.Tickets = valid
	}
	if len(m.Tickets) == 0 {
		return m, refuse(Conflict, "", "all tickets of this order are refunded already")
	}
	for _, t := range m.Tickets {
		if !slices.Contains(valid, t) {
			return m, refuse(Conflict, "tickets", "the ticket %s is not of this order, or refunded already", t)
		}
		used, err := gates.Used(a.Event, t)
		if err != nil {
			return m, fmt.Errorf("look for the ticket at gates: %w", err)
		}
		if used && !r.Force {
			return m, refuse(Conflict, "tickets", "the ticket %s was used; send \"force\": true to refund it all the same", t)
		}
	}
	m.Amount = left * int64(len(m.Tickets)) / int64(len(valid))
	if r.Amount != nil {
		m.Amount = *r.Amount
	}
	if m.Amount > left {
		return m, refuse(Conflict, "amount", "only %d %s of this order can still be given back, in minor units", left, m.Currency)
	}
	return m, nil
}

// giveBack writes a refund that is done: the money, and that its tickets are void.
func giveBack(tx Tx, gates Gates, m Money) error {
	m.Pending = false
	if err := reserve(tx, m); err != nil {
		return err
	}
	for _, id := range m.Tickets {
		if err := gates.Revoke(id, m.Caller); err != nil {
			return fmt.Errorf("revoke ticket: %w", err)
		}
	}
	return nil
}

// reserve writes a refund and marks its tickets, so that no other refund takes them.
func reserve(tx Tx, m Money) error {
	return errors.Join(put(tx, m), mark(tx, m.Tickets, m.ID))
}

// unreserve takes a refund back that the acquirer did not do.
func unreserve(tx Tx, m Money) error {
	return errors.Join(tx.Drop(moneyTable, m.ID), mark(tx, m.Tickets, ""))
}

func mark(tx Tx, tickets []ticket.ID, refund string) error {
	for _, id := range tickets {
		t, found, err := get[Ticket](tx, ticketTable, id.String())
		if err == nil && !found {
			err = fmt.Errorf("ticket %s is gone", id)
		}
		if err != nil {
			return err
		}
		t.Refund = refund
		if err := put(tx, t); err != nil {
			return err
		}
	}
	return nil
}
