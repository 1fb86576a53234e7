package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
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
	if s, err := r.Stats(ctx); err != nil || s.Alarms != 2 || len(s.Events) != 1 || s.Events[0].Alarms != 0 {
		t.Errorf("counted %d alarms of no event and %+v, %v; want 2, and one event without", s.Alarms, s.Events, err)
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
		if err := stop(); !errors.Is(err, ledger.ErrBroken) {
			t.Errorf("run ended with %v, want ErrBroken", err)
		}
	})
}
