package ledger_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

func TestAskAnswersInTheProtocolsOrder(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)

	c1 := a.claim(unit(1))
	r.want(a, c1, ticket.AnswerFirst)
	r.clock.add(200 * time.Millisecond)
	c2 := b.claim(unit(1))
	got := r.want(b, c2, ticket.AnswerInProgress)
	if got.First == nil || got.First.Claim != c1.ID || got.First.Time != c1.Claimed.Wall || got.First.Place != c1.Place {
		t.Errorf("the loser is told %+v, want the winner's claim, time and place", got.First)
	}
	if len(got.Records) != 1 || string(got.Records[0]) != string(a.raw(c1)) {
		t.Errorf("the loser got %d records, want the winner's", len(got.Records))
	}

	a.revise(c1, ticket.Admitted)
	r.upload(a, 2)
	c3 := b.claim(unit(1))
	if got := r.want(b, c3, ticket.AnswerSeen); got.First.State != ticket.Admitted {
		t.Errorf("cited as %s, want admitted", got.First.State)
	}
	c4 := b.claim(unit(2))
	b.revise(c4, ticket.Refused)
	r.upload(b, 1)
	r.want(b, c4, ticket.AnswerSettled)

	if err := r.Revoke(context.Background(), ticket.FormatA1, unit(3).Ticket, true, "box office"); err != nil {
		t.Fatal(err)
	}
	r.want(b, b.claim(unit(3)), ticket.AnswerRevoked)
	other := unit(4)
	other.Event = "elsewhere"
	r.want(b, b.claim(other), ticket.AnswerUnknown)
	if err := r.CloseEvent(context.Background(), event); err != nil {
		t.Fatal(err)
	}
	r.want(b, b.claim(unit(5)), ticket.AnswerUnknown)
}

func TestAnAskWhoseAnswerWasLostIsEchoed(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	c1 := a.claim(unit(1))
	first := r.want(a, c1, ticket.AnswerFirst)
	c2 := b.claim(unit(1))
	second := r.want(b, c2, ticket.AnswerInProgress)
	before := r.dump()
	for range 3 {
		got := r.ask(a, c1)
		got.Records = nil // what came since, to be merged before deciding
		if !reflect.DeepEqual(got, ledger.AskReply{Claim: c1.ID, Answer: first.Answer, Time: first.Time}) {
			t.Errorf("echo %+v, want %+v", got, first)
		}
		if got := r.ask(b, c2); !reflect.DeepEqual(got, second) {
			t.Errorf("echo %+v, want %+v", got, second)
		}
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("an echo changed %v", d)
	}
	// Whatever happens to the unit, the answer to this claim stays.
	a.revise(c1, ticket.Annulled)
	r.upload(a, 1)
	if got := r.ask(b, c2); got.Answer != ticket.AnswerInProgress || *got.First != *second.First {
		t.Errorf("answer after the annul %+v, want the stored one", got)
	}
}

func TestMismatchChangesNothing(t *testing.T) {
	r := newRig(t)
	a := newGate("a", r.clock)
	c := a.claim(unit(1))
	r.want(a, c, ticket.AnswerFirst)
	for _, u := range []ticket.Unit{unit(2), {Event: "other", Format: ticket.FormatA1}} {
		before := r.dump()
		forged := *a
		forged.log = nil
		fc := forged.claim(u) // the same claim id, another ticket
		if got := r.ask(&forged, fc); got.Answer != ticket.AnswerMismatch || fc.ID != c.ID {
			t.Fatalf("answer %q, want mismatch", got.Answer)
		}
		for _, k := range ledgertest.Diff(before, r.dump()) {
			if k[:6] != `"alarm` && k[:6] != `"event` {
				t.Errorf("a mismatch changed %s", k)
			}
		}
		r.clock.add(time.Second)
		before = r.dump()
		r.ask(&forged, fc)
		if d := ledgertest.Diff(before, r.dump()); d != nil {
			t.Errorf("the same mismatch again changed %v", d)
		}
	}
	if got := r.alarms(ledger.AlarmMismatch); len(got) != 2 {
		t.Errorf("%d alarms of mismatches, want one for each", len(got))
	}
	r.want(a, c, ticket.AnswerFirst)
	// A claim id that the ledger never saw, asked with another unit than its record's.
	c9 := a.claim(unit(9))
	out, err := r.Ask(context.Background(), a.src, ledger.Ask{Claim: c9.ID, Unit: unit(8), Records: [][]byte{a.raw(c9)}})
	if err != nil || out.Answer != ticket.AnswerMismatch {
		t.Errorf("answer %q, %v, want mismatch", out.Answer, err)
	}
}

