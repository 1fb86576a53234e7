package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"admitone/internal/office"
)

// State is where a delivery stands.
type State string

// The states of a delivery.
const (
	Pending   State = "pending"
	GivenUp   State = "given_up"
	Delivered State = "delivered"
)

// States are all of them, in the order in which people care.
func States() []State { return []State{Pending, GivenUp, Delivered} }

// Delivery is one message to one endpoint.
type Delivery struct {
	ID       string          `json:"id"` // the message's, and the same on every try
	Endpoint string          `json:"endpoint"`
	Type     string          `json:"type"`
	State    State           `json:"state"`
	Created  time.Time       `json:"created"`          // or taken up again
	Due      time.Time       `json:"due"`              // Pending: when it is tried next, or its lease ends; else when it was settled
	Attempts int             `json:"attempts"`         // begun
	Status   int             `json:"status,omitempty"` // of the last answer; 0: none came
	Error    string          `json:"error,omitempty"`  // what was wrong with the last try
	Body     json.RawMessage `json:"body,omitempty"`   // what is sent
}

// table holds a row per delivery. Its lists are one a state and endpoint, by Due.
const table office.Table = "outbox"

func list(s State, endpoint string) string { return string(s) + "/" + endpoint }

func rowID(endpoint, id string) string { return endpoint + "/" + id }

func put(tx office.Tx, d Delivery) error {
	b, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode delivery: %w", err)
	}
	return tx.Put(office.Row{Table: table, ID: rowID(d.Endpoint, d.ID), List: list(d.State, d.Endpoint), At: d.Due.UnixNano(), Body: b})
}

func parse(r office.Row) (d Delivery, err error) {
	if err = json.Unmarshal(r.Body, &d); err != nil {
		return d, fmt.Errorf("read delivery %q: %w", r.ID, err)
	}
	return d, nil
}

// current reads a delivery within an Update, where it stays as it is until the
// commit.
func current(tx office.Tx, endpoint, id string) (d Delivery, found bool, err error) {
	r, found, err := tx.Get(table, rowID(endpoint, id))
	if err != nil || !found {
		return d, false, err
	}
	d, err = parse(r)
	return d, err == nil, err
}

// lease takes the first due deliveries of an endpoint for this process: until
// their lease ends they are nobody else's. It also forgets old settled ones.
func (o *Outbox) lease(ctx context.Context, endpoint string) (out []Delivery, err error) {
	now := o.opt.Now()
	err = o.opt.Books.Update(ctx, func(tx office.Tx) error {
		out = nil
		rows, _, err := tx.Page(table, list(Pending, endpoint), "", parallel)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.At > now.UnixNano() {
				break
			}
			// Page may show what another process took since: the row, read again, decides.
			d, err := parse(r)
			if err != nil {
				return err
			}
			d, found, err := current(tx, d.Endpoint, d.ID)
			if err != nil {
				return err
			}
			if !found || d.State != Pending || d.Due.After(now) {
				continue
			}
			d.Attempts, d.Due = d.Attempts+1, now.Add(leaseTime)
			if err := put(tx, d); err != nil {
				return err
			}
			out = append(out, d)
		}
		return o.prune(tx, endpoint, now)
	})
	return out, err
}

// prune forgets settled deliveries, some at a time.
func (o *Outbox) prune(tx office.Tx, endpoint string, now time.Time) error {
	for _, s := range []State{GivenUp, Delivered} {
		rows, _, err := tx.Page(table, list(s, endpoint), "", pruneSome)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.At > now.Add(-keep).UnixNano() {
				break
			}
			if err := tx.Drop(table, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle stores what a try came to, unless somebody else tried since: the lease was
// over then, and its result is the one that counts.
func (o *Outbox) settle(ctx context.Context, tried Delivery) error {
	err := o.opt.Books.Update(ctx, func(tx office.Tx) error {
		d, found, err := current(tx, tried.Endpoint, tried.ID)
		if err != nil || !found || d.State != Pending || d.Attempts != tried.Attempts {
			return err
		}
		return put(tx, tried)
	})
	if err != nil {
		return fmt.Errorf("store result of a try: %w", err)
	}
	return nil
}

// Deliveries lists deliveries, without their bodies: by state, endpoint and time.
// An empty state or endpoint is any. It goes on after a cursor ("": from the
// start); next is the cursor of the last one given. It returns office.ErrCursor for
// what is no cursor.
func (o *Outbox) Deliveries(ctx context.Context, s State, endpoint, after string, limit int) (out []Delivery, next string, err error) {
	lists := o.lists(s, endpoint)
	from, inList, whole := strings.Cut(after, "~")
	at := 0
	if after != "" {
		if at = slices.Index(lists, from); at < 0 || !whole {
			return nil, "", fmt.Errorf("list deliveries: %w", office.ErrCursor)
		}
	}
	err = o.opt.Books.View(ctx, func(tx office.Tx) error {
		out, next = []Delivery{}, after
		cursor := inList
		for _, name := range lists[at:] {
			rows, last, err := tx.Page(table, name, cursor, limit-len(out))
			if err != nil {
				return err
			}
			for _, r := range rows {
				d, err := parse(r)
				if err != nil {
					return err
				}
				d.Body = nil
				out, next = append(out, d), name+"~"+last
			}
			if cursor = ""; len(out) == limit {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list deliveries: %w", err)
	}
	return out, next, nil
}

// lists names the lists of a state and endpoint; "" is any.
func (o *Outbox) lists(s State, endpoint string) (out []string) {
	for _, state := range States() {
		for _, e := range o.opt.Endpoints {
			if (s == "" || s == state) && (endpoint == "" || endpoint == e.Name) {
				out = append(out, list(state, e.Name))
			}
		}
	}
	return out
}

// ErrUnknown is returned by Retry where there is no such delivery, or it is not one
// that was given up.
var ErrUnknown = errors.New("no delivery that was given up")

// Retry has a delivery that was given up tried again, with its time to give up
// beginning anew.
func (o *Outbox) Retry(tx office.Tx, endpoint, id string) (Delivery, error) {
	now := o.opt.Now()
	d, found, err := current(tx, endpoint, id)
	if err != nil {
		return d, fmt.Errorf("read delivery: %w", err)
	}
	if !found || d.State != GivenUp {
		return d, ErrUnknown
	}
	d.State, d.Due, d.Created, d.Attempts = Pending, now, now, 0
	return d, put(tx, d)
}
