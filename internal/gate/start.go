package gate

import (
	"context"
	"time"

	"admitone/internal/ticket"
)

// start settles, before the first scan, what an earlier process left open, and
// takes up the mode and the programme that the store kept.
func (g *Gate) start(ctx context.Context) error {
	saved, err := g.store.Saved()
	if err != nil {
		return err
	}
	g.o.Clock.SetFloor(saved.Floor)
	if g.store.Fresh() {
		g.regained = saved.Open
	} else {
		for _, c := range saved.Open {
			g.leftOpen(ctx, c)
		}
	}
	g.lastEvent = saved.LastEvent
	if saved.Place != "" {
		g.moveTo(saved.Place)
	}
	for _, e := range saved.Closed {
		g.closed[e] = true
	}
	if saved.Programme != nil {
		g.adopt(ctx, saved.Programme)
	}
	if g.mode = saved.Mode; g.mode == "" {
		g.mode = ticket.ModeNormal
	}
	if g.mode != ticket.ModeNormal {
		if err := g.setMode(ctx, g.mode, "kept over a restart"); err != nil {
			return err
		}
	}
	switch {
	case g.store.Fresh() && g.o.StoreLost != "":
		g.forgot(ctx, "the store was set aside: "+g.o.StoreLost)
	case g.store.Fresh():
		g.forgot(ctx, "the store is new, lacks something, or was closed before it had caught up")
	}
	for _, l := range g.lanes {
		g.signal(l)
	}
	return g.stop
}

// leftOpen ends a claim that was pending when the process ended: in the same boot
// the mark says whether it fired; after a reboot it may have.
func (g *Gate) leftOpen(ctx context.Context, c ticket.Claim) {
	to := ticket.Presumed
	if c.Claimed.Boot == g.o.Clock.o.Boot && !g.marks.Fired(c.ID) {
		to = ticket.Refused
	}
	g.end(ctx, c.ID, to, "", ticket.Pending)
}

// forgot begins amnesia: the gate does not know what it admitted before, and
// catches up before it trusts its ignorance.
func (g *Gate) forgot(ctx context.Context, why string) {
	g.amnesia, g.amnesiaEnd = true, time.Now().Add(g.o.AmnesiaWait)
	if err := g.store.SetCatchingUp(ctx, true); err != nil {
		g.fail(err)
		return
	}
	g.o.Log.Warn("catching up: "+why, "at_most", g.o.AmnesiaWait)
	g.event(ctx, ticket.Event{Type: ticket.EventAmnesia, Detail: why}, "")
}

// Forgot tells the gate that others hold more of its records than it does.
func (g *Gate) Forgot(why string) {
	g.box.put(func(ctx context.Context) {
		if !g.amnesia {
			g.forgot(ctx, why)
		}
	})
}

// CaughtUp tells the gate that it has what the ledger, or all peers, have.
func (g *Gate) CaughtUp() {
	g.box.put(func(ctx context.Context) { g.remembers(ctx, "caught up") })
}

func (g *Gate) remembers(ctx context.Context, how string) {
	if !g.amnesia {
		return
	}
	g.amnesia, g.amnesiaEnd = false, time.Time{}
	g.o.Log.Info("knows what was admitted: " + how)
	g.event(ctx, ticket.Event{Type: ticket.EventAmnesia, Detail: how}, "")
	for _, c := range g.regained {
		g.presume(ctx, c)
	}
	g.regained = nil
	if err := g.store.SetCatchingUp(ctx, false); err != nil {
		g.fail(err)
		return
	}
	for _, l := range g.lanes {
		for _, p := range l.presented(catching) {
			g.present(ctx, l, p)
		}
	}
}

// endAmnesia applies the policy when catching up took too long.
func (g *Gate) endAmnesia(ctx context.Context, now time.Time) {
	if !g.amnesia || g.amnesiaEnd.IsZero() || now.Before(g.amnesiaEnd) {
		return
	}
	switch g.o.Amnesia {
	case PolicyAdmit:
		g.remembers(ctx, "not caught up in time; policy admit")
	case PolicyRefuse:
		g.amnesiaEnd = time.Time{}
		for _, l := range g.lanes {
			for _, p := range l.presented(catching) {
				g.present(ctx, l, p)
			}
		}
	default:
		g.amnesiaEnd = time.Time{} // wait for as long as it takes
	}
}
