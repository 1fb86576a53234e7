package ledgerhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"admitone/internal/ledger"
	"admitone/internal/office"
	"admitone/internal/outbox"
)

// Outbox is what the API needs of package outbox; *outbox.Outbox has it.
type Outbox interface {
	Deliveries(ctx context.Context, s outbox.State, endpoint, after string, limit int) ([]outbox.Delivery, string, error)
	Retry(tx office.Tx, endpoint, id string) (outbox.Delivery, error)
	Counts() map[string]outbox.Count
}

// Delivery is an entry of GET /v1/deliveries: one message to one system.
type Delivery struct {
	ID       string       `json:"id"` // its webhook-id
	Endpoint string       `json:"endpoint"`
	Type     string       `json:"type"`
	State    outbox.State `json:"state"` // pending, given_up or delivered
	Created  string       `json:"created"`
	Due      string       `json:"due"` // pending: when it is tried next; else when it was settled
	Attempts int          `json:"attempts"`
	Status   int          `json:"status"` // of the last answer; 0: none came
	Error    string       `json:"error"`  // what was wrong with the last try
}

// DeliveryPage is GET /v1/deliveries: those that wait, those that were given up,
// those that arrived, in pages as conflicts are.
type DeliveryPage struct {
	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next"`
}

func deliveryOf(d outbox.Delivery) Delivery {
	return Delivery{
		ID: d.ID, Endpoint: d.Endpoint, Type: d.Type, State: d.State, Created: stamp(d.Created), Due: stamp(d.Due),
		Attempts: d.Attempts, Status: d.Status, Error: d.Error,
	}
}

func (s *Server) deliveries(r *http.Request) (any, *Problem) {
	after, limit, p := cursor(r)
	if p != nil {
		return nil, p
	}
	page := DeliveryPage{Deliveries: []Delivery{}, Next: after}
	if s.opt.Outbox == nil {
		return page, nil
	}
	q := r.URL.Query()
	if state := outbox.State(q.Get("state")); state != "" && !slices.Contains(outbox.States(), state) {
		return nil, problem(badRequest, "state is pending, given_up or delivered").about("state")
	}
	if _, known := s.opt.Outbox.Counts()[q.Get("endpoint")]; !known && q.Get("endpoint") != "" {
		return nil, problem(badRequest, "no endpoint %q is configured", q.Get("endpoint")).about("endpoint")
	}
	list, next, err := s.opt.Outbox.Deliveries(r.Context(), outbox.State(q.Get("state")), q.Get("endpoint"), after, limit)
	if errors.Is(err, office.ErrCursor) {
		return nil, problem(badRequest, "after is the next of an earlier page of the same list").about("after")
	}
	for _, d := range list {
		page.Deliveries = append(page.Deliveries, deliveryOf(d))
	}
	page.Next = next
	return page, s.outcome("list deliveries", err)
}

// retry is POST /v1/deliveries/{endpoint}/{id}/retry.
func (s *Server) retry(q write) (job, *Problem) {
	return func(w *ledger.Within) (any, error) {
		tx, ok := w.Tx().(office.Tx)
		if !ok || s.opt.Outbox == nil {
			return nil, problem(notFound, "nobody is told anything by this ledger")
		}
		d, err := s.opt.Outbox.Retry(tx, q.PathValue("endpoint"), q.PathValue("id"))
		if errors.Is(err, outbox.ErrUnknown) {
			return nil, problem(notFound, "%v", err)
		}
		return deliveryOf(d), err
	}, nil
}
