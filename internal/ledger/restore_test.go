package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// heldFeeds is a gate's copy of what the ledgers published.
type heldFeeds map[ticket.Stream][]ticket.Record

func (h heldFeeds) follow(l *ledger.Ledger) {
	for {
		select {
		case rec := <-l.Feeds():
			h[rec.Stream()] = append(h[rec.Stream()], rec)
		default:
			return
		}
	}
}

func (h heldFeeds) cursors() (out []ticket.StreamPos) {
	for s, recs := range h {
		out = append(out, ticket.StreamPos{Source: s.Source, Run: s.Run, Pos: uint64(len(recs))})
	}
	return out
}

// giveBack answers a restored ledger's fetches.
func (h heldFeeds) giveBack(t *testing.T, r *rig) {
	lost, err := r.LostFeeds(context.Background(), h.cursors())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range lost {
		var in []ticket.Arrival
		for _, rec := range h[p.Stream()][p.Pos:] {
			raw, err := rec.Encode()
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, ticket.Arrival{Stream: p.Stream(), Pos: rec.Pos, Raw: raw, Record: &rec})
		}
		if err := r.Learn(context.Background(), in); err != nil {
			t.Fatal(err)
		}
	}
}

// heal lets a gate say hello to a restored ledger, give its feeds back and upload
// from the high-water that the ledger has now.
func heal(t *testing.T, r *rig, g *gate, feeds heldFeeds) {
	t.Helper()
	out, err := r.Hello(context.Background(), g.src, ledger.Hello{
		Place: string(g.src), Cursors: feeds.cursors(),
		Runs: []ticket.StreamPos{{Source: g.src, Run: g.run, Pos: uint64(len(g.log))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	feeds.giveBack(t, r)
	from := 1
	for _, p := range out.High {
		from = int(p.Pos) + 1
	}
	if from <= len(g.log) {
		r.upload(g, from)
	}
}

// A ledger put back to any earlier state is level again once gates said hello,
// uploaded from its high-waters and gave its feeds back.
func TestARestoredLedgerConverges(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	feeds := heldFeeds{}
	a, b := newGate("a", r.clock), newGate("bb", r.clock)
	var backups []map[string][]byte
	backup := func() { feeds.follow(r.Ledger); backups = append(backups, r.dump()) }

	backup()
	ca := a.claim(unit(1))
	r.want(a, ca, ticket.AnswerFirst)
	backup()
	a.revise(ca, ticket.Admitted)
	r.upload(a, 1)
	b.revise(b.claim(unit(1)), ticket.Admitted)
	r.upload(b, 1)
	backup()
	if err := r.Revoke(ctx, ticket.FormatA1, unit(2).Ticket, true, "ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.EnrolGate(ctx, "North", "UA", ledger.RoleGate); err != nil {
		t.Fatal(err)
	}
	c3 := a.revise(a.claim(unit(3)), ticket.Presumed)
	r.upload(a, 3)
	if err := r.Release(ctx, c3.ID, "ops", ""); err != nil {
		t.Fatal(err)
	}
	r.push(0)
	backup()
	want := tidy(r.conflicts())

	for i, old := range backups {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			mem := kv.NewMem()
			ledgertest.Load(t, mem, old)
			r2 := openRig(t, mem, &clock{t: begin.Add(time.Minute)}, r.runs)
			for _, g := range []*gate{a, b} {
				heal(t, r2, g, feeds)
			}
			if got := tidy(r2.conflicts()); !reflect.DeepEqual(got, want) {
				t.Errorf("conflicts %+v, want %+v", got, want)
			}
			if n := len(r2.alarms(ledger.AlarmRestored)); (n == 1) != (i < 3) {
				t.Errorf("%d alarms of a restore from backup %d of %d", n, i, len(backups))
			}
			for s, recs := range feeds {
				out, err := r2.Read(ctx, s, 0, 100, 1<<20)
				if err != nil || int(out.Head) != len(recs) {
					t.Errorf("run %s of the feeds ends at %d, %v, want %d", s.Run, out.Head, err, len(recs))
				}
			}
			late := newGate("late", r2.clock)
			r2.want(late, late.claim(unit(1)), ticket.AnswerSeen)
			r2.want(late, late.claim(unit(2)), ticket.AnswerRevoked)
			r2.want(late, late.claim(unit(3)), ticket.AnswerFirst) // it was released
			if p, err := r2.Programme(ctx); err != nil || p.Version != 2 {
				t.Errorf("programme %d, %v, want 2", p.Version, err)
			}
			if g, _, err := r2.GateList(ctx); err != nil || len(g) != 1 {
				t.Errorf("gates %v, %v, want the one enrolled", g, err)
			}
		})
	}
}

// tidy takes off what may differ after a restore: when it was announced.
func tidy(c []ledger.Conflict) []ledger.Conflict {
	for i := range c {
		c[i].Announced, c[i].Outage = "", ""
	}
	return sortConflicts(c)
}

// What is written after a restore stands above what was lost and comes back.
func TestAfterARestoreTheNewWordCounts(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	feeds := heldFeeds{}
	feeds.follow(r.Ledger)
	old := r.dump()
	for _, revoked := range []bool{true, false, true} {
		if err := r.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, revoked, "ops"); err != nil {
			t.Fatal(err)
		}
	}
	r.push(0)
	feeds.follow(r.Ledger)

	mem := kv.NewMem()
	ledgertest.Load(t, mem, old)
	r2 := openRig(t, mem, &clock{t: begin.Add(time.Minute)}, r.runs)
	for _, revoked := range []bool{true, false} {
		if err := r2.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, revoked, "ops"); err != nil {
			t.Fatal(err)
		}
	}
	p := programme()
	p.Events[0].Name = "new"
	if v, err := r2.PushProgramme(ctx, p); err != nil || v != 2 {
		t.Fatal(v, err)
	}
	for range 2 {
		feeds.giveBack(t, r2)
	}
	if got, err := r2.Ticket(ctx, ticket.FormatA1, unit(1).Ticket); err != nil || got.Revoked {
		t.Errorf("revoked %t, %v, want the later word: not revoked", got.Revoked, err)
	}
	if p, err := r2.Programme(ctx); err != nil || p.Version != 3 || p.Events[0].Name != "new" {
		t.Errorf("programme %d %q, %v, want the new one above the lost one of its version", p.Version, p.Events[0].Name, err)
	}
	raw, err := r2.Read(ctx, r2.Stream(), 0, 10, 1<<20)
	if err != nil || raw.Head != 4 {
		t.Errorf("%d entries of its own, %v, want two revocations and two programmes", raw.Head, err)
	}
}

