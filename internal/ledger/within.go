package ledger

import (
	"context"
	"time"
)

// Within is a transaction of the ledger that others work in, too: what they write
// through Tx and what they change of the ledger is committed together or not at
// all. It is valid until the function that it was given to returns.
type Within struct{ t *txn }

// Within runs fn as one transaction of the ledger and returns after it is durable.
// Where fn returns an error all its writes are undone, and the error is returned.
// fn may run more than once, and only its last run counts: it must begin by
// resetting whatever it collects outside of the transaction.
func (l *Ledger) Within(ctx context.Context, fn func(*Within) error) error {
	return l.update(ctx, func(t *txn) error { return fn(&Within{t}) })
}

// Tx is the transaction of the ledger's store, for rows that are not the
// ledger's. The ledger's own must be changed through the other methods alone.
func (w *Within) Tx() Tx { return w.t.Tx }

// Now is the time of the transaction, by the ledger's clock.
func (w *Within) Now() time.Time { return w.t.now }

// Say has fn called after the commit: for a log line, or to wake somebody.
func (w *Within) Say(fn func()) { w.t.say(fn) }
