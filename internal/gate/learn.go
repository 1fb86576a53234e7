package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// arrivals is what others sent that is not durable here yet, and since when each
// pending claim is known. It is shared between the wire and the loop, so that a
// claim that has arrived counts in the next decision, however long the disk takes.
type arrivals struct {
	mu      sync.Mutex
	byUnit  map[ticket.Unit][]ticket.Claim
	known   map[ticket.ClaimID]time.Time
	answers map[ticket.ClaimID]ticket.Answered // not taken up by the loop yet
}

// knownMost bounds the list of pending claims whose age is kept. Gates have a
// few open claims each; beyond it the oldest are overdue in any case.
const knownMost = 1 << 16

func (a *arrivals) add(arrived []ticket.Arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, r := range arrived {
		if r.Record == nil || r.Record.Claim == nil {
			continue
		}
		c := *r.Record.Claim
		a.byUnit[c.Unit] = append(a.byUnit[c.Unit], c)
		a.see(c, now)
	}
}

func (a *arrivals) see(c ticket.Claim, now time.Time) time.Time {
	if c.State != ticket.Pending {
		delete(a.known, c.ID)
		return now
	}
	since, ok := a.known[c.ID]
	if !ok {
		if len(a.known) >= knownMost {
			clear(a.known)
		}
		since = now
		a.known[c.ID] = now
	}
	return since
}

func (a *arrivals) remove(arrived []ticket.Arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range arrived {
		if r.Record == nil || r.Record.Claim == nil {
			continue
		}
		u := r.Record.Claim.Unit
		left := slices.DeleteFunc(a.byUnit[u], func(c ticket.Claim) bool {
			return c.ID == r.Record.Claim.ID && c.Rev == r.Record.Claim.Rev
		})
		if len(left) == 0 {
			delete(a.byUnit, u)
		} else {
			a.byUnit[u] = left
		}
	}
}

func (a *arrivals) answer(got ticket.Answered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[got.Claim] = got
}

func (a *arrivals) takeAnswer(id ticket.ClaimID) (ticket.Answered, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	got, ok := a.answers[id]
	delete(a.answers, id)
	return got, ok
}

// of gives what has arrived of a unit and is not durable yet.
func (a *arrivals) of(u ticket.Unit) []ticket.Claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.byUnit[u])
}

// merge adds claims to a view.
func merge(v *ticket.View, claims []ticket.Claim) {
	for _, c := range claims {
		i := slices.IndexFunc(v.Claims, func(k ticket.Known) bool { return k.Claim.ID == c.ID })
		switch {
		case i < 0:
			v.Claims = append(v.Claims, ticket.Known{Claim: c})
		case ticket.Wins(c, v.Claims[i].Claim):
			v.Claims[i] = ticket.Known{Claim: c}
		}
	}
}

// judge marks the pending claims that have been known for longer than their lease.
func (a *arrivals) judge(v *ticket.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for i := range v.Claims {
		c := v.Claims[i].Claim
		if c.State == ticket.Pending {
			v.Claims[i].Overdue = now.Sub(a.see(c, now)) > c.Lease
		}
	}
}

// Learn merges records of others durably and tells the loop. Records that came
// live count in decisions before they are durable here.
func (g *Gate) Learn(ctx context.Context, live bool, arrived []ticket.Arrival) error {
	if live {
		g.arrived.add(arrived)
		defer g.arrived.remove(arrived)
	}
	got, err := g.store.Learn(ctx, arrived)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		g.box.put(func(context.Context) { g.fail(err) })
		return err
	}
	g.box.put(func(ctx context.Context) { g.took(ctx, got) })
	return nil
}

// took lets the loop act on what was learned.
func (g *Gate) took(ctx context.Context, got ticket.Learned) {
	if got.Programme != nil {
		g.adopt(ctx, got.Programme)
	} else if len(got.Codes) > 0 && g.programme != nil {
		g.verify(ctx, *g.programme)
	}
	if got.Place != "" {
		g.moveTo(got.Place)
	}
	for _, e := range got.Closed {
		g.closed[e] = true
		g.kick()
	}
	for _, c := range got.Own {
		if g.amnesia {
			g.regained = append(g.regained, c) // its end may still be on the way
		} else {
			g.presume(ctx, c)
		}
	}
	for _, c := range got.Forked {
		g.o.Log.Error("a claim exists with two contents: a store was lost or copied", "claim", c.ID)
		g.event(ctx, ticket.Event{Type: ticket.EventFault, Claim: &c.ID, Detail: "two contents"}, "")
	}
	if got.Aside > 0 {
		g.o.Log.Warn("records set aside: they cannot be read", "count", got.Aside)
	}
	for _, u := range got.Units {
		g.changed(ctx, u)
	}
	if len(got.Revoked) > 0 {
		g.recheck(ctx)
	}
}

// moveTo takes another place over, on the ledger's word: this device is a spare
// that replaces the box that stood there.
func (g *Gate) moveTo(place string) {
	if place == g.o.Place {
		return
	}
	g.o.Log.Warn("this device stands at another place now", "place", place, "was", g.o.Place)
	g.o.Place = place
}

