package ticket

import (
	"slices"
	"time"
)

// Where is the place and time at which a ticket is judged.
type Where struct {
	Place string    // the gate's place
	Now   time.Time // by the gate's clock
	Clock Class     // how far that clock can be trusted

	// UntrustedAdmit is the policy for windows that an untrusted clock cannot
	// judge: admit (and mark the claim), or refuse with ClockUntrusted.
	UntrustedAdmit bool

	// Last is the event that this gate served when it last knew the time, "" where
	// there is none. Under an untrusted clock the gate stays with it.
	Last string
}

// Event gives the event of that id.
func (p Programme) Event(id string) (ProgrammeEvent, bool) {
	i := slices.IndexFunc(p.Events, func(e ProgrammeEvent) bool { return e.ID == id })
	if i < 0 {
		return ProgrammeEvent{}, false
	}
	return p.Events[i], true
}

// On lists the events that are open at a place, in the programme's order:
// between Open (inclusive) and Close (exclusive), and with the place among their
// places, if they list any.
func (p Programme) On(place string, now time.Time) []ProgrammeEvent {
	return p.events(func(e ProgrammeEvent) bool {
		return e.servedAt(place) && within(now, e.Open, e.Close)
	})
}

// Serving lists the events that a gate serves: those of On under a trusted
// clock. Under an untrusted one it is the last event alone; and where there is
// none, or the programme has it no more, every event of the place or no event at
// all, as the policy says.
func (p Programme) Serving(at Where) []ProgrammeEvent {
	if at.Clock == Trusted {
		return p.On(at.Place, at.Now)
	}
	if e, ok := p.Event(at.Last); ok {
		if e.servedAt(at.Place) {
			return []ProgrammeEvent{e}
		}
		return nil
	}
	if !at.UntrustedAdmit {
		return nil
	}
	return p.events(func(e ProgrammeEvent) bool { return e.servedAt(at.Place) })
}

// Judge says whether a verified ticket may enter here and now, as far as the
// programme goes; it knows nothing of claims, revocations, modes and test
// tickets. The first of these that holds is the reason:
//
//  1. Unknown: the programme does not have the event;
//  2. ClockUntrusted: no event can be said to be on, and the policy refuses;
//  3. WrongEvent: another event is on here; Closed: none is;
//  4. WrongSession: the event has no such session, or it is not on now;
//  5. WrongProduct, then WrongZone: not let in at this place;
//  6. NotYetValid, then Expired: outside of the ticket's own window, of which
//     NotBefore belongs to it and Expires does not;
//  7. ClockUntrusted: only a window that the clock cannot judge (a session's or
//     the ticket's own) is left, and the policy refuses.
//
// So a refusal that any clock would give is never hidden behind the clock's.
func (p Programme) Judge(t Ticket, at Where) Reason {
	e, known := p.Event(t.Event)
	if !known {
		return Unknown
	}
	if r := p.judgeEvent(e, at); r != OK {
		return r
	}
	if r := e.judgeSession(t, at); r != OK {
		return r
	}
	if r := e.judgeAdmission(t, at.Place); r != OK {
		return r
	}
	windowed := t.Session != "" || !t.NotBefore.IsZero() || !t.Expires.IsZero()
	switch {
	case at.Clock != Trusted && windowed && !at.UntrustedAdmit:
		return ClockUntrusted
	case at.Clock != Trusted:
		return OK
	case at.Now.Before(t.NotBefore):
		return NotYetValid
	case !t.Expires.IsZero() && !at.Now.Before(t.Expires):
		return Expired
	}
	return OK
}

func (p Programme) judgeEvent(e ProgrammeEvent, at Where) Reason {
	on := p.Serving(at)
	_, hasLast := p.Event(at.Last)
	switch {
	case slices.ContainsFunc(on, func(o ProgrammeEvent) bool { return o.ID == e.ID }):
		return OK
	case at.Clock != Trusted && !hasLast && !at.UntrustedAdmit:
		return ClockUntrusted
	case len(on) > 0:
		return WrongEvent
	}
	return Closed
}

func (e ProgrammeEvent) judgeSession(t Ticket, at Where) Reason {
	if t.Session == "" {
		return OK
	}
	i := slices.IndexFunc(e.Sessions, func(s Session) bool { return s.ID == t.Session })
	if i < 0 || at.Clock == Trusted && !within(at.Now, e.Sessions[i].From, e.Sessions[i].To) {
		return WrongSession
	}
	return OK
}

// judgeAdmission compares product and zone with the event's products and the
// place's rule. A ticket without a product or zone is for any.
func (e ProgrammeEvent) judgeAdmission(t Ticket, place string) Reason {
	rule, _ := e.rule(place)
	switch {
	case !allows(e.Products, t.Product) || !allows(rule.Products, t.Product):
		return WrongProduct
	case !allows(rule.Zones, t.Zone):
		return WrongZone
	}
	return OK
}

func allows(list []string, name string) bool {
	return name == "" || len(list) == 0 || slices.Contains(list, name)
}

func (e ProgrammeEvent) rule(place string) (PlaceRule, bool) {
	i := slices.IndexFunc(e.Places, func(r PlaceRule) bool { return r.Place == place })
	if i < 0 {
		return PlaceRule{}, false
	}
	return e.Places[i], true
}

func (e ProgrammeEvent) servedAt(place string) bool {
	_, listed := e.rule(place)
	return listed || len(e.Places) == 0
}

func (p Programme) events(keep func(ProgrammeEvent) bool) []ProgrammeEvent {
	var out []ProgrammeEvent
	for _, e := range p.Events {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// within reports whether from <= now < to.
func within(now, from, to time.Time) bool { return !now.Before(from) && now.Before(to) }
