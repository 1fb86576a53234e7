package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"admitone/internal/audit"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// TestHandHeldRace: hand-helds of one caller at three ledgers on one database, and
// gates that ask them, want one ticket at once. It has one winner; who claims again
// with the winner's id, of whichever ledger, gets the same bytes; and each ledger
// writes for the caller under a run of its own.
func TestHandHeldRace(t *testing.T) {
	const rounds, claims, gates = 15, 5, 6
	all := ledgers(t, pgtest.Database(t), &lines{}, pgstore.Options{}, "a", "b", "c")
	gs := make([]gate, gates)
	for i := range gs {
		gs[i].src = ticket.Source(fmt.Sprintf("g%02d", i))
	}
	ctx, byHand := context.Background(), 0
	for round := range rounds {
		text, err := ticket.NewSigner(key()).Mint(ticket.Ticket{Format: ticket.FormatA1, ID: unitOf(round).Ticket, Event: event})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		bodies, firsts := map[string]string{}, 0
		var eg errgroup.Group
		for i := range 3 * claims { // each claim once at each ledger
			claim := fmt.Sprintf("%d/%d", round, i%claims)
			eg.Go(func() error {
				h, err := all[i%3].Admit(ctx, ledger.Handheld{Caller: "tent", Place: "Tent", Claim: claim, Token: text})
				mu.Lock()
				defer mu.Unlock()
				if was, ok := bodies[claim]; h.Reason == ticket.OK && ok && was != string(h.Body) {
					err = errors.Join(err, fmt.Errorf("claim %s got %s after %s", claim, h.Body, was))
				}
				if h.Reason == ticket.OK {
					bodies[claim] = string(h.Body)
				}
				return err
			})
		}
		for i := range gs {
			eg.Go(func() error {
				r, err := gs[i].ask(all[i%3], gs[i].claim(unitOf(round)))
				mu.Lock()
				defer mu.Unlock()
				if r.Answer == ticket.AnswerFirst {
					firsts++
				}
				return err
			})
		}
		if err := eg.Wait(); err != nil {
			t.Fatal(err)
		}
		if len(bodies)+firsts != 1 {
			t.Fatalf("round %d: hand-helds admitted by %v, %d gates are first: want one winner", round, bodies, firsts)
		}
		byHand += len(bodies)
		for claim, body := range bodies {
			for _, l := range all {
				h, err := l.Admit(ctx, ledger.Handheld{Caller: "tent", Place: "Tent", Claim: claim, Token: text})
				if err != nil || !h.Replayed || string(h.Body) != body {
					t.Fatalf("a retry got %s, %v, want %s", h.Body, err, body)
				}
			}
		}
	}
	t.Logf("hand-helds won %d of %d", byHand, rounds)
	runs := map[ticket.Run]bool{}
	for _, l := range all {
		for _, p := range l.Own() {
			if p.Source == "http/tent" {
				runs[p.Run] = true
			}
		}
	}
	if len(runs) != len(all) {
		t.Errorf("%d runs of the caller, want one a ledger", len(runs))
	}
}

// TestOneAuditLogOfSeveralLedgers: ledgers on one database append to one chain, also
// those that begin it at once.
func TestOneAuditLogOfSeveralLedgers(t *testing.T) {
	const each = 10
	all := ledgers(t, pgtest.Database(t), &lines{}, pgstore.Options{}, "a", "b", "c")
	ctx := context.Background()
	var eg errgroup.Group
	for i, l := range all {
		for n := range each {
			eg.Go(func() error {
				return l.Within(ctx, func(w *ledger.Within) error {
					id := unitOf(n).Ticket // the ledgers want the same tickets, too
					if err := w.Revoke(ticket.FormatA1, id, i != 1, "ops"); err != nil {
						return err
					}
					_, err := audit.Append(w.Tx().(office.Tx), audit.Line{By: fmt.Sprint(i), Nonce: fmt.Sprint(n)})
					return err
				})
			})
		}
	}
	if err := eg.Wait(); err != nil {
		t.Fatal(err)
	}
	v := audit.NewVerifier(audit.Head{})
	err := all[0].View(ctx, func(tx ledger.Tx) error {
		lines, _, err := audit.Page(tx.(office.Tx), "", 1000)
		for _, l := range lines {
			err = errors.Join(err, v.Next(l))
		}
		return err
	})
	if head, err2 := v.End(); errors.Join(err, err2) != nil || head.N != each*uint64(len(all)) {
		t.Errorf("%d lines, %v; want %d that fit", head.N, errors.Join(err, err2), each*len(all))
	}
}
