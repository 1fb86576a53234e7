package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

func TestAdmissionsThatRaiseAlarms(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	g := newGate("a", r.clock)
	early := g.revise(g.claim(unit(1)), ticket.Admitted) // offline, before the revocation
	r.clock.add(time.Minute)
	if err := r.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, true, "ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.EnrolGate(ctx, "North", "UA", ledger.RoleGate); err != nil {
		t.Fatal(err)
	}
	r.clock.add(time.Minute)
	r.upload(g, 1)
	if n := len(r.alarms(ledger.AlarmRevoked)); n != 0 {
		t.Errorf("%d alarms for an admission before the revocation", n)
	}
	late := g.revise(g.claim(unit(1)), ticket.Admitted)
	r.upload(g, 1)
	if got := r.alarms(ledger.AlarmRevoked); len(got) != 1 || got[0].Claim != late.ID.String() || got[0].Claim == early.ID.String() {
		t.Errorf("alarms %+v, want one for the later admission", got)
	}
	if _, err := r.SwapGate(ctx, "North", "UB"); err != nil {
		t.Fatal(err)
	}
	r.clock.add(time.Second)
	g.class = ticket.Untrusted
	g.revise(g.claim(unit(2)), ticket.Admitted)
	for range 2 {
		r.upload(g, 1)
	}
	if got := r.alarms(ledger.AlarmDistrust); len(got) != 1 || got[0].Ticket != unit(2).Ticket.String() {
		t.Errorf("alarms %+v, want one for what the replaced box admitted", got)
	}
	if s, _ := r.Stats(ctx); s.Events[0].Alarms != 2 {
		t.Errorf("%d alarms counted, want 2", s.Events[0].Alarms)
	}
}

func TestSensorsClocksAndForksRaiseAlarmsOnce(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	g := newGate("a", r.clock)
	g.write(ticket.Record{Event: &ticket.Event{Type: ticket.EventSensor, Place: "North", Detail: "suspect"}})
	g.write(ticket.Record{Event: &ticket.Event{Type: ticket.EventTailgate, Place: "North"}})
	wrong := &clock{t: r.clock.now().Add(-61 * time.Second)}
	late := newGate("slow", wrong)
	for i := range 3 {
		r.upload(g, 1)
		r.ask(late, late.claim(unit(i)))
	}
	if n := len(r.alarms(ledger.AlarmSensor)); n != 1 {
		t.Errorf("%d alarms of the sensor, want 1", n)
	}
	if n := len(r.alarms(ledger.AlarmSkew)); n != 1 {
		t.Errorf("%d alarms of the slow clock, want 1", n)
	}
	// Two stores of one gate went on from the same copy.
	c := g.revise(g.claim(unit(9)), ticket.Admitted)
	r.upload(g, 1)
	g2 := *g
	g2.log, g2.run = nil, 0xb0
	back := c
	back.Rev = 0
	g2.revise(back, ticket.Annulled)
	r.upload(&g2, 1)
	if n := len(r.alarms(ledger.AlarmForked)); n != 1 {
		t.Errorf("%d alarms of forked records, want 1", n)
	}
	if got, _ := r.Ticket(ctx, ticket.FormatA1, unit(9).Ticket); got.Claims[0].State != ticket.Admitted {
		t.Errorf("the forked claim stands %s, want admitted", got.Claims[0].State)
	}
}

// alive runs a ledger in a synctest bubble, on a clock that is the bubble's.
func alive(t *testing.T, mem *kv.Mem) (*rig, func() error) {
	r := &rig{t: t, mem: mem, store: ledgerstore.New(mem), clock: nil, log: nil}
	l, err := ledger.New(r.store, ledger.Options{Process: "a", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key(),
		DeviceID: func(k string) (ticket.Source, error) { return ticket.Source(strings.ToLower(k[1:])), nil }})
	if err != nil {
		t.Fatal(err)
	}
	r.Ledger = l
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return r, func() error { cancel(); return <-done }
}

// now is a claim's clock in the bubble.
func here() *clock { return &clock{t: time.Now()} }

