// Package shop does what a ticket shop reports by webhooks: an order that was paid
// there gets its tickets here, one that was refunded or cancelled loses them.
//
// An id that came before is refused by its row in the seen table, and that row, the
// work and its result are one transaction. Beside that an order of a shop is unique
// by the shop's own id: a second webhook about it, under an id of its own or after
// the first one's row was forgotten, mints nothing. What came of an order does not
// depend on the order in which webhooks arrive: one that was cancelled stays so.
package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/strictjson"
	"admitone/internal/ticket"
)

// The types of events that do something. Any other is taken and ignored, so that a
// shop may send all it has.
const (
	Paid      = "order.paid"
	Refunded  = "order.refunded" // the whole order, or the tickets that it names
	Cancelled = "order.cancelled"
	Canceled  = "order.canceled" // the same
)

// Order is the data of an event. A shop may send more.
type Order struct {
	Order    string      `json:"order"`  // the shop's id of it, 1 to 200 bytes; unique in the shop
	Count    int         `json:"count"`  // order.paid: how many tickets
	Amount   *int64      `json:"amount"` // order.paid: what was paid, in minor units
	Currency string      `json:"currency"`
	Event    string      `json:"event"`   // as in POST /v1/orders
	Session  string      `json:"session"` // likewise
	Product  string      `json:"product"` // likewise
	Tickets  []ticket.ID `json:"tickets"` // order.refunded: these alone; absent: all
	Note     string      `json:"note"`    // order.refunded: for the records
}

// Message is a webhook whose signature is good.
type Message struct {
	Source string // who sent it
	ID     string
	Body   []byte
	Policy seen.Policy // the source's row of the policy table
	Until  time.Time   // how long the id is remembered; zero: Policy.Remember
	Digest []byte      // of the body, so that the same id with another one shows
}

// Status says what came of a message.
type Status string

// The ends of a message.
const (
	Accepted  Status = "accepted"
	Ignored   Status = "ignored"   // of a type that nothing is done for
	Duplicate Status = "duplicate" // the id came before; nothing was done
)

// Reply is what a message came to.
type Reply struct {
	Status    Status
	FirstSeen time.Time   // Duplicate: when the id came first
	Changed   bool        // Duplicate: it came with another body then
	Order     string      // Accepted: our id of the order; empty where it was cancelled before it was paid
	Tickets   []ticket.ID // Accepted: of order.paid, those of the order; of the others, those that are void now
}

// Office is what is needed of package office; *office.Office has it.
type Office interface {
	Draw(ctx context.Context, caller string, s office.Sale) (office.Draft, error)
	GiveBack(tx office.Tx, gates office.Gates, by, order string, r office.Return) (office.Money, error)
	Order(ctx context.Context, id string) (office.Account, error)
}

// Options of a shop. All are required.
type Options struct {
	Office Office
	Books  office.Books
	Within func(ctx context.Context, fn func(office.Tx, office.Gates) error) error // a transaction of books and ledger
	Now    func() time.Time
	Log    *slog.Logger
}

// Shop takes the messages of all sources.
type Shop struct{ opt Options }

// New makes a shop; it starts nothing.
func New(o Options) (*Shop, error) {
	if o.Office == nil || o.Books == nil || o.Within == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("open shop: office, books, transactions, clock and log are required")
	}
	return &Shop{o}, nil
}

// Receive does what a message says, once. The error is a *strictjson.Error or an
// *office.Error where the message is wrong or cannot be done now; then nothing of it
// stays, and it may come again.
func (s *Shop) Receive(ctx context.Context, m Message) (Reply, error) {
	var e struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := strictjson.DecodeKnown(m.Body, &e); err != nil {
		return Reply{}, err
	}
	var o Order
	var d *office.Draft
	switch e.Type {
	case "":
		return Reply{}, &strictjson.Error{Field: "type", Reason: "missing"}
	case Paid, Refunded, Cancelled, Canceled:
		if err := data(e.Data, &o); err != nil {
			return Reply{}, err
		}
	}
	if e.Type == Paid {
		var err error
		if d, err = s.draw(ctx, m.Source, o); err != nil {
			return Reply{}, err
		}
	}
	work := func(tx office.Tx, gates office.Gates) (Reply, error) {
		switch e.Type {
		case Paid:
			return s.paid(tx, m.Source, o, *d)
		case Refunded, Cancelled, Canceled:
			return s.void(tx, gates, m.Source, o)
		}
		return Reply{Status: Ignored}, nil
	}
	out, err := s.once(ctx, m, work)
	if err != nil {
		return Reply{}, err
	}
	s.opt.Log.Info("webhook", "source", m.Source, "id", m.ID, "type", e.Type, "status", out.Status, "order", out.Order, "tickets", len(out.Tickets))
	return out, nil
}

// once claims the message's id, and does the work where it is new, in one
// transaction.
func (s *Shop) once(ctx context.Context, m Message, work func(office.Tx, office.Gates) (Reply, error)) (out Reply, err error) {
	key := seen.Key{Endpoint: m.Policy.Endpoint, Scope: m.Source, ID: m.ID}
	err = s.opt.Within(ctx, func(tx office.Tx, gates office.Gates) error {
		a, err := tx.Seen().Claim(m.Policy, seen.Request{
			Key: key, At: s.opt.Now(), Place: m.Source, Holder: m.Source, Fingerprint: m.Digest, Until: m.Until,
		})
		if err != nil {
			return fmt.Errorf("claim webhook: %w", err)
		}
		if a.Outcome != seen.Won {
			out = Reply{Status: Duplicate, FirstSeen: a.Row.FirstSeen, Changed: a.Outcome == seen.Mismatch}
			return nil
		}
		if out, err = work(tx, gates); err != nil {
			return err
		}
		_, err = tx.Seen().Finish(key, m.Source, []byte(out.Order))
		return err
	})
	return out, err
}

// data reads what the event is about.
func data(raw json.RawMessage, o *Order) error {
	if len(raw) == 0 {
		return &strictjson.Error{Field: "data", Reason: "missing"}
	}
	err := strictjson.DecodeKnown(raw, o)
	var wrong *strictjson.Error
	if errors.As(err, &wrong) {
		if wrong.Field != "" {
			wrong.Field = "." + wrong.Field
		}
		return &strictjson.Error{Field: "data" + wrong.Field, Reason: wrong.Reason}
	}
	if o.Order == "" || len(o.Order) > maxOrder {
		return &strictjson.Error{Field: "data.order", Reason: fmt.Sprintf("the shop's id of the order, 1 to %d bytes", maxOrder)}
	}
	return nil
}

const maxOrder = 200

// draw makes the tickets of an order ahead of the transaction. Where the order is
// known already it makes none: a shop may report one whose event is over by now.
func (s *Shop) draw(ctx context.Context, source string, o Order) (*office.Draft, error) {
	if _, found, err := s.find(ctx, source, o.Order); found || err != nil {
		return &office.Draft{}, err
	}
	d, err := s.opt.Office.Draw(ctx, by(source), office.Sale{
		Tickets: o.Count, Amount: o.Amount, Currency: o.Currency, Invoice: o.Order, Payment: office.Shop,
		Event: o.Event, Session: o.Session, Product: o.Product,
	})
	return &d, named(err)
}
