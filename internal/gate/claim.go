package gate

import (
	"context"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// peekEvery is how often a presentation in wait asks again (spec, section 2, 4).
const peekEvery = 500 * time.Millisecond

// openClaim is an own claim that has not ended.
type openClaim struct {
	id       ticket.ClaimID
	unit     ticket.Unit
	p        *presentation
	made     time.Time
	decideAt time.Time // decide then, answered or not
	stay     bool      // crossed with a later claim: decide again when that changes
	checkAt  time.Time // stay: look again then
	answer   ticket.Answer
	first    ticket.Answered
	fired    time.Time // zero: not fired
	idled    bool      // the relay was set idle at the passage time-out
}

func (l *lane) claimOn(u ticket.Unit) *openClaim {
	i := slices.IndexFunc(l.open, func(oc *openClaim) bool { return oc.unit == u })
	if i < 0 {
		return nil
	}
	return l.open[i]
}

// claim commits a claim, then publishes it, then asks.
func (g *Gate) claim(ctx context.Context, l *lane, p *presentation, unit ticket.Unit) {
	link := g.wire.Link()
	made, ok := g.commit(ctx, l, ticket.Claim{Unit: unit, Alone: link.Alone})
	if !ok {
		p.state = settled
		g.say(l, p, ticket.Fault, ticket.Claim{}, nil)
		return
	}
	switch {
	case made.Reason == ticket.InProgress:
		g.wait(l, p, waiting, ticket.InProgress, made.Cite)
		return
	case made.Reason != ticket.OK:
		p.state = settled
		g.say(l, p, made.Reason, made.Cite, nil)
		return
	}
	now := time.Now()
	oc := &openClaim{id: made.Record.Claim.ID, unit: unit, p: p, made: now}
	oc.decideAt = now.Add(g.patience(link))
	p.state, p.online = deciding, false
	l.open = append(l.open, oc)
	g.wire.Publish(made.Record)
	g.wire.Ask(*made.Record.Claim)
	if !oc.decideAt.After(now) {
		g.decide(ctx, l, oc)
	}
}

// commit writes rev 0 with what every claim of the lane carries.
func (g *Gate) commit(ctx context.Context, l *lane, c ticket.Claim) (ticket.Made, bool) {
	c.Claimed = g.o.Clock.Stamp()
	c.At, c.Lane, c.Place, c.Lease = c.Claimed.Wall, l.Name, g.o.Place, g.lease(l)
	floor := g.o.Clock.RaiseFloor()
	made, err := g.store.Claim(ctx, c, floor, g.arrived.judge)
	if err != nil {
		g.o.Log.Error("claim failed, its outcome is unknown", "err", err)
		g.fail(err)
		return made, false
	}
	if floor != nil && made.Reason == ticket.OK {
		g.o.Clock.SetFloor(*floor)
	}
	return made, true
}

// patience is how long a claim waits for others before the gate decides alone.
func (g *Gate) patience(l ticket.Link) time.Duration {
	switch {
	case l.Up:
		return g.o.LedgerPatience
	case l.Peers:
		return l.PeerPatience
	}
	return 0
}

// view is what is known of a unit, with what has arrived and is not yet durable.
// What has arrived is read first: a claim that becomes durable in between is then
// in both, and never in neither.
func (g *Gate) view(u ticket.Unit) (ticket.View, error) {
	early := g.arrived.of(u)
	v, err := g.store.View(u)
	if err != nil {
		return v, err
	}
	merge(&v, early)
	g.arrived.judge(&v)
	return v, nil
}

// decide takes the decision of protocol.md on an own claim that has not fired.
func (g *Gate) decide(ctx context.Context, l *lane, oc *openClaim) {
	g.hear(ctx, l, oc)
	v, err := g.view(oc.unit)
	if err != nil {
		g.o.Log.Error("read unit", "err", err)
		g.fail(err)
		g.deny(ctx, l, oc, ticket.Fault, ticket.Claim{})
		return
	}
	now := time.Now()
	d := ticket.Decide(ticket.Case{
		Own: oc.id, View: v, Answer: oc.answer,
		Looked: !now.After(oc.p.until), InTime: now.Sub(oc.made) < g.o.FireWithin,
		Ready: l.Turnstile.Ready(), Normal: g.mode == ticket.ModeNormal && g.fault == "",
		RefuseOffline: g.o.Offline == PolicyRefuse,
	})
	switch d.Step {
	case ticket.Open:
		g.fire(ctx, l, oc)
	case ticket.Deny:
		g.deny(ctx, l, oc, d.Reason, d.Cite)
	case ticket.Yield:
		g.yield(ctx, l, oc, d.Cite)
	case ticket.Stay:
		oc.stay, oc.checkAt = true, now.Add(peekEvery)
		g.say(l, oc.p, ticket.InProgress, d.Cite, oc)
	case ticket.Forget:
		if !now.After(oc.p.until) {
			g.yield(ctx, l, oc, d.Cite)
			return
		}
		g.settle(ctx, l, oc, ticket.Refused, ticket.InProgress)
		delete(l.shown, oc.p.key) // ends dark: nobody is there to be told
	}
}

func (g *Gate) deny(ctx context.Context, l *lane, oc *openClaim, why ticket.Reason, cite ticket.Claim) {
	oc.p.state = settled
	g.say(l, oc.p, why, cite, oc)
	g.settle(ctx, l, oc, ticket.Refused, why)
}

// yield gives the claim up and keeps the presentation in amber: when the unit is
// free and the ticket is still looked at, it claims anew.
func (g *Gate) yield(ctx context.Context, l *lane, oc *openClaim, cite ticket.Claim) {
	oc.p.online = oc.answer != ticket.AnswerNone
	oc.p.state = deciding
	g.say(l, oc.p, ticket.InProgress, cite, oc)
	g.wait(l, oc.p, waiting, ticket.InProgress, cite)
	g.settle(ctx, l, oc, ticket.Refused, ticket.InProgress)
}

// fire marks the claim, moves the relay and says so, in this order. A gate that is
// told to stop fires nothing more: the next start ends a claim without a mark.
func (g *Gate) fire(ctx context.Context, l *lane, oc *openClaim) {
	if ctx.Err() != nil {
		return
	}
	if err := g.marks.Mark(oc.id); err != nil {
		g.o.Log.Error("mark fired claim", "err", err)
		g.latch(ctx, l, "the fired mark cannot be written: "+err.Error())
		g.deny(ctx, l, oc, ticket.Fault, ticket.Claim{})
		return
	}
	oc.fired = time.Now()
	oc.p.last = oc.fired // who waited for the green and shows the ticket as it comes is not shown red
	open := func() error { return l.Turnstile.Pulse(l.Pulse) }
	if l.Hold {
		open = func() error { return l.Turnstile.Open(l.PassageTimeout) }
	}
	oc.p.state = settled
	if err := open(); err != nil {
		// It may have moved: the claim stays open until passage or time-out.
		g.o.Log.Error("open turnstile", "err", err)
		if l.Turnstile.Ready() { // else it was lost on the way, and says so itself
			g.latch(ctx, l, "the relay cannot be moved: "+err.Error())
		}
		g.say(l, oc.p, ticket.Fault, ticket.Claim{}, oc)
		return
	}
	if l.lateUntil.After(oc.fired) {
		l.lateUntil = oc.fired // who passes from now on passes by this claim
	}
	if l.signal == SignalAdmit {
		l.Turnstile.Show(SignalOpen) // so that the next green beeps, for the next person
		l.signalled = false
	}
	g.say(l, oc.p, ticket.OK, ticket.Claim{}, oc)
	g.signal(l)
	if oc.answer == ticket.AnswerNone {
		g.firedUnanswered(ctx, oc)
	}
}

// firedUnanswered tells the others that this claim opened without the ledger, so
// that none of them takes it for one that the ledger ordered after theirs.
func (g *Gate) firedUnanswered(ctx context.Context, oc *openClaim) {
	rec, ok, err := g.store.Revise(ctx, oc.id, func(c *ticket.Claim) bool {
		if c.Alone || c.State != ticket.Pending {
			return false
		}
		c.Alone, c.At = true, g.o.Clock.Stamp().Wall
		return true
	})
	if err != nil {
		g.o.Log.Error("record lone decision", "err", err)
		g.fail(err)
		return
	}
	if ok {
		g.wire.Publish(rec)
	}
}

// settle writes a claim's end and takes it off the lane.
func (g *Gate) settle(ctx context.Context, l *lane, oc *openClaim, to ticket.State, why ticket.Reason) {
	l.open = slices.DeleteFunc(l.open, func(o *openClaim) bool { return o == oc })
	g.end(ctx, oc.id, to, why, ticket.Pending)
	g.signal(l)
	g.unblock(ctx, l)
}

// end writes a state that follows from one of the given ones, and the result.
func (g *Gate) end(ctx context.Context, id ticket.ClaimID, to ticket.State, why ticket.Reason, from ...ticket.State) bool {
	now := g.o.Clock.Stamp()
	rec, ok, err := g.store.Revise(ctx, id, func(c *ticket.Claim) bool {
		if !slices.Contains(from, c.State) {
			return false
		}
		c.State, c.Reason, c.At = to, why, now.Wall
		return true
	})
	if err != nil {
		g.o.Log.Error("record a claim's end", "err", err)
		g.fail(err)
		return false
	}
	if !ok {
		return false
	}
	g.wire.Publish(rec)
	g.o.Result(ticket.Result{
		Time: now.Time().Format(ticket.TimeFormat), Gate: g.o.Place, Claim: id.String(),
		Ticket: rec.Claim.Unit.Ticket.String(), Result: to,
	})
	return true
}

// unblock decides the ticket that was shown last while the lane was taken.
func (g *Gate) unblock(ctx context.Context, l *lane) {
	p := l.busy
	if p == nil || l.full() {
		return
	}
	l.busy = nil
	if time.Now().After(p.until) {
		delete(l.shown, p.key) // ends dark
		g.signal(l)
		return
	}
	g.present(ctx, l, p)
}

// Answered takes the ledger's answer to an ask. It counts in a decision from now
// on, even while the loop is in a commit. A late one changes nothing here: what it
// taught came through Learn.
func (g *Gate) Answered(a ticket.Answered) {
	g.arrived.answer(a)
	g.box.put(func(ctx context.Context) {
		defer g.arrived.takeAnswer(a.Claim) // nobody may wait for it any more
		for _, l := range g.lanes {
			for _, oc := range l.open {
				if oc.id != a.Claim {
					continue
				}
				if oc.fired.IsZero() {
					g.decide(ctx, l, oc)
				} else {
					g.hear(ctx, l, oc)
				}
				return
			}
		}
	})
}

// hear takes up the answer to a claim, if it has arrived.
func (g *Gate) hear(ctx context.Context, l *lane, oc *openClaim) {
	a, ok := g.arrived.takeAnswer(oc.id)
	if !ok {
		return
	}
	oc.answer, oc.first = a.Answer, a
	if a.Answer == ticket.AnswerMismatch {
		g.mismatch(ctx, l, oc)
	}
}

// mismatch latches the fault: the ledger holds this claim id with another ticket,
// so two stores have written under one run.
func (g *Gate) mismatch(ctx context.Context, l *lane, oc *openClaim) {
	id := oc.id
	g.event(ctx, ticket.Event{Type: ticket.EventWrongCode, Lane: l.Name, Claim: &id}, "")
	g.latch(ctx, l, "the ledger knows claim "+oc.id.String()+" with another ticket")
}

// LinkChanged lets claims that wait for an answer that cannot come decide now.
func (g *Gate) LinkChanged() {
	g.box.put(func(context.Context) {
		link := g.wire.Link()
		at := time.Now().Add(g.patience(link))
		for _, l := range g.lanes {
			for _, oc := range l.open {
				if oc.fired.IsZero() && !oc.stay && !link.Up && at.Before(oc.decideAt) {
					oc.decideAt = at
				}
			}
		}
	})
}
