package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// What others write within the ledger's transaction and what they change of the
// ledger stand or fall together.
func TestWithinIsOneTransaction(t *testing.T) {
	r := newRig(t)
	ctx, id := context.Background(), unit(1).Ticket
	refund := seen.Key{Endpoint: "refund", Scope: "shop", ID: "1"}
	said := 0
	run := func(end error) error {
		return r.Within(ctx, func(w *ledger.Within) error {
			w.Say(func() { said++ })
			_, err := w.Tx().Seen().Claim(seen.Policy{Endpoint: "refund", OnRepeat: seen.Echo, Remember: time.Hour},
				seen.Request{Key: refund, At: w.Now(), Place: "shop", Holder: "1"})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Revoke(ticket.FormatA1, id, true, "shop"); err != nil {
				t.Fatal(err)
			}
			return end
		})
	}
	stands := func() (row, revoked bool) {
		err := r.store.View(ctx, func(tx ledger.Tx) (err error) {
			_, row, err = tx.Seen().Get(refund)
			return err
		})
		got, err2 := r.Ticket(ctx, ticket.FormatA1, id)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return row, got.Revoked
	}
	drain(r)
	failed := errors.New("declined")
	if err := run(failed); !errors.Is(err, failed) {
		t.Fatalf("%v, want the function's own error", err)
	}
	if row, revoked := stands(); row || revoked || said != 0 || len(drain(r)) != 0 {
		t.Errorf("after an error: row %t, revoked %t, said %d; want nothing", row, revoked, said)
	}
	if err := run(nil); err != nil {
		t.Fatal(err)
	}
	if row, revoked := stands(); !row || !revoked || said != 1 || len(drain(r)) != 1 {
		t.Errorf("committed: row %t, revoked %t, said %d; want both, said and published once", row, revoked, said)
	}
}
