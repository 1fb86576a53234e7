package ledger_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

func TestPruningWaitsForTheGrace(t *testing.T) {
	r := newRig(t)
	g := newGate("a", r.clock)
	r.ask(g, g.claim(unit(1)))
	ctx := context.Background()
	if err := r.CloseEvent(ctx, event); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		r.clock.add(14*24*time.Hour - time.Second)
		if err := r.Prune(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Ticket(ctx, ticket.FormatA1, unit(1).Ticket); err != nil || (len(got.Claims) == 0) != want {
			t.Errorf("%d claims, %v, want them gone: %t", len(got.Claims), err, want)
		}
	}
}

// season is a ledger with two events and three enrolled gates, of which two have
// sent all they have of both.
func season(t *testing.T) (r *rig, a, b *gate, kept ticket.Claim) {
	r = newRig(t)
	for _, k := range []string{"UA", "UBB", "UCCC"} {
		if _, err := r.EnrolGate(t.Context(), "place "+k, k, ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
	}
	p := programme()
	other := p.Events[0]
	other.ID = "later"
	p.Events = append(p.Events, other)
	if _, err := r.PushProgramme(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	a, b, _, _ = double(r, unit(1))
	r.ask(a, a.claim(unit(2)))
	later := unit(3)
	later.Event = "later"
	kept = a.claim(later)
	a.revise(a.claim(unit(4)), ticket.Admitted)
	r.upload(a, 1)
	r.upload(b, 1)
	return r, a, b, kept
}

func (r *rig) pruned() bool {
	r.t.Helper()
	if err := r.Prune(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	s, err := r.Stats(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Events[0].Pruned
}

// over closes the event, lets the grace pass, and lets the two gates say hello.
func (r *rig) over(a, b *gate) {
	r.t.Helper()
	if err := r.CloseEvent(context.Background(), event); err != nil {
		r.t.Fatal(err)
	}
	r.clock.add(15 * 24 * time.Hour)
	r.high(a)
	r.high(b)
}

func TestPruningWaitsForEverybody(t *testing.T) {
	r, a, b, _ := season(t)
	r.clock.add(400 * 24 * time.Hour)
	if r.pruned() {
		t.Fatal("an open event was pruned")
	}
	r.over(a, b)
	if r.pruned() {
		t.Fatal("pruned with a gate unheard")
	}
	b.claim(unit(5)) // known to the ledger by its hello only
	r.high(b)
	if _, err := r.LostGate(t.Context(), "ccc"); err != nil {
		t.Fatal(err)
	}
	if r.pruned() {
		t.Fatal("pruned with a record outstanding")
	}
	r.upload(b, 1)
	if !r.pruned() {
		t.Fatal("not pruned with everything in and the third gate lost")
	}
}

func TestPruningTakesTheEventAndNothingElse(t *testing.T) {
	r, a, b, kept := season(t)
	want := tidy(r.conflicts())
	r.over(a, b)
	if _, err := r.LostGate(t.Context(), "ccc"); err != nil || !r.pruned() {
		t.Fatal("not pruned", err)
	}
	if got := tidy(r.conflicts()); len(got) != 1 || got[0].ID != want[0].ID {
		t.Errorf("conflicts %+v after pruning, want them kept", got)
	}
	keeps := []string{"event/", "subject/", "conflict", "record/ledger", "alarm"}
	for k := range r.dump() {
		of := func(prefix string) bool { return strings.HasPrefix(k, prefix) }
		if strings.Contains(k, event) && !slices.ContainsFunc(keeps, of) {
			t.Errorf("left of the event: %q", k)
		}
	}
	out, err := r.Read(t.Context(), ticket.Stream{Source: a.src, Run: a.run}, 0, 100, 1<<20)
	if err != nil || out.Base != kept.ID.Pos-1 || int(out.Head) != len(a.log) || len(out.Records) != len(a.log)-int(out.Base) {
		t.Errorf("run of a: base %d head %d with %d records, %v; want all from the other event's claim on", out.Base, out.Head, len(out.Records), err)
	}
	before := r.dump()
	r.upload(a, 1)
	if d := ledgertest.Diff(before, r.dump()); d != nil {
		t.Errorf("repeats after pruning changed %v", d)
	}
}

// A box turns up late: receipted, counted, shown, and nothing else.
func TestLateRecordsGoToTheLateList(t *testing.T) {
	r, a, b, _ := season(t)
	r.over(a, b)
	if _, err := r.LostGate(t.Context(), "ccc"); err != nil || !r.pruned() {
		t.Fatal("not pruned", err)
	}
	before := r.dump()
	box := newGate("box", r.clock)
	late := box.revise(box.claim(unit(1)), ticket.Admitted)
	if got := r.upload(box, 1); got.High[0].Pos != 2 {
		t.Errorf("late records left the high-water at %d, want 2", got.High[0].Pos)
	}
	r.want(box, late, ticket.AnswerUnknown)
	if s, err := r.Stats(t.Context()); err != nil || s.Events[0].Late != 2 {
		t.Errorf("late records counted in %+v, %v, want 2", s.Events[0], err)
	}
	list, _, err := r.Late(t.Context(), "", 9)
	if err != nil || len(list) != 2 || list[1].Claim != late.ID.String() || list[1].State != ticket.Admitted || list[1].Ticket != unit(1).Ticket.String() {
		t.Errorf("late list %+v, %v", list, err)
	}
	may := []string{`"record`, `"late`, `"stream`, `"event`}
	for _, k := range ledgertest.Diff(before, r.dump()) {
		if !slices.ContainsFunc(may, func(p string) bool { return strings.HasPrefix(k, p) }) {
			t.Errorf("late records changed %s", k)
		}
	}
	again := r.dump()
	r.upload(box, 1)
	if d := ledgertest.Diff(again, r.dump()); d != nil {
		t.Errorf("repeats of late records changed %v", d)
	}
}
