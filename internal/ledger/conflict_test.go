package ledger_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// double lets two gates that were cut off admit the same ticket.
func double(r *rig, u ticket.Unit) (a, b *gate, ca, cb ticket.Claim) {
	a, b = newGate("a", r.clock), newGate("bb", r.clock)
	ca = a.claim(u)
	r.clock.add(5 * time.Second)
	cb = b.claim(u)
	return a, b, a.revise(ca, ticket.Admitted), b.revise(cb, ticket.Admitted)
}

func TestAConflictIsAnnouncedOnceAndAmended(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a, b, ca, cb := double(r, unit(1))
	r.upload(b, 1)
	if r.announced() != 0 || len(r.conflicts()) != 0 {
		t.Fatal("one admission is no conflict")
	}
	r.upload(a, 1)
	got := r.conflicts()
	if len(got) != 1 || r.announced() != 1 {
		t.Fatalf("%d conflicts, announced %d times, want one once", len(got), r.announced())
	}
	c := got[0]
	if c.ID != ticket.ConflictID(unit(1)) || c.First.Claim != ca.ID.String() || len(c.Others) != 1 ||
		c.Others[0].Claim != cb.ID.String() || c.State != ledger.ConflictOpen || !c.Certain || !c.Ordered ||
		c.Announced != r.clock.now().Format(ticket.TimeFormat) {
		t.Errorf("conflict %+v", c)
	}

	r.clock.add(time.Minute)
	for range 2 {
		ack, err := r.Acknowledge(ctx, c.ID, "looked into it", "ops")
		if err != nil || ack.State != ledger.ConflictAcknowledged || ack.Note != "looked into it" || ack.Announced != c.Announced {
			t.Fatalf("acknowledged %+v, %v", ack, err)
		}
	}
	third := newGate("ccc", r.clock)
	cc := third.revise(third.claim(unit(1)), ticket.Presumed)
	r.upload(third, 1)
	if got, _ := r.Conflict(ctx, c.ID); got.State != ledger.ConflictOpen || got.Certain || len(got.Others) != 2 {
		t.Errorf("a third claim left the conflict %+v, want it open again and possible", got)
	}
	third.revise(cc, ticket.Annulled)
	r.upload(third, 1)
	if got, _ := r.Conflict(ctx, c.ID); got.State != ledger.ConflictAcknowledged || len(got.Others) != 1 {
		t.Errorf("without the third claim the conflict is %+v, want it acknowledged as before", got)
	}
	b.revise(cb, ticket.Annulled)
	r.upload(b, 1)
	if got, _ := r.Conflict(ctx, c.ID); got.State != ledger.ConflictWithdrawn {
		t.Errorf("after the annul the conflict is %+v, want it withdrawn", got)
	}
	if s, _ := r.Stats(ctx); s.Events[0].Conflicts != 0 || s.Events[0].Admitted != 1 {
		t.Errorf("counts %+v, want none and one admitted", s.Events[0])
	}
	if r.announced() != 1 {
		t.Errorf("announced %d times, want once", r.announced())
	}
}

func TestReleaseThenLateResult(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	ca := a.claim(unit(1))
	r.want(a, ca, ticket.AnswerFirst)
	r.clock.add(time.Minute) // the gate is gone with its claim open
	r.want(b, b.claim(unit(1)), ticket.AnswerSeen)
	if err := r.Release(ctx, ca.ID, "supervisor", "the box lost power"); err != nil {
		t.Fatal(err)
	}
	if err := r.Release(ctx, ca.ID, "supervisor", "again"); err == nil {
		t.Error("a claim that does not hold was released")
	}
	cb := b.claim(unit(1), ticket.Ref{Claim: ca.ID, Rev: 0})
	got := r.want(b, cb, ticket.AnswerFirst)
	if len(got.Records) < 2 {
		t.Errorf("%d records with the answer, want the released claim and its release", len(got.Records))
	}
	b.revise(cb, ticket.Admitted)
	r.upload(b, 1)
	a.revise(ca, ticket.Admitted) // it had gone through after all
	r.upload(a, 1)
	if c := r.conflicts(); len(c) != 1 || c[0].First.Claim != ca.ID.String() {
		t.Errorf("conflicts %+v, want one with the late result first", c)
	}
}