func TestOverdueClaimsRaiseAnAlarmThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := alive(t, kv.NewMem())
		p := programme()
		p.Events[0].Forget = time.Now().Add(time.Hour).Truncate(time.Second)
		p.Events[0].Open, p.Events[0].Close = p.Events[0].Forget.Add(-2*time.Hour), p.Events[0].Forget
		if _, err := r.PushProgramme(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		g, b := newGate("a", here()), newGate("bb", here())
		c := g.claim(unit(1))
		r.want(g, c, ticket.AnswerFirst)
		r.want(b, b.claim(unit(1)), ticket.AnswerInProgress) // refused, its record never comes: holds nothing
		<-time.After(20 * time.Second)
		if n := len(r.alarms(ledger.AlarmOverdue)); n != 0 {
			t.Errorf("%d overdue within the lease", n)
		}
		<-time.After(7 * time.Second)
		if got := r.alarms(ledger.AlarmOverdue); len(got) != 1 || got[0].Over != "" {
			t.Errorf("alarms %+v, want one that stands", got)
		}
		r.want(b, b.claim(unit(1)), ticket.AnswerSeen)
		g.revise(c, ticket.Refused)
		r.upload(g, 1)
		if got := r.alarms(ledger.AlarmOverdue); len(got) != 1 || got[0].Over == "" {
			t.Errorf("alarms %+v, want one that is over", got)
		}
		r.Heard("a", ledger.Head{Run: 1, Time: time.Now().Add(2 * time.Minute).UnixNano()})
		<-time.After(2 * time.Second)
		if n := len(r.alarms(ledger.AlarmSkew)); n != 1 {
			t.Errorf("%d alarms of a fast head, want 1", n)
		}
		<-time.After(time.Hour)
		if s, _ := r.Stats(t.Context()); s.Events[0].Closed == "" {
			t.Error("the event is open after its forgetting time")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What a programme said of an event counts after the event was taken out of it.
func TestEventsCloseAtTheirForgettingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := alive(t, kv.NewMem())
		p := programme()
		p.Events[0].Forget = time.Now().Add(time.Hour).Truncate(time.Second)
		p.Events[0].Open, p.Events[0].Close = p.Events[0].Forget.Add(-2*time.Hour), p.Events[0].Forget
		for range 2 {
			if _, err := r.PushProgramme(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			p.Events = nil
		}
		for _, want := range []bool{false, true} {
			if s, err := r.Stats(t.Context()); err != nil || len(s.Events) != 1 || (s.Events[0].Closed != "") != want {
				t.Errorf("events %+v, %v, want it closed: %t", s.Events, err, want)
			}
			<-time.After(time.Hour + 20*time.Second)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAFailedCommitEndsTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := kv.NewMem()
		r, stop := alive(t, mem)
		g := newGate("a", here())
		mem.FailNext(kv.FailKept)
		c := g.claim(unit(1))
		if _, err := r.Ask(t.Context(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: g.log}); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("ask whose commit failed: %v, want ErrUnknown", err)
		}
		synctest.Wait()
		if err := stop(); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("run ended with %v, want ErrUnknown", err)
		}
	})
}

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

func TestPruningWaitsForEverybody(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	for _, k := range []string{"UA", "UBB", "UCCC"} {
		if _, err := r.EnrolGate(ctx, "place "+k, k, ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
	}
	p := programme()
	other := p.Events[0]
	other.ID = "later"
	p.Events = append(p.Events, other)
	if _, err := r.PushProgramme(ctx, p); err != nil {
		t.Fatal(err)
	}
	a, b, _, _ := double(r, unit(1))
	r.ask(a, a.claim(unit(2)))
	later := unit(3)
	later.Event = "later"
	kept := a.claim(later)
	a.revise(a.claim(unit(4)), ticket.Admitted)
	r.upload(a, 1)
	r.upload(b, 1)
	want := tidy(r.conflicts())
	pruned := func() bool {
		t.Helper()
		if err := r.Prune(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := r.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Events[0].Pruned
	}
	r.clock.add(400 * 24 * time.Hour)
	if pruned() {
		t.Fatal("an open event was pruned")
	}
	if err := r.CloseEvent(ctx, event); err != nil {
		t.Fatal(err)
	}
	r.clock.add(13 * 24 * time.Hour)
	r.high(a)
	if pruned() {
		t.Fatal("pruned within the grace")
	}
	r.clock.add(25 * time.Hour)
	r.high(a)
	r.high(b)
	if pruned() {
		t.Fatal("pruned with a gate unheard")
	}
	b.claim(unit(5)) // known to the ledger by its hello only
	r.high(b)
	if _, err := r.LostGate(ctx, "ccc"); err != nil {
		t.Fatal(err)
	}
	if pruned() {
		t.Fatal("pruned with a record outstanding")
	}
	r.upload(b, 1)
	if !pruned() {
		t.Fatal("not pruned with everything in and the third gate lost")
	}
	if got := tidy(r.conflicts()); len(got) != 1 || got[0].ID != want[0].ID {
		t.Errorf("conflicts %+v after pruning, want them kept", got)
	}
	left := 0
	for k := range r.dump() {
		if strings.Contains(k, event) && !slices.ContainsFunc([]string{"event/", "subject/", "conflict", "record/ledger", "alarm"}, func(p string) bool { return strings.HasPrefix(k, p) }) {
			left++
			t.Logf("left: %q", k)
		}
	}
	if left != 0 {
		t.Errorf("%d rows of the event are left", left)
	}
	out, err := r.Read(ctx, ticket.Stream{Source: a.src, Run: a.run}, 0, 100, 1<<20)
	if err != nil || out.Base != kept.ID.Pos-1 || int(out.Head) != len(a.log) || len(out.Records) != len(a.log)-int(out.Base) {
		t.Errorf("run of a: base %d head %d with %d records, %v; want all from the other event's claim on", out.Base, out.Head, len(out.Records), err)
	}

	// A box turns up late: receipted, counted, shown, and nothing else.
	before := r.dump()
	box := newGate("box", r.clock)
	late := box.revise(box.claim(unit(1)), ticket.Admitted)
	if got := r.upload(box, 1); got.High[0].Pos != 2 {
		t.Errorf("late records left the high-water at %d, want 2", got.High[0].Pos)
	}
	r.want(box, late, ticket.AnswerUnknown)
	s, _ := r.Stats(ctx)
	if s.Events[0].Late != 2 {
		t.Errorf("%d late records counted, want 2", s.Events[0].Late)
	}
	for _, k := range ledgertest.Diff(before, r.dump()) {
		if !strings.HasPrefix(k, `"record`) && !strings.HasPrefix(k, `"late`) && !strings.HasPrefix(k, `"stream`) && !strings.HasPrefix(k, `"event`) {
			t.Errorf("late records changed %s", k)
		}
	}
	again := r.dump()
	r.upload(a, 1)
	r.upload(box, 1)
	if d := ledgertest.Diff(again, r.dump()); d != nil {
		t.Errorf("repeats after pruning changed %v", d)
	}
}
