package gate

import (
	"context"
	"fmt"
	"time"

	"admitone/internal/ticket"
)

// testFor is how long mode test lasts at most (spec, section 2, modes).
const testFor = 30 * time.Minute

// SetMode changes the mode on a person's word. The change is recorded before it
// acts; closed and free survive a restart, test does not.
func (g *Gate) SetMode(ctx context.Context, m ticket.GateMode, by string) error {
	if !m.Valid() {
		return fmt.Errorf("unknown mode %q: use normal, closed, free or test", m)
	}
	return g.call(ctx, func(ctx context.Context) error { return g.setMode(ctx, m, "by "+by) })
}

func (g *Gate) setMode(ctx context.Context, m ticket.GateMode, why string) error {
	kept := m
	if m == ticket.ModeTest {
		kept = ticket.ModeNormal
	}
	if !g.event(ctx, ticket.Event{Type: ticket.EventMode, Detail: string(m) + " " + why}, kept) {
		return fmt.Errorf("record mode: see the gate's log")
	}
	was := g.mode
	g.mode, g.testUntil = m, time.Now().Add(testFor)
	g.o.Log.Info("mode changed", "mode", m, "was", was, "why", why)
	for _, l := range g.lanes {
		if was == ticket.ModeFree && m != ticket.ModeFree {
			l.Turnstile.Idle()
		}
		l.renewAt = time.Time{}
		l.Turnstile.MarkMode(m != ticket.ModeNormal)
		g.signal(l)
	}
	g.free(time.Now())
	return nil
}

// free keeps the relays on while the mode is free. Each turnstile bounds its own
// on-time, so a loop that stands still lets them fall.
func (g *Gate) free(now time.Time) {
	if g.mode != ticket.ModeFree {
		return
	}
	for _, l := range g.lanes {
		if now.Before(l.renewAt) {
			continue
		}
		l.renewAt = now.Add(l.MaxOn / 3)
		if err := l.Turnstile.Open(l.MaxOn); err != nil {
			l.renewAt = now.Add(time.Second)
			g.o.Log.Error("hold turnstile open", "lane", l.Name, "err", err)
		}
	}
}

// spendFree marks a ticket as used while the turnstile is open. A ticket that is
// used already passes as well: nothing is refused in mode free.
func (g *Gate) spendFree(ctx context.Context, l *lane, p *presentation) {
	made, ok := g.commit(ctx, l, ticket.Claim{Unit: p.ticket.Unit(), State: ticket.Admitted, Reason: ticket.Free})
	if !ok {
		return
	}
	var oc *openClaim
	if made.Reason == ticket.OK {
		oc = &openClaim{id: made.Record.Claim.ID}
		g.wire.Publish(made.Record)
		g.o.Result(ticket.Result{
			Time: made.Record.Claim.Claimed.Time().Format(ticket.TimeFormat), Gate: g.o.Place,
			Claim: oc.id.String(), Ticket: p.ticket.ID.String(), Result: ticket.Admitted,
		})
	}
	g.say(l, p, ticket.OK, made.Cite, oc)
}

// presentTest tries lamp, relay and sensor with a test ticket; a sold one shows
// its verdict without pulse or spend.
func (g *Gate) presentTest(ctx context.Context, l *lane, p *presentation) {
	why := g.judge(p.ticket)
	if !p.ticket.Test {
		var cite ticket.Claim
		if why == ticket.OK {
			v, err := g.view(p.ticket.Unit())
			if err != nil {
				g.fail(err)
				why = ticket.Fault
			} else {
				why, cite = v.Blocked()
			}
		}
		g.say(l, p, why, cite, nil)
		return
	}
	if why != ticket.OK && why != ticket.Closed {
		g.say(l, p, why, ticket.Claim{}, nil)
		return
	}
	if !g.event(ctx, ticket.Event{Type: ticket.EventStaff, Lane: l.Name, Detail: "test ticket"}, "") {
		g.say(l, p, ticket.Fault, ticket.Claim{}, nil)
		return
	}
	l.let(time.Now())
	if err := l.Turnstile.Pulse(l.Pulse); err != nil {
		g.o.Log.Error("open turnstile", "err", err)
		g.say(l, p, ticket.Fault, ticket.Claim{}, nil)
		return
	}
	g.say(l, p, ticket.OK, ticket.Claim{}, nil)
}

// endTest ends mode test after its time, and when an event opens.
func (g *Gate) endTest(ctx context.Context, now time.Time) {
	if g.mode != ticket.ModeTest {
		return
	}
	why := ""
	if now.After(g.testUntil) {
		why = "after 30 minutes of test"
	} else if at, class := g.o.Clock.Now(); class == ticket.Trusted && g.programme != nil {
		began := at.Add(-testFor + g.testUntil.Sub(now))
		for _, e := range g.programme.Events {
			if e.Open.After(began) && !e.Open.After(at) {
				why = "at the opening of " + e.ID
			}
		}
	}
	if why == "" {
		return
	}
	if err := g.setMode(ctx, ticket.ModeNormal, why); err != nil {
		g.o.Log.Error("end test", "err", err)
	}
}

// event records that something happened, with the mode where it changes. It
// reports whether it is durable.
func (g *Gate) event(ctx context.Context, e ticket.Event, mode ticket.GateMode) bool {
	e.Place, e.Stamp, e.Detail = g.o.Place, g.o.Clock.Stamp(), ticket.DetailOf(e.Detail)
	rec, err := g.store.Record(ctx, e, mode)
	if err != nil {
		g.o.Log.Error("record event", "type", e.Type, "err", err)
		g.fail(err)
		return false
	}
	g.wire.Publish(rec)
	return true
}

// latch puts the gate in fault until it is restarted: it could not find out, and
// nobody may be let in on a guess.
func (g *Gate) latch(ctx context.Context, l *lane, why string) {
	if g.fault != "" {
		return
	}
	g.fault = why
	g.o.Log.Error("gate is in fault until it is restarted", "why", why)
	g.event(ctx, ticket.Event{Type: ticket.EventFault, Lane: l.Name, Detail: why}, "")
	for _, l := range g.lanes {
		g.signal(l)
	}
}
