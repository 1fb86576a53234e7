package ledgerhttp

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"admitone/internal/office"
)

// NewIdempotencyKey makes the key of one intent: 128 random bits or more. Keep it
// until there is an answer, and send it with every retry.
func NewIdempotencyKey() string { return crand.Text() }

// Order sells tickets. Under one key it sells once, however often it is called; it
// retries by itself, see once. replayed says that an earlier call had sold them.
func (c *Client) Order(ctx context.Context, key string, s office.Sale) (out Sold, replayed bool, err error) {
	replayed, err = c.once(ctx, "/v1/orders", key, s, &out)
	return out, replayed, err
}

// Refund gives money back for tickets of an order, and has the gates refuse them; it
// retries as Order does.
func (c *Client) Refund(ctx context.Context, key, order string, r office.Return) (out Refund, replayed bool, err error) {
	replayed, err = c.once(ctx, "/v1/orders/"+url.PathEscape(order)+"/refund", key, r, &out)
	return out, replayed, err
}

// OrderOf gives one order.
func (c *Client) OrderOf(ctx context.Context, id string) (out Order, err error) {
	return out, c.get(ctx, "/v1/orders/"+url.PathEscape(id), &out)
}

// AllOrders gives all orders, oldest first, without their tickets. It ends with the
// first error.
func (c *Client) AllOrders(ctx context.Context) iter.Seq2[Order, error] {
	return all(func(after string) ([]Order, string, error) {
		var p OrderPage
		err := c.get(ctx, pagePath("/v1/orders", after, maxPage), &p)
		return p.Orders, p.Next, err
	})
}

// OrdersCSV copies the export of all movements of money to w.
func (c *Client) OrdersCSV(ctx context.Context, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/orders.csv", "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("export orders: %w", err)
	}
	return nil
}

// How a client retries: it waits between half and the whole of a time that doubles,
// so that many clients do not come back at once, or as long as the ledger says.
const (
	maxTries  = 7
	firstWait = 200 * time.Millisecond
	mostWait  = 10 * time.Second
)

// once sends a request under an idempotency key until there is an answer to it. It
// sends the same bytes with the same key again where nobody knows what became of
// them (the network failed, the ledger answered with a 5xx), where the ledger is
// still working on them (409 in-progress), and where it asks for patience (429).
// Any other problem is final: above all 422, which says that the key belongs to
// another request.
func (c *Client) once(ctx context.Context, path, key string, in, out any) (replayed bool, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return false, fmt.Errorf("encode request: %w", err)
	}
	for try := 1; ; try++ {
		answer, replayed, err := c.keyed(ctx, path, key, body)
		if err == nil {
			if err := json.Unmarshal(answer, out); err != nil {
				return false, fmt.Errorf("read answer of the ledger: %w", err)
			}
			return replayed, nil
		}
		wait, again := retry(err, try)
		if !again || ctx.Err() != nil {
			return false, err
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return false, err
		}
	}
}

// keyed sends a request once, and reads its answer whole: one that ends early is no
// answer.
func (c *Client) keyed(ctx context.Context, path, key string, body []byte) (answer []byte, replayed bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("call ledger: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	r.Header.Set(keyField, strconv.Quote(key))
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, false, fmt.Errorf("call ledger: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, false, asked(resp)
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, false, fmt.Errorf("read answer of the ledger: %w", err)
	}
	return answer, resp.Header.Get(replayedField) == "true", nil
}

// asked gives what the ledger told as an error, with the time that it asks for.
func asked(resp *http.Response) error {
	err := problemOf(resp)
	var p *Problem
	if errors.As(err, &p) {
		p.RetryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // not in seconds: as if it did not say
		return err
	}
	if resp.StatusCode < 500 {
		return &final{err}
	}
	return err // of a proxy whose ledger is away
}

// final is an error that no retry mends.
type final struct{ error }

// Unwrap gives the error.
func (f *final) Unwrap() error { return f.error }

// Unsure reports whether an error of Order or Refund leaves open what happened, so
// that the same call under the same key is the way to find out.
func Unsure(err error) bool {
	var last *final
	var p *Problem
	switch {
	case err == nil || errors.As(err, &last):
		return false
	case errors.As(err, &p):
		return p.Status >= 500 || p.Status == http.StatusTooManyRequests || p.Is(problem(inProgress, ""))
	}
	return true
}

// retry says whether to send a request again after an error, and when.
func retry(err error, try int) (wait time.Duration, again bool) {
	if try >= maxTries || !Unsure(err) {
		return 0, false
	}
	wait = min(firstWait<<(try-1), mostWait)
	wait = wait/2 + rand.N(wait/2+1)
	var p *Problem
	if errors.As(err, &p) {
		wait = max(wait, min(time.Duration(p.RetryAfter)*time.Second, mostWait))
	}
	return wait, true
}