// presume ends a claim of this device that a lost store had left open.
func (g *Gate) presume(ctx context.Context, c ticket.Claim) {
	for _, l := range g.lanes {
		if slices.ContainsFunc(l.open, func(oc *openClaim) bool { return oc.id == c.ID }) {
			return
		}
	}
	g.end(ctx, c.ID, ticket.Presumed, "", ticket.Pending)
}

// changed looks again at what depends on a unit.
func (g *Gate) changed(ctx context.Context, u ticket.Unit) {
	for _, l := range g.lanes {
		if oc := l.claimOn(u); oc != nil && oc.fired.IsZero() {
			g.again(ctx, l, oc)
		}
		for _, p := range l.presented(waiting) {
			if p.ticket.Unit() == u {
				g.poll(ctx, l, p)
			}
		}
	}
}

// recheck looks again at everything that is undecided.
func (g *Gate) recheck(ctx context.Context) {
	for _, l := range g.lanes {
		for _, oc := range slices.Clone(l.open) {
			if oc.fired.IsZero() {
				g.again(ctx, l, oc)
			}
		}
		for _, p := range l.presented(waiting) {
			g.poll(ctx, l, p)
		}
	}
}

// again decides early where what arrived is decisive, and at once where the claim
// was only staying for others to settle.
func (g *Gate) again(ctx context.Context, l *lane, oc *openClaim) {
	if oc.stay {
		g.decide(ctx, l, oc)
		return
	}
	v, err := g.view(oc.unit)
	if err != nil {
		g.fail(err)
		return
	}
	for _, k := range v.Claims {
		if k.Claim.ID != oc.id && k.Holds() && !k.FreshPending() {
			g.decide(ctx, l, oc)
			return
		}
	}
}

// poll looks at the unit that a presentation waits for.
func (g *Gate) poll(ctx context.Context, l *lane, p *presentation) {
	if p.state != waiting {
		return
	}
	v, err := g.view(p.ticket.Unit())
	if err != nil {
		g.fail(err)
		return
	}
	now := time.Now()
	why, cite := v.Blocked()
	looked := !now.After(p.until)
	switch {
	case why == ticket.OK && looked:
		g.present(ctx, l, p) // a new claim, judged from the top
	case why == ticket.OK, why == ticket.InProgress && now.After(p.giveUpAt):
		delete(l.shown, p.key) // nobody looks, or nobody ever said: ends dark
		g.signal(l)
	case why != ticket.InProgress:
		p.state = settled
		g.say(l, p, why, cite, nil)
	}
}

// adopt takes a signed programme, if it is newer.
func (g *Gate) adopt(ctx context.Context, signed []byte) {
	p, err := ticket.OpenProgramme(signed, g.o.ProgrammeKey)
	if err != nil {
		g.o.Log.Error("refuse programme", "err", err)
		return
	}
	if g.programme != nil && p.Version <= g.programme.Version {
		return
	}
	g.verify(ctx, p)
}

// verify makes the verifier for a programme and the code lists that are here.
func (g *Gate) verify(ctx context.Context, p ticket.Programme) {
	v, err := g.verifierFor(p)
	if err != nil {
		g.o.Log.Error("refuse programme", "version", p.Version, "err", err)
		return
	}
	g.programme, g.verifier = &p, v
	g.noteEvent(ctx)
	g.o.Log.Info("programme in force", "version", p.Version, "events", len(p.Events))
	for _, l := range g.lanes {
		g.signal(l)
	}
}

func (g *Gate) verifierFor(p ticket.Programme) (*ticket.Verifier, error) {
	codes := map[string]ticket.CodeList{}
	for _, e := range p.Events {
		if !slices.Contains(e.Formats, ticket.FormatCode.String()) {
			continue
		}
		chunks, err := g.store.CodeChunks(e.ID)
		if err != nil {
			return nil, err
		}
		list, complete, err := ticket.AssembleCodes(chunks)
		if err != nil {
			return nil, fmt.Errorf("code list of %q: %w", e.ID, err)
		}
		if complete {
			codes[e.ID] = list
		}
	}
	return ticket.NewVerifier(p, codes, g.o.Demo)
}

// noteEvent remembers what is on, for when the clock cannot be trusted.
func (g *Gate) noteEvent(ctx context.Context) {
	if g.programme == nil {
		return
	}
	now, class := g.o.Clock.Now()
	if class != ticket.Trusted {
		return
	}
	on := g.programme.On(g.o.Place, now)
	if len(on) == 0 || on[len(on)-1].ID == g.lastEvent {
		return
	}
	g.lastEvent = on[len(on)-1].ID
	if err := g.store.SetLastEvent(ctx, g.lastEvent); err != nil {
		g.fail(err)
	}
}

// LedgerTime takes the ledger's clock.
func (g *Gate) LedgerTime(unixNano, roundTrip int64) {
	trusted, lowered := g.o.Clock.Ledger(unixNano, roundTrip)
	if trusted {
		g.kick()
	}
	if lowered {
		g.box.put(func(ctx context.Context) {
			f := g.o.Clock.Floor()
			if err := g.store.SetFloor(ctx, f); err != nil {
				g.fail(err)
				return
			}
			g.event(ctx, ticket.Event{Type: ticket.EventClock, Detail: "the clock floor was ahead of the ledger's time and was lowered"}, "")
		})
	}
}

func (g *Gate) kick() {
	select {
	case g.learned <- struct{}{}:
	default:
	}
}
