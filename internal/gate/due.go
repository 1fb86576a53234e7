package gate

import (
	"context"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// refuseShown is how long the red cross stands (spec, section 2, 7).
const refuseShown = 2500 * time.Millisecond

// idleTick is how often a gate with nothing going on looks at its deadlines.
const idleTick = 250 * time.Millisecond

// due does what time brings.
func (g *Gate) due(ctx context.Context) {
	now := time.Now()
	for _, l := range g.lanes {
		for _, oc := range slices.Clone(l.open) {
			switch {
			case !oc.fired.IsZero():
				g.overdue(ctx, l, oc, now)
			case !oc.stay && !now.Before(oc.decideAt), oc.stay && !now.Before(oc.checkAt):
				g.decide(ctx, l, oc)
			}
		}
		g.presentations(ctx, l, now)
		g.signal(l)
	}
	g.free(now)
	g.endTest(ctx, now)
	g.endAmnesia(ctx, now)
	g.watchClock(ctx)
	g.noteEvent(ctx)
}

// nextDue is how long the loop may sleep.
func (g *Gate) nextDue() time.Duration {
	d, now := idleTick, time.Now()
	for _, l := range g.lanes {
		if len(l.shown) > 0 || len(l.open) > 0 {
			d = min(d, tick)
		}
		for _, oc := range l.open {
			if oc.fired.IsZero() && !oc.stay {
				d = min(d, oc.decideAt.Sub(now))
			}
		}
	}
	return max(d, time.Millisecond)
}

// presentations ends those whose ticket is gone and asks again for those in wait.
func (g *Gate) presentations(ctx context.Context, l *lane, now time.Time) {
	for _, p := range l.presented(settled, waiting, busy, catching) {
		gone := now.Sub(p.last) >= g.o.Rearm
		switch p.state {
		case settled:
			if gone {
				delete(l.shown, p.key)
			}
		case busy, catching:
			if now.After(p.until) {
				if l.busy == p {
					l.busy = nil
				}
				delete(l.shown, p.key)
			}
		case waiting:
			if now.Before(p.peekAt) {
				continue
			}
			p.peekAt = now.Add(peekEvery)
			g.wire.Peek(p.ticket.Unit())
			g.poll(ctx, l, p)
		}
	}
}

// presented lists the presentations in one of the states, in the order in which
// they were first shown: what follows must not depend on a map's order.
func (l *lane) presented(in ...showing) (out []*presentation) {
	for _, p := range l.shown {
		if slices.Contains(in, p.state) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *presentation) int { return a.first.Compare(b.first) })
	return out
}

// signal shows what the lane's state calls for, touching the lamps only when that
// changes. A person who was let in keeps their green whatever else is shown.
func (g *Gate) signal(l *lane) {
	s := g.wanted(l, time.Now())
	if l.signalled && s == l.signal {
		return
	}
	l.signal, l.signalled = s, true
	l.Turnstile.Show(s)
}

func (g *Gate) wanted(l *lane, now time.Time) Signal {
	for _, oc := range l.open {
		if !oc.fired.IsZero() && !oc.idled {
			return SignalAdmit
		}
	}
	switch {
	case l.emergency:
		return SignalOpen
	case now.Before(l.letUntil):
		return SignalAdmit
	case now.Before(l.refuseUntil):
		return SignalRefuse
	case g.fault != "" || l.lost || g.verifier == nil:
		return SignalFault
	case g.mode == ticket.ModeClosed:
		return SignalClosed
	case g.mode == ticket.ModeFree:
		return SignalOpen
	}
	for _, p := range l.shown {
		if p.said && p.verdict.Verdict == ticket.Wait && p.state != settled {
			return SignalWait
		}
	}
	return SignalIdle
}

// watchClock records steps of the wall clock.
func (g *Gate) watchClock(ctx context.Context) {
	if by, stepped := g.o.Clock.Stepped(); stepped {
		g.o.Log.Warn("wall clock stepped", "by", by)
		g.event(ctx, ticket.Event{Type: ticket.EventClock, Detail: "the wall clock stepped by " + by.String()}, "")
	}
}
