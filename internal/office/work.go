package office

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"admitone/internal/seen"
)

// work is an intent whose money an acquirer moves: claimed durably, and not known
// to be done. It stays in the books until it is settled, whoever dies meanwhile;
// Holder, as in the row of the seen table, is the process that may settle it.
type work struct {
	ID      string    `json:"id"` // of the order or refund that it will be, and the acquirer's key
	Intent  Intent    `json:"intent"`
	Claimed time.Time `json:"claimed"`
	Until   time.Time `json:"until"` // of the seen row
	Holder  string    `json:"holder"`
	Tries   int       `json:"tries,omitempty"` // 0: the acquirer was certainly not asked before
	Due     int64     `json:"due"`             // when whoever looks may take it, Unix nanoseconds

	Sale   *Sale  `json:"sale,omitempty"`   // one of the two
	Refund *Money `json:"refund,omitempty"` // its Reference is the charge's
}

const dueList = "due"

func (w work) row() (Row, error) {
	return encode(Row{Table: workTable, ID: w.ID, List: dueList, At: w.Due}, w)
}

// How long a holder has before another ledger may take its work over, how often
// the list of due work is looked at, how long to wait before the acquirer is asked
// again, and by how many at once.
const (
	leaseMore = 10 * time.Second // than a request to the acquirer may take
	resume    = time.Second
	firstWait = time.Second
	mostWait  = time.Minute
	atOnce    = 32 // requests to the acquirer under way
)

func (o *Office) lease() time.Duration { return o.opt.Timeout + leaseMore }

// keeps gives until when the key of work is remembered: not less than until the
// next one takes the work over, however short the window, as a retry that found the
// key forgotten meanwhile would be charged again.
func (o *Office) keeps(until, now time.Time) time.Time {
	least := now.Add(2*o.lease() + mostWait)
	if !until.IsZero() && until.Before(least) {
		return least
	}
	return until
}

// begin claims an intent durably as work for the acquirer, hands it to Run and
// waits for its result. plan says what the work is; where it returns an error
// nothing stays.
func (o *Office) begin(ctx context.Context, run runner, in Intent, plan func(Tx, Gates) (work, error)) (Reply, error) {
	var out Reply
	var w work
	err := run(ctx, func(tx Tx, gates Gates) error {
		now := o.opt.Now()
		r := in.request(now, o.holder)
		if in.Policy.Remember != 0 {
			r.Until = o.keeps(now.Add(in.Policy.Remember), now)
		}
		a, err := tx.Seen().Claim(in.Policy, r)
		out = Reply{Outcome: a.Outcome, Row: a.Row, Answer: a.Row.Result}
		if err != nil || a.Outcome != seen.Won {
			return err
		}
		if w, err = plan(tx, gates); err != nil {
			return err
		}
		w.Intent, w.Claimed, w.Until, w.Holder, w.Due = in, now, a.Row.Until, o.holder, now.Add(o.lease()).UnixNano()
		return add(tx, w)
	})
	if err != nil {
		return Reply{}, err
	}
	switch out.Outcome {
	case seen.Won:
		select {
		case o.jobs <- w:
		case <-ctx.Done(): // it is due, and found there
			return Reply{}, ctx.Err()
		}
		return o.await(ctx, in, out)
	case seen.InProgress:
		return o.await(ctx, in, out)
	}
	return out, nil
}

