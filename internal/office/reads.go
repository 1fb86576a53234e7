package office

import (
	"context"
	"fmt"

	"admitone/internal/ticket"
)

// Account is an order with all that became of it.
type Account struct {
	Order
	Charge  Money
	Refunds []Money  // in the order of time
	Tickets []Ticket // in the order of the sale; of a list of orders: none
}

// Left is what was not given back, in minor units.
func (a Account) Left() int64 {
	left := a.Charge.Amount
	for _, m := range a.Refunds {
		left -= m.Amount
	}
	return left
}

// Order gives one order, or an *Error of the kind Missing.
func (o *Office) Order(ctx context.Context, id string) (a Account, err error) {
	err = o.opt.Books.View(ctx, func(tx Tx) error {
		a, err = account(tx, id)
		return err
	})
	return a, err
}

// Orders lists orders, oldest first, after a cursor ("": from the start), without
// their tickets; next is the cursor of the last one. It returns ErrCursor for what
// is no cursor.
func (o *Office) Orders(ctx context.Context, after string, limit int) (page []Account, next string, err error) {
	err = o.opt.Books.View(ctx, func(tx Tx) error {
		rows, at, err := tx.Page(orderTable, allOrders, after, limit)
		if err != nil {
			return err
		}
		page, next = make([]Account, len(rows)), at
		for i, r := range rows {
			if page[i].Order, err = decode[Order](r); err != nil {
				return err
			}
			if err := page[i].money(tx); err != nil {
				return err
			}
		}
		return nil
	})
	return page, next, err
}

// Ticket gives a ticket that was minted here, and false where it was not.
func (o *Office) Ticket(ctx context.Context, id ticket.ID) (t Ticket, found bool, err error) {
	err = o.opt.Books.View(ctx, func(tx Tx) error {
		t, found, err = get[Ticket](tx, ticketTable, id.String())
		return err
	})
	return t, found, err
}

// AccountOf is Office.Order within a transaction of the caller's.
func AccountOf(tx Tx, id string) (Account, error) { return account(tx, id) }

// account reads an order whole. Within an update it stays as it is until the commit.
func account(tx Tx, id string) (a Account, err error) {
	if len(id) > maxText || id == "" {
		return a, missing(id)
	}
	order, found, err := get[Order](tx, orderTable, id)
	if err != nil || !found {
		return a, orMissing(err, id)
	}
	a.Order = order
	if err := a.money(tx); err != nil {
		return a, err
	}
	for _, t := range order.Tickets {
		row, found, err := get[Ticket](tx, ticketTable, t.String())
		if err == nil && !found {
			err = fmt.Errorf("order %s: its ticket %s is gone", id, t)
		}
		if err != nil {
			return a, err
		}
		a.Tickets = append(a.Tickets, row)
	}
	return a, nil
}

// money reads the charge and the refunds of an order.
func (a *Account) money(tx Tx) error {
	for after := ""; ; {
		rows, next, err := tx.Page(moneyTable, a.Order.ID, after, 100)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = next
		for _, r := range rows {
			m, err := decode[Money](r)
			switch {
			case err != nil:
				return err
			case m.Refund:
				a.Refunds = append(a.Refunds, m)
			default:
				a.Charge = m
			}
		}
	}
}

func missing(id string) error { return refuse(Missing, "", "there is no order %q", id) }

func orMissing(err error, id string) error {
	if err != nil {
		return err
	}
	return missing(id)
}
