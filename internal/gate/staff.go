package gate

import (
	"context"
	"time"

	"admitone/internal/ticket"
)

// lines takes that a turnstile's lines are lost, or back. While they are lost the
// turnstile is not ready, so that no ticket is claimed for it.
func (g *Gate) lines(ctx context.Context, l *lane, lost bool) {
	l.lost = lost
	detail := "the turnstile's lines are in reach again"
	if lost {
		detail = "the turnstile's lines are out of reach"
	} else {
		l.renewAt = time.Time{} // mode free: open it again
	}
	g.o.Log.Warn("turnstile's lines changed", "lane", l.Name, "why", detail)
	g.event(ctx, ticket.Event{Type: ticket.EventFault, Lane: l.Name, Detail: detail}, "")
}

// emergency records that the turnstile was opened by its emergency input, which it
// was before this gate heard of it (G2). People who go through meanwhile flee.
func (g *Gate) emergency(ctx context.Context, l *lane, on bool) {
	l.emergency = on
	detail := "the emergency input is off: the turnstile closes"
	if on {
		detail = "the emergency input is on: the turnstile is open"
	}
	g.o.Log.Warn("emergency input changed", "lane", l.Name, "why", detail)
	g.event(ctx, ticket.Event{Type: ticket.EventEmergency, Lane: l.Name, Detail: detail}, "")
}

// staff lets one person through on the word of those who can reach the button, in
// any mode and in a fault too. It is recorded first; what cannot be recorded does
// not open.
func (g *Gate) staff(ctx context.Context, l *lane) {
	if !g.event(ctx, ticket.Event{Type: ticket.EventStaff, Lane: l.Name, Detail: "staff button"}, "") {
		return
	}
	if g.mode == ticket.ModeFree || l.emergency {
		return // it is open
	}
	l.let(time.Now())
	open := func() error { return l.Turnstile.Pulse(l.Pulse) }
	if l.Hold {
		open = func() error { return l.Turnstile.Open(l.PassageTimeout) }
	}
	if err := open(); err != nil {
		l.letUntil = time.Time{}
		g.o.Log.Error("open turnstile for staff", "lane", l.Name, "err", err)
	}
}
