package outbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"admitone/internal/webhook"
)

// maxAnswer bounds what is read of an answer; nothing of it is used.
const maxAnswer = 64 << 10

// try sends one message once and stores what came of it.
func (o *Outbox) try(ctx context.Context, e Endpoint, d Delivery) error {
	status, wait, err := o.send(ctx, e, d)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the process ends: the try counts for nothing, and its lease ends by itself
	}
	ctx = context.WithoutCancel(ctx) // what the receiver has must not be sent again
	now := o.opt.Now()
	d.Status, d.Error = status, ""
	switch {
	case err == nil:
		d.State, d.Due = Delivered, now
		o.count(e.Name, Count{Delivered: 1})
		return o.settle(ctx, d)
	case status == http.StatusGone:
		err = fmt.Errorf("%w: it wants no more", err)
		d.State = GivenUp
	}
	d.Error = err.Error()
	next := now.Add(max(wait, o.backOff(d.Attempts)))
	log := o.opt.Log.With("endpoint", e.Name, "id", d.ID, "type", d.Type, "attempt", d.Attempts, "err", d.Error)
	if d.State == GivenUp || next.Sub(d.Created) > cmp.Or(e.GiveUp, o.opt.GiveUp) {
		d.State, d.Due = GivenUp, now
		o.count(e.Name, Count{GivenUp: 1})
		log.Error("webhook given up")
		return o.settle(ctx, d)
	}
	d.Due = next
	o.count(e.Name, Count{Failed: 1})
	log.Warn("webhook not delivered", "next", next.UTC().Format(time.RFC3339))
	return o.settle(ctx, d)
}

// backOff is the wait after a number of tries: exponential, and up to a quarter
// less or more, so that many messages that failed together do not come together.
func (o *Outbox) backOff(tries int) time.Duration {
	d := min(float64(longest), float64(firstTry)*math.Pow(4, float64(tries-1)))
	return time.Duration(d * (0.75 + o.opt.Jitter()/2))
}

// send gives the answer's status, 0 where none came, and how long the receiver
// asked to be left alone.
func (o *Outbox) send(ctx context.Context, e Endpoint, d Delivery) (status int, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, 0, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "admitone")
	if err := webhook.Sign(r.Header, d.ID, o.opt.Now(), d.Body, e.Secrets()); err != nil {
		return 0, 0, err
	}
	resp, err := o.client.Do(r)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a key
		}
		return 0, 0, err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again; the head said all
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, retryAfter(resp.Header), fmt.Errorf("answered %d", resp.StatusCode)
	}
	return resp.StatusCode, 0, nil
}

// retryAfter reads the header field in its form of seconds; a wait is never longer
// than the back-off's own longest.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(n)*time.Second, longest)
}
