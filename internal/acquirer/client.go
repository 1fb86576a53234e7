// Package acquirer speaks with a payment service over HTTP, and has a simulated one
// for rehearsals and tests.
//
// The service is asked by POST of {"amount", "currency", "invoice", "refund_of"}
// with an Idempotency-Key, and answers {"id", "state", "reason"}; the state is
// approved, declined (nothing moved, finally) or failed (this request moved
// nothing). Any other answer tells nothing.
package acquirer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"admitone/internal/office"
)

// Request is the body of a request.
type Request struct {
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
	Invoice  string `json:"invoice,omitempty"`
	RefundOf string `json:"refund_of,omitempty"` // the id of a charge
}

// Answer is the body of an answer.
type Answer struct {
	ID     string `json:"id,omitempty"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it was declined
}

// State says what became of a request.
type State string

// The states.
const (
	Approved State = "approved"
	Declined State = "declined"
	Failed   State = "failed"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 10

// Client is an office.Acquirer.
type Client struct {
	URL    string
	Bearer string // sent as Authorization: Bearer; "": nothing
	HTTP   *http.Client
}

// Move is office.Acquirer.Move.
func (c *Client) Move(ctx context.Context, t office.Transfer) (office.Moved, error) {
	body, err := json.Marshal(Request{Amount: t.Amount, Currency: t.Currency, Invoice: t.Invoice, RefundOf: t.Refund})
	if err != nil {
		return office.Moved{}, fmt.Errorf("ask acquirer: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return office.Moved{}, fmt.Errorf("ask acquirer: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", `"`+t.Key+`"`)
	if c.Bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.Bearer)
	}
	resp, err := c.HTTP.Do(r)
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return office.Moved{}, fmt.Errorf("%w: %w", office.ErrNotMoved, err)
	case err != nil:
		return office.Moved{}, fmt.Errorf("ask acquirer: %w", err)
	}
	defer resp.Body.Close()
	var a Answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&a); err != nil {
		return office.Moved{}, fmt.Errorf("read acquirer's answer, %s: %w", resp.Status, err)
	}
	switch {
	case a.State == Approved && a.ID != "":
		return office.Moved{Reference: a.ID}, nil
	case a.State == Declined:
		return office.Moved{Declined: orElse(a.Reason, "no reason given")}, nil
	case a.State == Failed:
		return office.Moved{}, fmt.Errorf("%w: acquirer said %s", office.ErrNotMoved, resp.Status)
	}
	return office.Moved{}, fmt.Errorf("ask acquirer: answer of no known state, %s", resp.Status)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
