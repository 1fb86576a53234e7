package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"admitone/internal/office"
	"admitone/internal/ticket"
)

// table holds what became of each order of a shop, by SOURCE/ID. Rows are never
// forgotten: the shop's id stays taken.
const table office.Table = "shop.order"

// row is an order of a shop.
type row struct {
	Order     string `json:"order,omitempty"`     // ours; empty: it was cancelled before it was paid
	Cancelled bool   `json:"cancelled,omitempty"` // as a whole

	// What was paid for, so that the same id with something else shows.
	Count    int    `json:"count,omitempty"`
	Amount   int64  `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	Event    string `json:"event,omitempty"`
	Session  string `json:"session,omitempty"`
	Product  string `json:"product,omitempty"`
}

func rowID(source, order string) string { return source + "/" + order }

func get(tx office.Tx, source, order string) (r row, found bool, err error) {
	stored, found, err := tx.Get(table, rowID(source, order))
	if err != nil || !found {
		return r, false, err
	}
	if err := json.Unmarshal(stored.Body, &r); err != nil {
		return r, false, fmt.Errorf("read order of a shop: %w", err)
	}
	return r, true, nil
}

func (r row) stored(source, order string) (office.Row, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return office.Row{}, fmt.Errorf("encode order of a shop: %w", err)
	}
	return office.Row{Table: table, ID: rowID(source, order), Body: b}, nil
}

// add puts the row of an order that get did not find, which stays so until the
// commit.
func (r row) add(tx office.Tx, source, order string) error {
	stored, err := r.stored(source, order)
	if err != nil {
		return err
	}
	added, err := tx.Add(stored)
	if err == nil && !added {
		err = fmt.Errorf("the order %q of the shop %q is there all of a sudden", order, source)
	}
	return err
}

func (s *Shop) find(ctx context.Context, source, order string) (r row, found bool, err error) {
	err = s.opt.Books.View(ctx, func(tx office.Tx) error {
		r, found, err = get(tx, source, order)
		return err
	})
	return r, found, err
}

// Find gives the order that a shop's order became, or an *office.Error of the kind
// Missing.
func (s *Shop) Find(ctx context.Context, source, order string) (office.Account, error) {
	missing := &office.Error{Kind: office.Missing, Detail: fmt.Sprintf("no order %q of the shop %q was paid", order, source)}
	if order == "" || len(order) > maxOrder {
		return office.Account{}, missing
	}
	r, found, err := s.find(ctx, source, order)
	if err != nil {
		return office.Account{}, err
	}
	if !found || r.Order == "" {
		return office.Account{}, missing
	}
	return s.opt.Office.Order(ctx, r.Order)
}

// same returns an *office.Error where a shop says something else of an order than
// before.
func (r row) same(o Order) error {
	conflict := func(field string) error {
		return &office.Error{Kind: office.Conflict, Field: "data." + field, Detail: fmt.Sprintf("the shop's order %q was reported with another %s before", o.Order, field)}
	}
	switch {
	case r.Order == "": // it was cancelled, and nothing is known of it
		return nil
	case r.Count != o.Count:
		return conflict("count")
	case o.Amount == nil || r.Amount != *o.Amount:
		return conflict("amount")
	case r.Currency != o.Currency:
		return conflict("currency")
	case r.Event != o.Event:
		return conflict("event")
	case r.Session != o.Session:
		return conflict("session")
	case r.Product != o.Product:
		return conflict("product")
	}
	return nil
}

// paid books what was drawn, unless the shop's order is known.
func (s *Shop) paid(tx office.Tx, source string, o Order, d office.Draft) (Reply, error) {
	r, found, err := get(tx, source, o.Order)
	switch {
	case err != nil:
		return Reply{}, err
	case found && r.Order == "":
		return Reply{Status: Accepted, Tickets: []ticket.ID{}}, nil
	case found:
		a, err := office.AccountOf(tx, r.Order)
		return Reply{Status: Accepted, Order: r.Order, Tickets: a.Order.Tickets}, errors.Join(r.same(o), err)
	}
	r = row{Order: d.Order.ID, Count: o.Count, Amount: *o.Amount, Currency: o.Currency, Event: o.Event, Session: o.Session, Product: o.Product}
	if err := r.add(tx, source, o.Order); err != nil {
		return Reply{}, err
	}
	return Reply{Status: Accepted, Order: r.Order, Tickets: d.Order.Tickets}, d.Book(tx)
}

// void takes tickets of an order back, all that are left where it names none. The
// money moved at the shop, so tickets that were used are taken back as well.
func (s *Shop) void(tx office.Tx, gates office.Gates, source string, o Order) (Reply, error) {
	out := Reply{Status: Accepted, Tickets: []ticket.ID{}}
	r, found, err := get(tx, source, o.Order)
	switch {
	case err != nil:
		return out, err
	case !found && len(o.Tickets) > 0:
		return out, &office.Error{Kind: office.Missing, Field: "data.order", Detail: fmt.Sprintf("no order %q of this shop was paid", o.Order)}
	case !found:
		return out, row{Cancelled: true}.add(tx, source, o.Order)
	}
	if out.Order = r.Order; r.Cancelled {
		return out, nil
	}
	a, err := office.AccountOf(tx, r.Order)
	if err != nil {
		return out, err
	}
	left, err := remaining(a, o)
	if err != nil {
		return out, err
	}
	if len(left) > 0 {
		back := office.Return{Tickets: left, Amount: o.Amount, Note: o.Note, Force: true}
		if all := a.Left(); o.Amount != nil && *o.Amount > all {
			back.Amount = &all // it is the shop's money: our records follow it as far as they can
		}
		_, err := s.opt.Office.GiveBack(tx, gates, by(source), r.Order, back)
		if err != nil {
			return out, named(err)
		}
		out.Tickets = left
	}
	if len(o.Tickets) > 0 {
		return out, nil
	}
	r.Cancelled = true
	stored, err := r.stored(source, o.Order)
	if err != nil {
		return out, err
	}
	return out, tx.Put(stored)
}

// remaining gives the tickets that an event takes back and that nobody took back
// before: the same news in another webhook changes nothing.
func remaining(a office.Account, o Order) (out []ticket.ID, err error) {
	for i, id := range o.Tickets {
		if !slices.Contains(a.Order.Tickets, id) {
			return nil, &office.Error{Kind: office.Missing, Field: fmt.Sprintf("data.tickets[%d]", i), Detail: fmt.Sprintf("the ticket %s is not of this order", id)}
		}
	}
	for _, t := range a.Tickets {
		if t.Refund == "" && (len(o.Tickets) == 0 || slices.Contains(o.Tickets, t.ID)) {
			out = append(out, t.ID)
		}
	}
	return out, nil
}

// by is how the office and the gates are told who it was.
func by(source string) string { return "webhook/" + source }

// named gives an office's error the field of the event that it is about.
func named(err error) error {
	var wrong *office.Error
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return err
	}
	e := *wrong
	switch wrong.Field {
	case "tickets":
		e.Field = "data.count"
	case "invoice":
		e.Field = "data.order"
	default:
		e.Field = "data." + wrong.Field
	}
	return &e
}
