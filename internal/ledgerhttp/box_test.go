package ledgerhttp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/office"
	"admitone/internal/ticket"
)

// box is the stage's box office, with an acquirer of the test's.
type box struct {
	*office.Office
	policies Policies
	pay      func(office.Transfer) (office.Moved, error)
}

func newBox(s *stage, books office.Books, log *slog.Logger) *box {
	s.t.Helper()
	b := &box{policies: Policies{}, pay: func(t office.Transfer) (office.Moved, error) { return office.Moved{Reference: "pay_1"}, nil }}
	signer := ticket.NewSigner(testKey(5))
	var err error
	b.Office, err = office.New(office.Options{
		Books: books, Ledger: joint{s.ledger}, Answer: Answer, Signer: &signer, Acquirer: b, Process: "1",
		Now: s.Now, Log: log, Forget: []string{EndpointOrders, EndpointRefunds},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.Run(ctx) }()
	s.t.Cleanup(func() { cancel(); <-ended })
	return b
}

// Move is office.Acquirer.Move.
func (b *box) Move(_ context.Context, t office.Transfer) (office.Moved, error) { return b.pay(t) }

// joint is the ledger as ledgerd gives it to the office.
type joint struct{ *ledger.Ledger }

func (j joint) Programme(ctx context.Context) (ticket.Programme, error) {
	p, err := j.Ledger.Programme(ctx)
	if errors.Is(err, ledger.ErrNotFound) {
		return ticket.Programme{}, nil
	}
	return p, err
}

func (j joint) Within(ctx context.Context, fn func(office.Tx, office.Gates) error) error {
	return j.Ledger.Within(ctx, func(w *ledger.Within) error { return fn(w.Tx().(office.Tx), gatesWithin{w}) })
}

type gatesWithin struct{ *ledger.Within }

func (g gatesWithin) Revoke(id ticket.ID, by string) error {
	return g.Within.Revoke(ticket.FormatA1, id, true, by)
}

func (g gatesWithin) Used(event string, id ticket.ID) (bool, error) {
	return g.Held(event, ticket.FormatA1, id)
}

// fourTickets is the body of most orders: the essay's, with tickets.
const fourTickets = `{"tickets":4,"amount":4900,"currency":"EUR","invoice":"inv_9f3c2a"}`

// reply is one answer, whole.
type reply struct {
	status   int
	header   http.Header
	body     string
	replayed bool
}

// kept is what every repeat of a request has to get: all but the mark of a repeat
// and what is of this very answer.
func (r reply) kept() (int, string, string) {
	h := maps.Clone(r.header)
	delete(h, replayedField)
	delete(h, "Date")
	var b strings.Builder
	if err := h.Write(&b); err != nil {
		panic(err)
	}
	return r.status, b.String(), r.body
}

// post sends a body with a bearer key; field is the whole Idempotency-Key header,
// "" for none.
func (s *stage) post(path, bearer, field, body string) reply {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Content-Type", "application/json")
	if field != "" {
		r.Header.Set(keyField, field)
	}
	return s.roundTrip(r)
}

func (s *stage) roundTrip(r *http.Request) reply {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b), resp.Header.Get(replayedField) == "true"}
}

// sell wants an order sold.
func (s *stage) sell(field, body string) (Sold, reply) {
	s.t.Helper()
	r := s.post("/v1/orders", orderKey, field, body)
	var out Sold
	if p := strict([]byte(r.body), &out); r.status != 201 || p != nil {
		s.t.Fatalf("order: %d %s", r.status, r.body)
	}
	return out, r
}

// count gives how many orders there are.
func (s *stage) count() int {
	s.t.Helper()
	list, _, err := s.box.Orders(context.Background(), "", 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list)
}