func TestAnnulBeforeItsClaim(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	ca := a.claim(unit(1))
	ann := a.revise(ca, ticket.Annulled)
	if err := r.Spend(context.Background(), a.src, a.log[1]); err != nil {
		t.Fatal(err)
	}
	cb := b.claim(unit(1), ticket.Ref{Claim: ann.ID, Rev: ann.Rev})
	r.want(b, cb, ticket.AnswerFirst)
	r.upload(a, 1) // the claim itself comes last
	b.revise(cb, ticket.Admitted)
	r.upload(b, 1)
	if c := r.conflicts(); len(c) != 0 {
		t.Errorf("conflicts %+v, want none: the annul stands", c)
	}
	if got, _ := r.Ticket(context.Background(), ticket.FormatA1, unit(1).Ticket); len(got.Claims) != 2 || got.Claims[0].State != ticket.Annulled {
		t.Errorf("ticket %+v, want the annulled and the admitted claim", got)
	}
}

func TestARowWhoseHolderDoesNotHoldIsTakenOver(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	ca := a.claim(unit(1))
	r.want(a, ca, ticket.AnswerFirst)
	for i, s := range []ticket.State{ticket.Refused, ticket.Annulled} {
		a.revise(ca, s)
		r.upload(a, 1)
		cb := b.claim(unit(1))
		r.want(b, cb, ticket.AnswerFirst)
		ledgertest.Check(t, r.store)
		ca, a, b = cb, b, a
		_ = i
	}
}

// The same records give the same conflicts, the same first and one announcement,
// whatever their order, however they come and however often.
func TestAnyOrderGivesTheSameConflicts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &clock{t: begin}
		gates := []*gate{newGate("a", c), newGate("bb", c), newGate("ccc", c)}
		open := make([][]ticket.Claim, len(gates))
		for range rapid.IntRange(2, 24).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(gates)-1).Draw(rt, "gate")
			g := gates[i]
			c.add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "pass")) * 8 * time.Millisecond)
			g.class = ticket.Class(rapid.IntRange(0, 4).Draw(rt, "class") / 4)
			if n := len(open[i]); n > 0 && rapid.Bool().Draw(rt, "revise") {
				k := rapid.IntRange(0, n-1).Draw(rt, "claim")
				s := rapid.SampledFrom([]ticket.State{ticket.Refused, ticket.Annulled, ticket.Presumed, ticket.Admitted, ticket.Admitted}).Draw(rt, "state")
				open[i][k] = g.revise(open[i][k], s)
				continue
			}
			u := unit(rapid.IntRange(1, 2).Draw(rt, "unit"))
			var after []ticket.Ref
			if j := rapid.IntRange(0, len(gates)-1).Draw(rt, "other"); len(open[j]) > 0 && rapid.IntRange(0, 3).Draw(rt, "after") == 0 {
				other := open[j][len(open[j])-1]
				after = append(after, ticket.Ref{Claim: other.ID, Rev: other.Rev})
			}
			open[i] = append(open[i], g.claim(u, after...))
		}
		type item struct {
			g   *gate
			pos int
		}
		var items []item
		for _, g := range gates {
			for pos := range g.log {
				items = append(items, item{g, pos})
			}
		}
		play := func(label string) []ledger.Conflict {
			r := openRig(t, kv.NewMem(), &clock{t: begin.Add(time.Hour)}, new(uint64))
			order := rapid.Permutation(items).Draw(rt, label)
			again := rapid.SliceOfN(rapid.IntRange(0, len(items)-1), 0, 5).Draw(rt, label+" again")
			for _, k := range again {
				order = append(order, order[k])
			}
			for _, it := range order {
				if err := r.Spend(context.Background(), it.g.src, it.g.log[it.pos]); err != nil {
					rt.Fatal(err)
				}
			}
			ledgertest.Check(rt2{rt, t}, r.store)
			var standing []ledger.Conflict
			all := r.conflicts()
			for _, c := range all {
				if c.Announced, c.Outage = "", ""; c.State != ledger.ConflictWithdrawn {
					standing = append(standing, c)
				}
			}
			if r.announced() != len(all) {
				rt.Fatalf("%d conflicts were announced %d times", len(all), r.announced())
			}
			return sortConflicts(standing)
		}
		one, two := play("one"), play("two")
		if !reflect.DeepEqual(one, two) {
			rt.Fatalf("one order gives\n%+v\nanother\n%+v", one, two)
		}
	})
}

// rt2 lets Check fail a rapid test.
type rt2 struct {
	rt *rapid.T
	testing.TB
}

func (r rt2) Errorf(format string, args ...any) { r.rt.Fatal(fmt.Sprintf(format, args...)) }
func (r rt2) Fatalf(format string, args ...any) { r.rt.Fatal(fmt.Sprintf(format, args...)) }
