package office

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"admitone/internal/ticket"
)

// Draft is an order with its charge and its signed tickets, as they will be stored:
// made before the transaction, which then has nothing to wait for.
type Draft struct {
	Order   Order
	Charge  Money
	Tickets []Ticket
}

// Draw makes the draft of a sale by a caller, or says in an *Error why it cannot be
// sold as things stand. Nothing is stored.
func (o *Office) Draw(ctx context.Context, caller string, s Sale) (Draft, error) {
	if err := s.check(); err != nil {
		return Draft{}, err
	}
	s, err := o.offer(ctx, s)
	if err != nil {
		return Draft{}, err
	}
	return o.mint(newID("ord"), caller, s)
}

// newID gives an id that nobody can guess, and that says what it is of.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()) }

// offer completes a sale by what is on. Of what there is only one need not be named.
func (o *Office) offer(ctx context.Context, s Sale) (Sale, error) {
	if o.opt.Signer == nil {
		return s, refuse(Unavailable, "", "this ledger signs no tickets: its configuration names no ticket_key")
	}
	p, err := o.opt.Ledger.Programme(ctx)
	if err != nil {
		return s, fmt.Errorf("read programme: %w", err)
	}
	now := o.opt.Now()
	var on []string
	for _, e := range p.Events {
		if o.sells(e, now) {
			on = append(on, e.ID)
		}
	}
	if s.Event, err = one("event", s.Event, on); err != nil {
		return s, err
	}
	e := p.Events[slices.IndexFunc(p.Events, func(e ticket.ProgrammeEvent) bool { return e.ID == s.Event })]
	var sessions []string
	for _, x := range e.Sessions {
		if now.Before(x.To) {
			sessions = append(sessions, x.ID)
		}
	}
	if len(e.Sessions) > 0 || s.Session != "" {
		if s.Session, err = one("session", s.Session, sessions); err != nil {
			return s, err
		}
	}
	if len(e.Products) > 0 || s.Product != "" {
		s.Product, err = one("product", s.Product, e.Products)
	}
	if s.Payment == "" {
		s.Payment = o.payment(s)
	}
	return s, err
}

// sells says whether tickets that are signed here would be let in to an event.
func (o *Office) sells(e ticket.ProgrammeEvent, now time.Time) bool {
	key := o.opt.Signer.KeyID()
	return now.Before(e.Close) && slices.Contains(e.Formats, ticket.FormatA1.String()) &&
		slices.ContainsFunc(e.Keys, func(k ticket.ProgrammeKey) bool { return k.ID == key })
}

// one gives the named one of a list, or the only one.
func one(field, name string, list []string) (string, error) {
	switch {
	case name == "" && len(list) == 1:
		return list[0], nil
	case len(list) == 0:
		return "", refuse(Conflict, field, "no %s is on sale: the programme lists none that is not over and takes tickets signed by this ledger", field)
	case name == "":
		return "", refuse(Invalid, field, "%s is required: several are on sale: %s", field, strings.Join(list, ", "))
	case !slices.Contains(list, name):
		return "", refuse(Invalid, field, "this %s is not on sale; on sale: %s", field, strings.Join(list, ", "))
	}
	return name, nil
}

func (o *Office) payment(s Sale) Payment {
	switch {
	case o.opt.CardByDefault:
		return Card
	case s.Invoice != "":
		return Invoice
	}
	return Cash
}

// mint draws the order's tickets and signs them.
func (o *Office) mint(id, caller string, s Sale) (Draft, error) {
	now := o.opt.Now().UnixNano()
	d := Draft{
		Order: Order{ID: id, Time: now, Caller: caller, Event: s.Event, Session: s.Session, Product: s.Product},
		Charge: Money{
			ID: newID("chg"), Order: id, Time: now, Caller: caller,
			Amount: *s.Amount, Currency: s.Currency, Payment: s.Payment, Invoice: s.Invoice,
		},
	}
	for range s.Tickets {
		t := ticket.Ticket{Format: ticket.FormatA1, Event: s.Event, Session: s.Session, Product: s.Product}
		rand.Read(t.ID[:]) // never fails (crypto/rand, Go 1.24)
		token, err := o.opt.Signer.Mint(t)
		if err != nil {
			return d, refuse(Conflict, "", "the names of event, session and product do not fit on a ticket: %v", err)
		}
		d.Order.Tickets = append(d.Order.Tickets, t.ID)
		d.Tickets = append(d.Tickets, Ticket{ID: t.ID, Order: id, Token: token})
	}
	return d, nil
}

// Book stores a draft; nothing of it is there before.
func (d Draft) Book(tx Tx) error {
	if err := add(tx, d.Order); err != nil {
		return fmt.Errorf("book order: %w", err)
	}
	if err := add(tx, d.Charge); err != nil {
		return fmt.Errorf("book order: %w", err)
	}
	for _, t := range d.Tickets {
		if err := add(tx, t); err != nil {
			return fmt.Errorf("book order: %w", err)
		}
	}
	return nil
}
