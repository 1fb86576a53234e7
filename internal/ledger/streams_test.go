package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// fill lets a gate write n claims that were admitted.
func fill(g *gate, n int) {
	for i := range n {
		g.revise(g.claim(unit(100+i)), ticket.Admitted)
	}
}

func TestUploadsAreReceiptedOnceAndInOrder(t *testing.T) {
	r := newRig(t)
	g := newGate("a", r.clock)
	fill(g, 300) // more than one transaction takes
	got := r.upload(g, 1)
	if len(got.High) != 1 || got.High[0].Pos != 600 || got.SetAside != nil {
		t.Fatalf("receipt %+v, want high-water 600", got)
	}
	before := r.dump()
	for _, from := range []int{1, 300, 600} {
		if got := r.upload(g, from); got.High[0].Pos != 600 {
			t.Errorf("receipt of a repeat %+v, want high-water 600", got)
		}
	}
	for _, raw := range g.log[:10] {
		if err := r.Spend(context.Background(), g.src, raw); err != nil {
			t.Error(err)
		}
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("repeats changed %v", d)
	}
}

func TestRecordsBeyondAGapCountAtOnceAndTheCursorWaits(t *testing.T) {
	r := newRig(t)
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	fill(a, 2)
	c := a.claim(unit(1)) // position 5
	r.want(a, c, ticket.AnswerFirst)
	if high := r.high(a); high != 0 {
		t.Errorf("high-water %d with a gap before position 5, want 0", high)
	}
	r.want(b, b.claim(unit(1)), ticket.AnswerInProgress)
	a.revise(c, ticket.Admitted)
	if err := r.Spend(context.Background(), a.src, a.log[5]); err != nil {
		t.Fatal(err)
	}
	r.want(b, b.claim(unit(1)), ticket.AnswerSeen)
	before := r.dump()
	if err := r.Spend(context.Background(), a.src, a.log[5]); err != nil {
		t.Fatal(err)
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("a repeat beyond the gap changed %v", d)
	}
	out, err := r.Upload(context.Background(), a.src, ledger.Upload{Run: a.run, From: 1, Records: a.log[:4]})
	if err != nil || out.High[0].Pos != 6 {
		t.Errorf("high-water %v, %v after the gap was filled, want 6", out.High, err)
	}
}

func TestABadRecordIsSetAsideAndPassed(t *testing.T) {
	r := newRig(t)
	g, other := newGate("a", r.clock), newGate("bb", r.clock)
	fill(g, 4)
	foreign := other.raw(other.claim(unit(7)))
	good := slices.Clone(g.log)
	g.log[1] = []byte("junk")
	g.log[3] = nil          // the gate could not read it either
	g.log[4] = foreign      // another gate's claim
	g.log[5] = g.log[6]     // another position's record
	g.log[7] = g.log[7][:9] // cut off
	got := r.upload(g, 1)
	if want := []uint64{2, 4, 5, 6, 8}; !slices.Equal(got.SetAside, want) || got.High[0].Pos != 8 {
		t.Fatalf("set aside %v with high-water %d, want %v and 8", got.SetAside, got.High[0].Pos, want)
	}
	before := r.dump()
	if again := r.upload(g, 1); !slices.Equal(again.SetAside, got.SetAside) {
		t.Errorf("the repeat says %v, want %v", again.SetAside, got.SetAside)
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("the repeat changed %v", d)
	}
	out, err := r.Read(context.Background(), ticket.Stream{Source: g.src, Run: g.run}, 0, 100, 1<<20)
	if err != nil || len(out.Records) != 8 || string(out.Records[1]) != "junk" || len(out.Records[3]) != 0 {
		t.Errorf("read %d records, %v, want all 8 as they came", len(out.Records), err)
	}
	if s, _ := r.Stats(context.Background()); s.SetAside != 5 {
		t.Errorf("%d set aside, want 5", s.SetAside)
	}
	g.log = good // the gate was mended: what reads takes the place of what did not
	r.upload(g, 1)
	if n := len(r.alarms(ledger.AlarmForked)); n != 4 {
		t.Errorf("%d alarms for positions with two contents, want 4: what the gate could not read before was none", n)
	}
}

// An older ledger could not read a record that this one can: the same bytes again
// are no second content.
func TestARecordThatReadsAfterAnUpgradeIsNoFork(t *testing.T) {
	r := newRig(t)
	g := newGate("a", r.clock)
	s := ticket.Stream{Source: g.src, Run: g.run}
	c := g.claim(unit(1))
	err := r.store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.PutRecord(s, 1, ledger.Kept{Raw: g.raw(c), Aside: true})
		return errors.Join(err, tx.PutStream(s, ledger.StreamRow{High: 1, Top: 1, Head: 1, Aside: 1}))
	})
	if err != nil {
		t.Fatal(err)
	}
	g.revise(c, ticket.Admitted)
	for range 2 {
		if got := r.upload(g, 1); len(got.SetAside) > 0 {
			t.Errorf("set aside %v, want none", got.SetAside)
		}
	}
	if all := r.alarms(ledger.AlarmForked); len(all) > 0 {
		t.Errorf("alarms %+v, want none", all)
	}
	gates, err := r.Gates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range gates {
		if x.SetAside != 0 {
			t.Errorf("%d records of %s set aside, want none", x.SetAside, x.Device)
		}
	}
	if got := r.want(g, g.claim(unit(1)), ticket.AnswerSeen); got.First.Claim != c.ID {
		t.Errorf("cites %s, want the claim that was set aside", got.First.Claim)
	}
}

