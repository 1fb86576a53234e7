package gate

import (
	"context"
	"fmt"
	"time"

	"admitone/internal/ticket"
)

const (
	// annulAfter is how long after the relay went idle a passage may still come
	// from the release before (spec, section 2, 5).
	annulAfter = time.Second

	// suspectAfter is how many annulments in a row make the sensor suspect.
	suspectAfter = 5

	// staffAnnul is how long staff may take an admission back.
	staffAnnul = 15 * time.Minute
)

// turnstile takes what a lane's inputs said at a moment.
func (g *Gate) turnstile(ctx context.Context, l *lane, e TurnstileEvent, at time.Time) {
	switch e {
	case PassageIn:
		g.passed(ctx, l, at)
	case PulseEnd:
		g.pulsed(ctx, l)
	case PassageOut:
		g.event(ctx, ticket.Event{Type: ticket.EventExit, Lane: l.Name}, "")
	case AlarmOn:
		g.event(ctx, ticket.Event{Type: ticket.EventEmergency, Lane: l.Name, Detail: "the turnstile's alarm is on"}, "")
	case AlarmOff:
		g.event(ctx, ticket.Event{Type: ticket.EventEmergency, Lane: l.Name, Detail: "the turnstile's alarm is off"}, "")
	case LinesFailed:
		g.latch(ctx, l, "a line of the turnstile cannot be written")
	case LinesLost, LinesBack:
		g.lines(ctx, l, e == LinesLost)
	case EmergencyOn, EmergencyOff:
		g.emergency(ctx, l, e == EmergencyOn)
	case StaffPress:
		g.staff(ctx, l)
	}
	g.signal(l)
}

// passed settles the oldest claim that fired. A passage without one is late, or
// an event, but never an admission. A claim that had not fired then moved nothing:
// the rotation is still that of the annulled one before it.
func (g *Gate) passed(ctx context.Context, l *lane, at time.Time) {
	for _, oc := range l.open {
		if oc.fired.IsZero() || oc.fired.After(at) {
			continue
		}
		l.annuls = 0
		g.trust(ctx, l)
		g.afterPassage(l)
		g.settle(ctx, l, oc, ticket.Admitted, ticket.OK)
		return
	}
	switch {
	case g.mode == ticket.ModeFree || l.emergency:
		return // the turnstile is open
	case at.Before(l.letUntil): // it was opened without a claim
		if l.letThrough--; l.letThrough <= 0 {
			l.letUntil = time.Time{}
		}
		g.afterPassage(l)
	case at.Before(l.lateUntil):
		l.lateUntil, l.annuls = time.Time{}, 0
		g.trust(ctx, l)
		g.end(ctx, l.lastAnnulled, ticket.Admitted, ticket.OK, ticket.Annulled)
	default:
		g.counts.Tailgates++
		g.event(ctx, ticket.Event{Type: ticket.EventTailgate, Lane: l.Name}, "")
	}
}

// pulsed settles the oldest claim that fired where the pulse is all that can be
// known.
func (g *Gate) pulsed(ctx context.Context, l *lane) {
	for _, oc := range l.open {
		if !l.Sensor && !oc.fired.IsZero() {
			g.settle(ctx, l, oc, ticket.Admitted, ticket.OK)
			return
		}
	}
}

// afterPassage ends a held relay, or keeps it on a little for slow legs.
func (g *Gate) afterPassage(l *lane) {
	switch {
	case !l.Hold:
	case l.HoldAfter == 0:
		l.Turnstile.Idle()
	default:
		if err := l.Turnstile.Open(l.HoldAfter); err != nil {
			g.o.Log.Error("hold turnstile", "err", err)
		}
	}
}

// let expects one person who has no claim.
func (l *lane) let(now time.Time) {
	if !now.Before(l.letUntil) {
		l.letThrough = 0
	}
	l.letThrough++
	l.letUntil = now.Add(l.PassageTimeout)
}

func (g *Gate) trust(ctx context.Context, l *lane) {
	if l.suspect {
		l.suspect = false
		g.event(ctx, ticket.Event{Type: ticket.EventSensor, Lane: l.Name, Detail: "the passage sensor works again"}, "")
	}
}

// overdue ends claims that fired and were not passed in time.
func (g *Gate) overdue(ctx context.Context, l *lane, oc *openClaim, now time.Time) {
	since := now.Sub(oc.fired)
	if !l.Sensor {
		// The pulse's end settles it; this is for a turnstile that never tells.
		if since >= 2*l.MaxOn {
			g.settle(ctx, l, oc, ticket.Admitted, ticket.OK)
		}
		return
	}
	if since >= l.PassageTimeout && !oc.idled {
		oc.idled = true
		l.Turnstile.Idle()
		g.signal(l)
	}
	if since < l.PassageTimeout+annulAfter {
		return
	}
	if l.Keep || l.suspect {
		g.settle(ctx, l, oc, ticket.Admitted, ticket.OK)
		return
	}
	g.counts.Annulled++
	l.lastAnnulled, l.lateUntil = oc.id, now.Add(l.LatePassage)
	if l.annuls++; l.annuls >= suspectAfter {
		l.suspect = true
		g.o.Log.Warn("passage sensor is suspect: nobody was seen to pass", "lane", l.Name, "in_a_row", l.annuls)
		g.event(ctx, ticket.Event{Type: ticket.EventSensor, Lane: l.Name,
			Detail: fmt.Sprintf("suspect: %d releases in a row without a passage", l.annuls)}, "")
	}
	g.settle(ctx, l, oc, ticket.Annulled, "")
}

// Annul takes an admission of this gate back, on a staff member's word, within 15
// minutes.
func (g *Gate) Annul(ctx context.Context, id ticket.ClaimID, by string) error {
	return g.call(ctx, func(ctx context.Context) error {
		c, ok, err := g.store.Find(id)
		switch {
		case err != nil:
			return err
		case !ok || c.ID.Gate != g.o.Device:
			return fmt.Errorf("claim %s was not made at this gate; annul it at its own gate, or release it at the ledger", id)
		case c.State != ticket.Admitted && c.State != ticket.Presumed:
			return fmt.Errorf("claim %s is %s: only an admission can be annulled", id, c.State)
		}
		now := g.o.Clock.Stamp()
		if c.Claimed.Boot != now.Boot || time.Duration(now.Up-c.Claimed.Up) > staffAnnul {
			return fmt.Errorf("claim %s is older than %s: release it at the ledger", id, staffAnnul)
		}
		g.event(ctx, ticket.Event{Type: ticket.EventStaff, Lane: c.Lane, Claim: &id, Detail: "annulled by " + by}, "")
		if !g.end(ctx, id, ticket.Annulled, "", ticket.Admitted, ticket.Presumed) {
			return fmt.Errorf("claim %s could not be annulled: see the gate's log", id)
		}
		g.changed(ctx, c.Unit)
		return nil
	})
}
