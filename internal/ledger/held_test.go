package ledger_test

import (
	"context"
	"testing"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func (r *rig) held(u ticket.Unit) (held bool) {
	r.t.Helper()
	err := r.Within(context.Background(), func(w *ledger.Within) (err error) {
		held, err = w.Held(u.Event, u.Format, u.Ticket)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return held
}

// TestHeld: a ticket is held from the ask on, at any of its entries, until the claim
// is annulled or released.
func TestHeld(t *testing.T) {
	r := newRig(t)
	g := newGate("a", r.clock)
	u := unit(1)
	if r.held(u) {
		t.Error("a ticket that nobody showed is held")
	}
	u.Entry = 2
	c := g.claim(u)
	r.want(g, c, ticket.AnswerFirst)
	if !r.held(u) {
		t.Error("a ticket that is at a gate is free")
	}
	c = g.revise(c, ticket.Admitted)
	r.upload(g, 1)
	if !r.held(u) || r.held(unit(2)) {
		t.Errorf("a used ticket is held: %t, another: %t", r.held(u), r.held(unit(2)))
	}
	if err := r.Release(context.Background(), c.ID, "ops", ""); err != nil {
		t.Fatal(err)
	}
	if r.held(u) {
		t.Error("a released ticket is held")
	}
}
