package ledgerhttp

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"admitone/internal/office"
	"admitone/internal/ticket"
)

// Office is what the API needs of package office; *office.Office has it. Its errors
// are of type *office.Error, or office.ErrCursor, where a caller can mend them.
type Office interface {
	Sell(ctx context.Context, in office.Intent, s office.Sale) (office.Reply, error)
	Refund(ctx context.Context, in office.Intent, order string, r office.Return) (office.Reply, error)
	Order(ctx context.Context, id string) (office.Account, error)
	Ticket(ctx context.Context, id ticket.ID) (t office.Ticket, found bool, err error)
	Orders(ctx context.Context, after string, limit int) (page []office.Account, next string, err error)
}

const noOffice = "this ledger has no box office"

// The answers of the box office. Amounts are in minor units.
type (
	// Sold is the answer to POST /v1/orders.
	Sold struct {
		Order   string       `json:"order"`
		Event   string       `json:"event"`
		Session string       `json:"session,omitempty"`
		Product string       `json:"product,omitempty"`
		Charge  Charge       `json:"charge"`
		Tickets []SoldTicket `json:"tickets"`
	}

	// SoldTicket is a ticket of an order; the token is what its QR code holds.
	SoldTicket struct {
		ID     ticket.ID `json:"id"`
		Token  string    `json:"token"`
		Refund string    `json:"refund,omitempty"` // the refund that took it back
	}

	// Charge is what an order cost.
	Charge struct {
		ID        string         `json:"id"`
		Amount    int64          `json:"amount"`
		Currency  string         `json:"currency"`
		Payment   office.Payment `json:"payment"`
		Invoice   string         `json:"invoice,omitempty"`
		Reference string         `json:"reference,omitempty"` // the acquirer's
		Time      string         `json:"time"`                // ticket.TimeFormat
	}

	// Refund is the answer to POST /v1/orders/{id}/refund.
	Refund struct {
		ID        string      `json:"refund"`
		Order     string      `json:"order"`
		Amount    int64       `json:"amount"`
		Currency  string      `json:"currency"`
		Tickets   []ticket.ID `json:"tickets"` // which no gate lets in any more
		Reference string      `json:"reference,omitempty"`
		Note      string      `json:"note,omitempty"`
		Pending   bool        `json:"pending,omitempty"` // the acquirer has not answered yet
		Time      string      `json:"time"`
	}

	// Order is GET /v1/orders/{id}, and an entry of GET /v1/orders: that has no
	// tickets.
	Order struct {
		Order   string       `json:"order"`
		Time    string       `json:"time"`
		Caller  string       `json:"caller"` // whose key sold it
		Event   string       `json:"event"`
		Session string       `json:"session,omitempty"`
		Product string       `json:"product,omitempty"`
		Count   int          `json:"count"` // of its tickets
		Charge  Charge       `json:"charge"`
		Refunds []Refund     `json:"refunds"`
		Left    int64        `json:"left"` // of the charge, not given back
		Tickets []SoldTicket `json:"tickets,omitempty"`
	}

	// OrderPage is GET /v1/orders: oldest first, in pages as conflicts are.
	OrderPage struct {
		Orders []Order `json:"orders"`
		Next   string  `json:"next"`
	}
)

