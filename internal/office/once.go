package office

import (
	"context"
	"fmt"
	"time"

	"admitone/internal/seen"
)

// Intent is what a caller means to do once, whatever number of requests it takes:
// the key that all of them carry, and the row of the policy table that stands for
// the endpoint.
type Intent struct {
	Policy      seen.Policy
	Caller      string // whose key it is; keys of others are others
	Key         string // the client's, as the Idempotency-Key header has it
	Fingerprint []byte // of the request
}

// key is unique within the endpoint and the caller.
func (in Intent) key() seen.Key {
	return seen.Key{Endpoint: in.Policy.Endpoint, Scope: in.Caller, ID: in.Key}
}

func (in Intent) request(at time.Time, holder string) seen.Request {
	return seen.Request{Key: in.key(), At: at, Place: in.Caller, Holder: holder, Fingerprint: in.Fingerprint}
}

// Result is what an intent came to. One of its fields is set.
type Result struct {
	Sold     *Draft  // an order that was sold
	Refunded *Money  // money that went back
	Declined *string // why the acquirer declined; nothing was sold
}

// Reply is what a request gets that carries an intent.
type Reply struct {
	Outcome seen.Outcome // Won: this very request did it
	Row     seen.Row     // the stored one
	Answer  []byte       // for Won and Echoed: what Options.Answer wrote, byte for byte the same for both
}

// runner runs a transaction on the books, and on the ledger where gates is not nil.
type runner func(ctx context.Context, fn func(tx Tx, gates Gates) error) error

func (o *Office) booksOnly(ctx context.Context, fn func(Tx, Gates) error) error {
	return o.opt.Books.Update(ctx, func(tx Tx) error { return fn(tx, nil) })
}

// once does the work of an intent if its key is new: claim, work and result are one
// transaction. Where work returns an error nothing stays, not even the key.
func (o *Office) once(ctx context.Context, run runner, in Intent, work func(Tx, Gates) (Result, error)) (Reply, error) {
	var out Reply
	err := run(ctx, func(tx Tx, gates Gates) error {
		a, err := tx.Seen().Claim(in.Policy, in.request(o.opt.Now(), o.holder))
		out = Reply{Outcome: a.Outcome, Row: a.Row, Answer: a.Row.Result}
		if err != nil || a.Outcome != seen.Won {
			return err
		}
		r, err := work(tx, gates)
		if err != nil {
			return err
		}
		out.Answer, err = o.finish(tx, in.key(), r)
		return err
	})
	if err != nil {
		return Reply{}, err
	}
	if out.Outcome == seen.InProgress {
		return o.await(ctx, in, out)
	}
	return out, nil
}

// finish stores what an intent came to, in the form that every repeat gets.
func (o *Office) finish(tx Tx, k seen.Key, r Result) ([]byte, error) {
	answer, err := o.opt.Answer(r)
	if err != nil {
		return nil, fmt.Errorf("write answer down: %w", err)
	}
	if held, err := tx.Seen().Finish(k, o.holder, answer); err != nil || held {
		return answer, err
	}
	// The window ended while the work was under way: nobody can ask any more, and
	// what was done stands.
	o.opt.Log.Warn("an intent outlived its window", "endpoint", k.Endpoint, "caller", k.Scope)
	return answer, nil
}

// Waiting for somebody else's work: how often it is looked at, and how long before
// the caller is told to come again.
const (
	lookEvery = 25 * time.Millisecond
	patience  = 3 * time.Second
)

// await waits for the result of an intent that is being worked on, and says
// InProgress where that takes too long. Where the work failed it returns an *Error:
// nothing stays of it.
func (o *Office) await(ctx context.Context, in Intent, out Reply) (Reply, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		row, found, err := o.row(ctx, in.key())
		switch {
		case err != nil:
			return Reply{}, err
		case !found:
			return Reply{}, refuse(Unavailable, "", "the payment service could not do it, and nothing was changed: send the same request again")
		case row.Done && out.Outcome == seen.Won && row.FirstSeen.Equal(out.Row.FirstSeen):
			return Reply{Outcome: seen.Won, Row: row, Answer: row.Result}, nil
		case row.Done:
			return Reply{Outcome: in.Policy.Answer(row, in.request(row.FirstSeen, "")).Outcome, Row: row, Answer: row.Result}, nil
		}
		select {
		case <-look.C:
		case <-over.C:
			return Reply{Outcome: seen.InProgress, Row: row}, nil
		case <-ctx.Done():
			return Reply{}, ctx.Err()
		}
	}
}

func (o *Office) row(ctx context.Context, k seen.Key) (row seen.Row, found bool, err error) {
	err = o.opt.Books.View(ctx, func(tx Tx) error {
		row, found, err = tx.Seen().Get(k)
		return err
	})
	return row, found, err
}
