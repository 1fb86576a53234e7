package gatestore

import (
	"context"
	"slices"
	"testing"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// An earlier run of this device comes back with gaps: what stands beyond them
// counts at once; given up, they are read as empty, and a record that turns up all
// the same takes the place of the empty one.
func TestGapsOfAnEarlierRunAreGivenUp(t *testing.T) {
	ctx := context.Background()
	old := open(t, kv.NewMem(), "a")
	var log []ticket.Record
	for n := range byte(5) {
		m := claim(t, old, unit(n))
		log = append(log, m.Record)
	}
	st, run := open(t, kv.NewMem(), "a"), old.Stream()
	learn(t, st, log[1], log[2])
	if tops, err := st.Tops("a"); err != nil || !slices.Contains(tops, ticket.StreamPos{Source: "a", Run: run.Run, Pos: 3}) {
		t.Fatalf("tops %v, %v", tops, err)
	}
	if recs, from, err := st.Beyond(run, 0, 10, 1<<20); err != nil || from != 2 || len(recs) != 2 {
		t.Fatalf("beyond 0: %d records from %d, %v", len(recs), from, err)
	}
	if recs, from, err := st.Beyond(run, 2, 10, 1<<20); err != nil || from != 3 || len(recs) != 1 {
		t.Fatalf("beyond 2: %d records from %d, %v", len(recs), from, err)
	}
	if n, err := st.GiveUp(ctx, st.Stream(), 9); err != nil || n != 0 {
		t.Errorf("of the present run %d positions were given up, %v", n, err)
	}
	if n, err := st.GiveUp(ctx, run, 5); err != nil || n != 3 {
		t.Errorf("%d positions were given up, %v, want 1, 4 and 5", n, err)
	}
	recs, from, _, head, err := st.Read(run, 0, 10, 1<<20)
	if err != nil || from != 1 || head != 5 || len(recs) != 5 || len(recs[0]) != 0 || len(recs[1]) == 0 || len(recs[4]) != 0 {
		t.Errorf("read %d records from %d of %d, %v", len(recs), from, head, err)
	}
	if out := learn(t, st, log[3]); len(out.Forked) != 0 || len(out.Units) != 1 {
		t.Errorf("a record in an empty one's place: %+v", out)
	}
	if c, ok, err := st.Find(log[3].Claim.ID); err != nil || !ok || c.Unit != unit(3) {
		t.Errorf("the record that turned up: %+v, %v, %v", c, ok, err)
	}
	if err := st.Check(); err != nil {
		t.Error(err)
	}
}

// A claim of which only a later revision came back is found, and ended, all the same.
func TestClaimWithoutItsFirstRevision(t *testing.T) {
	old, st := open(t, kv.NewMem(), "a"), open(t, kv.NewMem(), "a")
	m := claim(t, old, unit(1))
	rec, ok, err := old.Revise(context.Background(), m.Record.Claim.ID, func(c *ticket.Claim) bool { c.Alone = true; return true })
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if out := learn(t, st, rec); len(out.Own) != 1 {
		t.Fatalf("learned %+v", out)
	}
	if got := end(t, st, rec.Claim.ID, ticket.Presumed); got.Claim.Rev != 2 || got.Claim.Unit != unit(1) {
		t.Errorf("ended as %+v", got.Claim)
	}
	if _, ok, err := st.Find(ticket.ClaimID{Gate: "a", Run: 7, Pos: 7}); ok || err != nil {
		t.Errorf("a claim that is nowhere: %v, %v", ok, err)
	}
	if err := st.Check(); err != nil {
		t.Error(err)
	}
}

// Whoever wrote records or is enrolled may hold some, but for ledgers, brokers and
// those that were given up or replaced.
func TestWhoMayHoldRecords(t *testing.T) {
	st, other := open(t, kv.NewMem(), "a"), open(t, kv.NewMem(), "b")
	gone := open(t, kv.NewMem(), "gone")
	learn(t, st, claim(t, other, unit(1)).Record, claim(t, gone, unit(2)).Record)
	for i, g := range []ticket.FeedGate{
		{Device: "silent", Role: "gate", State: "enrolled"}, {Device: "gone", Role: "gate", State: "lost"},
		{Device: "hub", Role: "broker", State: "enrolled"}, {Device: "a", Role: "gate", State: "enrolled"},
	} {
		learn(t, st, feed(uint64(i+1), 1, ticket.GateSubject(g.Device), ticket.Feed{Gate: &g}))
	}
	got, err := st.Devices()
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []ticket.Source{"b", "silent"}) {
		t.Errorf("%v, %v", got, err)
	}
}