// A claim keeps the unit of its first record, also within one upload.
func TestAClaimKeepsItsUnit(t *testing.T) {
	for _, together := range []bool{true, false} {
		r := newRig(t)
		g := newGate("a", r.clock)
		c := g.claim(unit(1))
		if !together {
			r.upload(g, 1)
		}
		c.Unit = unit(2)
		g.revise(c, ticket.Admitted)
		r.upload(g, 1)
		if got, err := r.Ticket(context.Background(), ticket.FormatA1, unit(2).Ticket); err != nil || len(got.Claims) != 0 {
			t.Errorf("together %t: %d claims of the other ticket, %v, want none", together, len(got.Claims), err)
		}
		if n := len(r.alarms(ledger.AlarmMismatch)); n != 1 {
			t.Errorf("together %t: %d alarms, want 1", together, n)
		}
		r.want(g, g.claim(unit(2)), ticket.AnswerFirst)
	}
}

func TestPeekTellsAndWritesNothing(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a := newGate("a", r.clock)
	c := a.claim(unit(1))
	peek := func(want ticket.Reason, records int) {
		t.Helper()
		before := r.dump()
		got, err := r.Peek(ctx, "bb", ledger.Peek{Unit: unit(1)})
		if err != nil || got.Reason != want || len(got.Records) != records || got.Time != r.clock.now().UnixNano() {
			t.Errorf("peek: %+v, %v, want %s with %d records", got, err, want, records)
		}
		if held := want == ticket.InProgress || want == ticket.AlreadyUsed; (got.First != nil) != held {
			t.Errorf("peek at a unit that is %s cites %+v", want, got.First)
		}
		if d := ledgertest.Diff(before, r.dump()); d != nil {
			t.Errorf("peek changed %v", d)
		}
	}
	peek(ticket.OK, 0)
	r.want(a, c, ticket.AnswerFirst)
	peek(ticket.InProgress, 1)
	r.clock.add(time.Minute)
	peek(ticket.AlreadyUsed, 1) // overdue
	a.revise(c, ticket.Annulled)
	r.upload(a, 1)
	peek(ticket.OK, 1)
	if err := r.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, true, "ops"); err != nil {
		t.Fatal(err)
	}
	peek(ticket.Revoked, 1)
}

func TestAGateSpeaksForItselfOnly(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	c := a.claim(unit(1))
	before := r.dump()
	ctx := context.Background()
	asks := []ledger.Ask{
		{Claim: c.ID, Unit: c.Unit, Records: [][]byte{a.raw(c)}},
		{Claim: c.ID, Unit: c.Unit},
		{Claim: ticket.ClaimID{Gate: b.src, Run: 1, Pos: 1}, Unit: c.Unit, Records: [][]byte{a.raw(c)}},
	}
	for _, m := range asks {
		if _, err := r.Ask(ctx, b.src, m); !errors.Is(err, ledger.ErrForeign) {
			t.Errorf("ask of another's claim: %v, want ErrForeign", err)
		}
	}
	if err := r.Spend(ctx, b.src, a.raw(c)); !errors.Is(err, ledger.ErrForeign) {
		t.Errorf("another's record published: %v, want ErrForeign", err)
	}
	if _, err := r.Ask(ctx, b.src, ledger.Ask{Claim: ticket.ClaimID{Gate: b.src, Run: 1, Pos: 1}, Unit: c.Unit}); !errors.Is(err, ledger.ErrNoClaim) {
		t.Errorf("ask without the claim: %v, want ErrNoClaim", err)
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("refused messages changed %v", d)
	}
	if s, err := r.Stats(ctx); err != nil || s.Refused != 4 {
		t.Errorf("%d refused, %v, want 4", s.Refused, err)
	}
}

// Two claims at once on one ticket: one winner each, and the loser cites it.
func TestTwoAtOnce(t *testing.T) {
	r := newRig(t)
	gates := []*gate{newGate("a", r.clock), newGate("bb", r.clock)}
	answers := make([][rounds]ledger.AskReply, len(gates))
	claims := make([][rounds]ticket.Claim, len(gates))
	for i, g := range gates {
		for n := range rounds {
			claims[i][n] = g.claim(unit(n))
		}
	}
	var wg sync.WaitGroup
	for i, g := range gates {
		for lane := range 8 { // several rounds under way at once
			wg.Go(func() {
				for n := lane; n < rounds; n += 8 {
					out, err := r.Ask(context.Background(), g.src, ledger.Ask{
						Claim: claims[i][n].ID, Unit: unit(n), Records: [][]byte{g.raw(claims[i][n])}})
					if err != nil {
						t.Error(err)
						return
					}
					answers[i][n] = out
				}
			})
		}
	}
	wg.Wait()
	won := [2]int{}
	for n := range rounds {
		w, l := 0, 1
		if answers[0][n].Answer != ticket.AnswerFirst {
			w, l = 1, 0
		}
		win, lose := answers[w][n], answers[l][n]
		if win.Answer != ticket.AnswerFirst || lose.Answer != ticket.AnswerInProgress {
			t.Fatalf("round %d: %q and %q, want one first", n, win.Answer, lose.Answer)
		}
		c := claims[w][n]
		if lose.First == nil || lose.First.Claim != c.ID || lose.First.Place != c.Place || lose.First.Time != c.Claimed.Wall {
			t.Fatalf("round %d: the loser cites %+v, want %s", n, lose.First, c.ID)
		}
		won[w]++
	}
	t.Logf("won %v", won)
}