func TestReadGivesAnyRunWithoutGaps(t *testing.T) {
	r := newRig(t)
	g := newGate("a", r.clock)
	fill(g, 5)
	r.upload(g, 1)
	ctx, s := context.Background(), ticket.Stream{Source: g.src, Run: g.run}
	for _, c := range []struct {
		after      uint64
		limit, max int
		want       int
	}{{0, 100, 1 << 20, 10}, {4, 3, 1 << 20, 3}, {10, 5, 1 << 20, 0}, {0, 5, 1, 1}, {99, 5, 1 << 20, 0}} {
		out, err := r.Read(ctx, s, c.after, c.limit, c.max)
		if err != nil || len(out.Records) != c.want || out.Head != 10 || out.From != c.after+1 {
			t.Errorf("read after %d: %d records from %d, head %d, %v; want %d", c.after, len(out.Records), out.From, out.Head, err, c.want)
		}
		for i, raw := range out.Records {
			if string(raw) != string(g.log[int(c.after)+i]) {
				t.Errorf("record %d after %d is another", i, c.after)
			}
		}
	}
	own, err := r.Read(ctx, r.Stream(), 0, 10, 1<<20)
	if err != nil || len(own.Records) != 1 {
		t.Errorf("own feeds: %d, %v, want the programme", len(own.Records), err)
	}
	held, err := r.Read(ctx, ticket.Stream{}, 0, 10, 1<<20)
	if err != nil || len(held.Held) != 2 {
		t.Errorf("runs held %v, %v, want the gate's and the ledger's", held.Held, err)
	}
}

func TestHelloMovesToABaseAndCountsTheLost(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	g := newGate("a", r.clock)
	fill(g, 10)
	c := ticket.Stream{Source: g.src, Run: g.run}
	if err := r.Spend(ctx, g.src, g.log[9]); err != nil { // position 10, beyond a gap
		t.Fatal(err)
	}
	hello := ledger.Hello{Place: "North", Runs: []ticket.StreamPos{{Source: c.Source, Run: c.Run, Pos: 20, Base: 9}}}
	out, err := r.Hello(ctx, g.src, hello)
	if err != nil || len(out.High) != 1 || out.High[0].Pos != 10 {
		t.Fatalf("hello: %+v, %v, want high-water 10: the base, and the record after it", out, err)
	}
	if len(out.Heads) != 1 || out.Heads[0].Stream() != r.Stream() {
		t.Errorf("heads of others %+v, want the ledger's own feeds", out.Heads)
	}
	before := r.dump()
	r.clock.add(30 * time.Second)
	if _, err := r.Hello(ctx, g.src, hello); err != nil {
		t.Fatal(err)
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("the same hello changed %v", d)
	}
	r.upload(g, 11)
	r.Heard(g.src, ledger.Head{Run: g.run, Pos: 23, Place: "North", Link: "up", Time: r.clock.now().UnixNano()})
	gates, err := r.Gates(ctx)
	if err != nil || len(gates) != 1 || gates[0].Lost != 9 || gates[0].Outstanding != 3 || gates[0].Place != "North" {
		t.Errorf("gates %+v, %v, want 9 lost and 3 outstanding", gates, err)
	}
	bad := ledger.Hello{Runs: []ticket.StreamPos{{Source: "bb", Run: 1, Pos: 5}}}
	if _, err := r.Hello(ctx, g.src, bad); !errors.Is(err, ledger.ErrForeign) {
		t.Errorf("hello for another's run: %v, want ErrForeign", err)
	}
}

// One position came with two contents of one claim: the same one stays, whichever
// came first, with all that follows from it.
func TestOfTwoContentsTheSameOneStays(t *testing.T) {
	for _, states := range [][2]ticket.State{{ticket.Annulled, ticket.Admitted}, {ticket.Admitted, ticket.Annulled}} {
		r := newRig(t)
		other := newGate("bb", r.clock)
		other.revise(other.claim(unit(1)), ticket.Admitted)
		r.upload(other, 1)
		g := newGate("a", r.clock)
		c := g.claim(unit(1))
		for _, s := range states {
			g.log = g.log[:1]
			g.revise(c, s)
			r.upload(g, 1)
			ledgertest.Check(t, r.store)
		}
		if got, err := r.Ticket(t.Context(), ticket.FormatA1, unit(1).Ticket); err != nil || got.Claims[0].State != ticket.Admitted {
			t.Errorf("%v: the claim stands %+v, %v, want admitted", states, got.Claims, err)
		}
		if c := r.conflicts(); len(c) != 1 || c[0].State != ledger.ConflictOpen {
			t.Errorf("%v: conflicts %+v, want one", states, c)
		}
		if n := len(r.alarms(ledger.AlarmForked)); n == 0 {
			t.Errorf("%v: no alarm", states)
		}
	}
}