// attempt asks the acquirer, and settles the work by its answer.
func (o *Office) attempt(ctx context.Context, w work) error {
	m, err := o.move(ctx, w)
	if ctx.Err() != nil {
		return nil // it is due, and found there
	}
	if err != nil {
		o.opt.Log.Warn("acquirer", "key", w.ID, "tries", w.Tries+1, "err", err)
	}
	settle, err := o.settlement(w, m, err)
	if err != nil {
		return err
	}
	err = o.opt.Ledger.Within(ctx, func(tx Tx, gates Gates) error {
		held, found, err := get[work](tx, workTable, w.ID)
		if err != nil {
			return err
		}
		if !found || held.Holder != o.holder || held.Due != w.Due {
			return errLost
		}
		return settle(tx, gates)
	})
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// move asks the acquirer; there is nothing to ask for nothing.
func (o *Office) move(ctx context.Context, w work) (Moved, error) {
	t := Transfer{Key: w.ID}
	if w.Sale != nil {
		t.Amount, t.Currency, t.Invoice = *w.Sale.Amount, w.Sale.Currency, w.Sale.Invoice
	} else {
		t.Amount, t.Currency, t.Invoice, t.Refund = w.Refund.Amount, w.Refund.Currency, w.Refund.Invoice, w.Refund.Reference
	}
	if t.Amount == 0 {
		return Moved{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.opt.Timeout)
	defer cancel()
	return o.opt.Acquirer.Move(ctx, t)
}

// errLost ends a settlement of work that another holder took over, or settled.
var errLost = errors.New("the work is another's by now")

// settlement gives what has to be written by the acquirer's answer.
func (o *Office) settlement(w work, m Moved, failed error) (func(Tx, Gates) error, error) {
	switch {
	case errors.Is(failed, ErrNotMoved) && w.Tries == 0: // later, an earlier request may yet arrive
		return func(tx Tx, _ Gates) error {
			_, err := tx.Seen().Drop(w.Intent.key(), o.holder)
			return errors.Join(err, w.undo(tx), tx.Drop(workTable, w.ID))
		}, nil
	case failed != nil:
		w.Tries++
		w.Due = o.opt.Now().Add(wait(w.Tries)).UnixNano()
		return func(tx Tx, _ Gates) error { return put(tx, w) }, nil
	case m.Declined != "":
		return o.settled(w, func(tx Tx, _ Gates) (Result, error) { return Result{Declined: &m.Declined}, w.undo(tx) }), nil
	case w.Sale != nil:
		d, err := o.mint(w.ID, w.Intent.Caller, *w.Sale)
		if err != nil {
			return nil, fmt.Errorf("mint tickets of %s, which is paid: %w", w.ID, err)
		}
		d.Charge.Reference = m.Reference
		return o.settled(w, func(tx Tx, _ Gates) (Result, error) { return Result{Sold: &d}, d.Book(tx) }), nil
	}
	r := *w.Refund
	r.Time, r.Reference = o.opt.Now().UnixNano(), m.Reference
	return o.settled(w, func(tx Tx, gates Gates) (Result, error) { return Result{Refunded: &r}, giveBack(tx, gates, r) }), nil
}

// undo takes back what was written when the intent was claimed.
func (w work) undo(tx Tx) error {
	if w.Refund == nil {
		return nil
	}
	return unreserve(tx, *w.Refund)
}

// settled writes the order or refund and the intent's result, and takes the work
// off the list.
func (o *Office) settled(w work, do func(Tx, Gates) (Result, error)) func(Tx, Gates) error {
	return func(tx Tx, gates Gates) error {
		r, err := do(tx, gates)
		if err != nil {
			return err
		}
		if _, err := o.finish(tx, w.Intent.key(), r); err != nil {
			return err
		}
		return tx.Drop(workTable, w.ID)
	}
}

// wait is how long to wait before the acquirer is asked again: doubling, and
// between half and the whole of it, so that not all ask at once.
func wait(tries int) time.Duration {
	d := min(firstWait<<min(tries-1, 16), mostWait)
	return d/2 + rand.N(d/2+1)
}

// due takes the work over whose time has come: of a process that died, and what
// the acquirer gave no answer to. At start it takes all of the own process's.
func (o *Office) due(ctx context.Context, start bool) (taken []work, err error) {
	now := o.opt.Now()
	var due []work
	err = o.opt.Books.View(ctx, func(tx Tx) error {
		due = nil
		for after := ""; ; {
			rows, next, err := tx.Page(workTable, dueList, after, 100)
			if err != nil || len(rows) == 0 || !start && rows[0].At > now.UnixNano() {
				return err
			}
			after = next
			for _, r := range rows {
				w, err := decode[work](r)
				if err != nil {
					return err
				}
				if own := strings.HasPrefix(w.Holder, o.opt.Process+"/") && w.Holder != o.holder; w.Due <= now.UnixNano() || start && own {
					due = append(due, w)
				}
			}
		}
	})
	for _, w := range due {
		ok := false
		if err == nil {
			w, ok, err = o.take(ctx, w)
		}
		if ok {
			taken = append(taken, w)
		}
	}
	return taken, err
}

// take makes this process the holder of work, and reports false where somebody
// else was faster.
func (o *Office) take(ctx context.Context, seenWork work) (w work, ok bool, err error) {
	err = o.opt.Books.Update(ctx, func(tx Tx) error {
		w, ok, err = get[work](tx, workTable, seenWork.ID)
		if err != nil || !ok {
			return err
		}
		if ok = w.Holder == seenWork.Holder && w.Due == seenWork.Due; !ok {
			return nil
		}
		from, now := w.Holder, o.opt.Now()
		w.Holder, w.Due = o.holder, now.Add(o.lease()).UnixNano()
		w.Tries = max(w.Tries, 1) // nobody knows what the one before had asked
		r := w.Intent.request(w.Claimed, o.holder)
		r.Until = o.keeps(w.Until, now)
		if _, err := tx.Seen().Take(w.Intent.Policy, from, r); err != nil {
			return err
		}
		return put(tx, w)
	})
	return w, ok, err
}