func TestLearnTakesWhatWasLostAndNothingForged(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	g := newGate("a", r.clock)
	c := g.claim(unit(1))
	before := r.dump()
	for _, s := range []ticket.Stream{r.Stream(), {Run: 1}} {
		if err := r.Learn(ctx, []ticket.Arrival{{Stream: s, Pos: 1, Raw: g.raw(c)}}); !errors.Is(err, ledger.ErrForeign) {
			t.Errorf("learn records of %q: %v, want ErrForeign", s.Source, err)
		}
	}
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("refused records changed %v", d)
	}
	// A gate that is gone: a peer has its record, and one that does not read.
	s := ticket.Stream{Source: g.src, Run: g.run}
	g.revise(c, ticket.Admitted)
	in := []ticket.Arrival{{Stream: s, Pos: 1, Raw: g.log[0]}, {Stream: s, Pos: 2, Raw: []byte("junk")}}
	if err := r.Learn(ctx, in); err != nil {
		t.Fatal(err)
	}
	if got := r.upload(g, 1); got.High[0].Pos != 2 {
		t.Errorf("high-water %d, want 2", got.High[0].Pos)
	}
	if got, err := r.Ticket(ctx, ticket.FormatA1, unit(1).Ticket); err != nil || got.Claims[0].State != ticket.Admitted {
		t.Errorf("ticket %+v, %v, want the gate's own word to replace what did not read", got, err)
	}
	forged, err := ticket.Record{Source: "ledger/b", Run: 1, Pos: 1, Feed: &ticket.Feed{
		Subject: ticket.ProgrammeSubject, Version: 9, Programme: &ticket.FeedProgramme{Signed: []byte("no signature")},
	}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Learn(ctx, []ticket.Arrival{{Stream: ticket.Stream{Source: "ledger/b", Run: 1}, Pos: 1, Raw: forged}}); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Programme(ctx); err != nil || p.Version != 1 {
		t.Errorf("programme %d, %v, want the signed one", p.Version, err)
	}
}
