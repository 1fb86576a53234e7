package office

import (
	"encoding/json"
	"fmt"

	"admitone/internal/ticket"
)

// The office's tables.
const (
	orderTable  Table = "order"  // Order by its id, all in the list "all" by time
	moneyTable  Table = "money"  // Money by its id, in the list of its order by time
	ticketTable Table = "ticket" // Ticket by its id's 32 hex digits
	workTable   Table = "work"   // work in the world that is not known to be done, in the list "due"
)

const allOrders = "all"

// Order is what was sold in one go. It never changes: refunds are rows of their own.
type Order struct {
	ID      string      `json:"id"`
	Time    int64       `json:"time"`   // Unix nanoseconds
	Caller  string      `json:"caller"` // who sold it
	Event   string      `json:"event"`
	Session string      `json:"session,omitempty"`
	Product string      `json:"product,omitempty"`
	Tickets []ticket.ID `json:"tickets"`
}

// Money is one movement of money: the charge of an order, or a refund.
type Money struct {
	ID        string      `json:"id"`
	Order     string      `json:"order"`
	Refund    bool        `json:"refund,omitempty"`  // money goes back
	Pending   bool        `json:"pending,omitempty"` // of a refund: the acquirer has not answered yet
	Time      int64       `json:"time"`              // Unix nanoseconds
	Caller    string      `json:"caller"`
	Amount    int64       `json:"amount"` // minor units, never negative
	Currency  string      `json:"currency"`
	Payment   Payment     `json:"payment"`
	Invoice   string      `json:"invoice,omitempty"`
	Reference string      `json:"reference,omitempty"` // the acquirer's name for it
	Tickets   []ticket.ID `json:"tickets,omitempty"`   // of a refund: what was revoked
	Note      string      `json:"note,omitempty"`      // of a refund: why
}

// Ticket is one ticket that was minted here.
type Ticket struct {
	ID     ticket.ID `json:"id"`
	Order  string    `json:"order"`
	Token  string    `json:"token"`            // its text
	Refund string    `json:"refund,omitempty"` // the Money that took it back
}

func (o Order) row() (Row, error) {
	return encode(Row{Table: orderTable, ID: o.ID, List: allOrders, At: o.Time}, o)
}

func (m Money) row() (Row, error) {
	return encode(Row{Table: moneyTable, ID: m.ID, List: m.Order, At: m.Time}, m)
}

func (t Ticket) row() (Row, error) { return encode(Row{Table: ticketTable, ID: t.ID.String()}, t) }

func encode(r Row, v any) (Row, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return r, fmt.Errorf("encode row of %s: %w", r.Table, err)
	}
	r.Body = b
	return r, nil
}

func decode[T any](r Row) (v T, err error) {
	if err := json.Unmarshal(r.Body, &v); err != nil {
		return v, fmt.Errorf("read row of %s: %w", r.Table, err)
	}
	return v, nil
}

// rower is a thing that is one row of the books.
type rower interface{ row() (Row, error) }

func put(tx Tx, v rower) error {
	r, err := v.row()
	if err != nil {
		return err
	}
	return tx.Put(r)
}

// add puts what must not be there yet: its id is new.
func add(tx Tx, v rower) error {
	r, err := v.row()
	if err != nil {
		return err
	}
	added, err := tx.Add(r)
	if err == nil && !added {
		err = fmt.Errorf("%s %q is there already", r.Table, r.ID)
	}
	return err
}

func get[T any](tx Tx, t Table, id string) (v T, found bool, err error) {
	r, found, err := tx.Get(t, id)
	if err != nil || !found {
		return v, false, err
	}
	v, err = decode[T](r)
	return v, err == nil, err
}