// Answer writes down what an intent came to, for office.Options.
func Answer(r office.Result) ([]byte, error) {
	a := stored{Status: http.StatusCreated, Type: "application/json"}
	var v any
	switch {
	case r.Sold != nil:
		o := r.Sold.Order
		a.Location = "/v1/orders/" + o.ID
		v = Sold{Order: o.ID, Event: o.Event, Session: o.Session, Product: o.Product, Charge: chargeOf(r.Sold.Charge), Tickets: ticketsOf(r.Sold.Tickets)}
	case r.Refunded != nil:
		a.Location = "/v1/orders/" + r.Refunded.Order
		v = refundOf(*r.Refunded)
	case r.Declined != nil:
		p := problem(declined, "the payment was declined: %s; nothing was sold, and a new attempt needs a new key", *r.Declined)
		a.Status, a.Type, v = p.Status, problemType, p
	default:
		return nil, errors.New("a result of nothing")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	a.Body = append(b, '\n')
	return a.encode()
}

func nanos(at int64) string { return stamp(time.Unix(0, at)) }

func chargeOf(m office.Money) Charge {
	return Charge{
		ID: m.ID, Amount: m.Amount, Currency: m.Currency, Payment: m.Payment, Invoice: m.Invoice, Reference: m.Reference, Time: nanos(m.Time),
	}
}

func refundOf(m office.Money) Refund {
	return Refund{
		ID: m.ID, Order: m.Order, Amount: m.Amount, Currency: m.Currency, Tickets: m.Tickets, Reference: m.Reference,
		Note: m.Note, Pending: m.Pending, Time: nanos(m.Time),
	}
}

func ticketsOf(list []office.Ticket) (out []SoldTicket) {
	for _, t := range list {
		out = append(out, SoldTicket{ID: t.ID, Token: t.Token, Refund: t.Refund})
	}
	return out
}

func orderOf(a office.Account) Order {
	o := Order{
		Order: a.ID, Time: nanos(a.Time), Caller: a.Caller, Event: a.Event, Session: a.Session, Product: a.Product,
		Count: len(a.Order.Tickets), Charge: chargeOf(a.Charge), Refunds: []Refund{}, Left: a.Left(), Tickets: ticketsOf(a.Tickets),
	}
	for _, m := range a.Refunds {
		o.Refunds = append(o.Refunds, refundOf(m))
	}
	return o
}

func (s *Server) sell(ctx context.Context, in office.Intent, _ *http.Request, body []byte) (office.Reply, error) {
	var b office.Sale
	if p := strict(body, &b); p != nil {
		return office.Reply{}, p
	}
	return s.opt.Office.Sell(ctx, in, b)
}

func (s *Server) refund(ctx context.Context, in office.Intent, r *http.Request, body []byte) (office.Reply, error) {
	var b office.Return
	if p := strict(body, &b); p != nil {
		return office.Reply{}, p
	}
	return s.opt.Office.Refund(ctx, in, r.PathValue("id"), b)
}

// selling makes a handler for a read of the box office: its tickets' tokens are
// tickets, so a key of the scope read is not enough.
func (s *Server) selling(fn func(r *http.Request) (any, *Problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, p := s.bearer(r, ScopeOrders)
		if p == nil && s.opt.Office == nil {
			p = problem(notFound, noOffice)
		}
		if p != nil {
			p.write(w)
			return
		}
		v, p := fn(r)
		s.answer(w, http.StatusOK, v, p)
	}
}

func (s *Server) order(r *http.Request) (any, *Problem) {
	a, err := s.opt.Office.Order(r.Context(), r.PathValue("id"))
	return orderOf(a), s.officeProblem("read order", err)
}

func (s *Server) orders(r *http.Request) (any, *Problem) {
	after, limit, p := cursor(r)
	if p != nil {
		return nil, p
	}
	list, next, err := s.opt.Office.Orders(r.Context(), after, limit)
	page := OrderPage{Orders: []Order{}, Next: next}
	for _, a := range list {
		page.Orders = append(page.Orders, orderOf(a))
	}
	return page, s.officeProblem("list orders", err)
}

// ordersCSV exports all movements of money for a spreadsheet, one line each.
func (s *Server) ordersCSV(w http.ResponseWriter, r *http.Request) {
	_, p := s.bearer(r, ScopeOrders)
	if p == nil && s.opt.Office == nil {
		p = problem(notFound, noOffice)
	}
	var list []office.Account
	var next string
	if p == nil {
		var err error
		list, next, err = s.opt.Office.Orders(r.Context(), "", maxPage)
		p = s.officeProblem("export orders", err)
	}
	if p != nil {
		p.write(w)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="orders.csv"`)
	out := csv.NewWriter(w)
	out.Write([]string{"order", "time", "kind", "id", "amount", "currency", "payment", "invoice", "reference", "event", "tickets", "caller", "note"})
	for len(list) > 0 {
		for _, a := range list {
			out.Write(moneyRow(a, "charge", len(a.Order.Tickets), a.Charge))
			for _, m := range a.Refunds {
				out.Write(moneyRow(a, "refund", len(m.Tickets), m))
			}
		}
		if len(list) < maxPage {
			break
		}
		var err error
		if list, next, err = s.opt.Office.Orders(r.Context(), next, maxPage); err != nil {
			s.opt.Log.Error("http request", "doing", "export orders", "err", err)
			panic(http.ErrAbortHandler) // the head is out: a cut connection is the only way left to say that lines are missing
		}
	}
	out.Flush()
}

// moneyRow is a line of the export; what went back is negative, so that a column
// adds up.
func moneyRow(a office.Account, kind string, tickets int, m office.Money) []string {
	amount := m.Amount
	if m.Refund {
		amount = -amount
	}
	return []string{
		a.ID, nanos(m.Time), kind, m.ID, strconv.FormatInt(amount, 10), m.Currency, string(m.Payment), cell(m.Invoice),
		cell(m.Reference), cell(a.Event), strconv.Itoa(tickets), m.Caller, cell(m.Note),
	}
}
