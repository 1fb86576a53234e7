package gate

import (
	"context"
	"crypto/sha256"
	"time"

	"admitone/internal/ticket"
)

// Look is one reading of one code.
type Look struct {
	Text string
	At   time.Time // when the frame was captured or the line arrived
	Line bool      // from a reader that shows a code once, not frame after frame
	Cut  bool      // Text is only the beginning: no format may accept it
}

// Look hands a reading to the loop. lane counts from 0.
func (g *Gate) Look(lane int, k Look) {
	g.box.put(func(ctx context.Context) { g.look(ctx, g.lanes[lane], k) })
}

// shownKey tells presentations apart: by the decoded identity, never by the text,
// unless no format accepts it.
type shownKey struct {
	format ticket.Format // 0: id is a hash of the text
	event  string
	id     ticket.ID
}

// shownMost bounds the presentations of one lane, so that a flood of junk cannot
// eat the memory. It is far above what a reader can deliver within rearm.
const shownMost = 4096

// A presentation is one ticket shown on one lane, over all its readers, until it
// has not been read for rearm. Within it a verdict is echoed.
type presentation struct {
	key      shownKey
	ticket   ticket.Ticket
	read     ticket.Reason // what reading the text came to
	state    showing
	first    time.Time // when it was first captured
	last     time.Time // when it was last read
	until    time.Time // an admission needs a look that still counts
	verdict  ticket.Verdict
	said     bool
	online   bool // the ledger answered the claim this presentation waits on
	peekAt   time.Time
	giveUpAt time.Time
}

type showing uint8

const (
	settled  showing = iota // its verdict is final
	deciding                // it has an open claim
	waiting                 // another claim on its unit is in progress
	busy                    // the lane is taken by another ticket
	catching                // the gate does not know yet what it admitted before
)

// lane is one turnstile with what is going on at it.
type lane struct {
	LaneOptions
	shown map[shownKey]*presentation
	open  []*openClaim  // oldest first
	busy  *presentation // the last one shown while the lane was taken

	lastAnnulled ticket.ClaimID // may still be passed late …
	lateUntil    time.Time      // … until then
	annuls       int            // in a row
	suspect      bool

	refuseUntil time.Time
	signal      Signal
	signalled   bool
	renewAt     time.Time // mode free: when the relay is to be renewed
	letUntil    time.Time // who was let through without a claim, by staff or a test ticket, may pass until then
	letThrough  int       // how many of them have not
	lost        bool      // the turnstile's lines are out of reach
	emergency   bool      // the emergency input holds the turnstile open
}

func (g *Gate) look(ctx context.Context, l *lane, k Look) {
	t, why := ticket.Ticket{}, ticket.NotReady
	switch {
	case k.Cut:
		why = ticket.Invalid
	case g.verifier != nil:
		// A code may be on several events' lists: Check takes the event that is on.
		// Whether it may enter is judged at each attempt, by present.
		if t, why = g.verifier.Check(k.Text, g.where()); t.Format != 0 {
			why = ticket.OK
		}
	}
	key := shownKey{format: t.Format, event: t.Event, id: t.ID}
	if why != ticket.OK || t.Format == 0 {
		h := sha256.Sum256([]byte(k.Text))
		key = shownKey{id: ticket.ID(h[:16])}
	}
	valid := g.o.Rearm
	if k.Line {
		valid = g.o.LineLook
	}
	p, known := l.shown[key]
	if !known {
		if len(l.shown) >= shownMost {
			l.forgetOldest()
		}
		p = &presentation{key: key, ticket: t, read: why, first: k.At}
		l.shown[key] = p
	}
	p.last = k.At
	if until := k.At.Add(valid); until.After(p.until) {
		p.until = until
	}
	switch {
	case !known:
		g.present(ctx, l, p)
	case p.state == busy && l.busy != p:
		if l.full() {
			l.busy = p // the last one shown is decided when the passage ends
		} else {
			g.present(ctx, l, p)
		}
	}
}

func (l *lane) forgetOldest() {
	var oldest *presentation
	for _, p := range l.shown {
		if p.state == settled && (oldest == nil || p.last.Before(oldest.last)) {
			oldest = p
		}
	}
	if oldest != nil {
		delete(l.shown, oldest.key)
	}
}

func (l *lane) full() bool { return len(l.open) >= l.Credits }

// present takes a presentation from the top: everything that can be judged
// without a claim, then the claim.
func (g *Gate) present(ctx context.Context, l *lane, p *presentation) {
	p.state = settled
	switch {
	case g.fault != "":
		g.say(l, p, ticket.Fault, ticket.Claim{}, nil)
		return
	case g.mode == ticket.ModeClosed:
		g.say(l, p, ticket.Closed, ticket.Claim{}, nil)
		return
	case p.read != ticket.OK:
		if g.mode != ticket.ModeFree {
			g.say(l, p, p.read, ticket.Claim{}, nil)
		}
		return
	case g.mode == ticket.ModeTest:
		g.presentTest(ctx, l, p)
		return
	}
	why := g.judge(p.ticket)
	if p.ticket.Test {
		why = ticket.TestTicket
	}
	if g.mode == ticket.ModeFree {
		if why == ticket.OK {
			g.spendFree(ctx, l, p)
		}
		return
	}
	if why != ticket.OK {
		g.say(l, p, why, ticket.Claim{}, nil)
		return
	}
	g.admission(ctx, l, p)
}

// judge checks a ticket against the programme, without any network.
func (g *Gate) judge(t ticket.Ticket) ticket.Reason {
	if g.closed[t.Event] {
		return ticket.Closed
	}
	return g.programme.Judge(t, g.where())
}

func (g *Gate) where() ticket.Where {
	now, class := g.o.Clock.Now()
	return ticket.Where{
		Place: g.o.Place, Now: now, Clock: class, Last: g.lastEvent,
		UntrustedAdmit: g.o.UntrustedClock == PolicyAdmit,
	}
}

// admission takes a ticket that may enter to its claim, if the lane is free for
// it.
func (g *Gate) admission(ctx context.Context, l *lane, p *presentation) {
	unit := p.ticket.Unit()
	switch own := l.claimOn(unit); {
	case own != nil:
		g.wait(l, p, waiting, ticket.InProgress, ticket.Claim{})
		return
	case l.full():
		l.busy = p
		g.wait(l, p, busy, ticket.Busy, ticket.Claim{})
		return
	case !l.Turnstile.Ready():
		p.state = settled
		g.say(l, p, ticket.NotReady, ticket.Claim{}, nil)
		return
	case g.amnesia && g.amnesiaEnd.IsZero() && g.o.Amnesia == PolicyRefuse:
		p.state = settled
		g.say(l, p, ticket.Fault, ticket.Claim{}, nil)
		return
	case g.amnesia:
		g.wait(l, p, catching, ticket.CatchingUp, ticket.Claim{})
		return
	}
	g.claim(ctx, l, p, unit)
}

func (g *Gate) wait(l *lane, p *presentation, s showing, why ticket.Reason, cite ticket.Claim) {
	now := time.Now()
	if p.state != s || p.giveUpAt.IsZero() {
		p.giveUpAt = now.Add(g.lease(l) + time.Second)
		p.peekAt = now.Add(peekEvery)
	}
	p.state = s
	g.say(l, p, why, cite, nil)
}

// say puts a verdict out, if it differs from what the presentation heard last.
func (g *Gate) say(l *lane, p *presentation, why ticket.Reason, cite ticket.Claim, oc *openClaim) {
	now, class := g.o.Clock.Now()
	v := ticket.Verdict{
		Time: now, Gate: g.o.Place, Lane: l.Name, Verdict: why.Ruling(), Reason: why,
		GateMode: g.mode, Clock: class, Took: time.Since(p.first), Online: p.online,
	}
	if p.key.format != 0 {
		v.Ticket = p.key.id.String()
	}
	if oc != nil {
		v.Claim, v.Online = oc.id.String(), oc.answer != ticket.AnswerNone
		if cite.ID.IsZero() && why == ticket.AlreadyUsed {
			v.FirstSeen, v.FirstGate = oc.first.FirstAt, oc.first.FirstGate
		}
	}
	if !cite.ID.IsZero() {
		v.FirstSeen, v.FirstGate = cite.Claimed.Time(), cite.Place
	}
	if p.said && p.verdict.Verdict == v.Verdict && p.verdict.Reason == v.Reason {
		return
	}
	p.verdict, p.said = v, true
	g.tell(l, v)
}

func (g *Gate) tell(l *lane, v ticket.Verdict) {
	switch v.Verdict {
	case ticket.Admit:
		g.counts.Admitted++
	case ticket.Refuse:
		g.counts.Refused++
		l.refuseUntil = time.Now().Add(refuseShown)
		l.signalled = false
	case ticket.Wait:
		g.counts.Waited++
	}
	g.o.Log.Info("verdict", "lane", v.Lane, "ticket", v.Ticket, "verdict", v.Verdict, "reason", v.Reason, "claim", v.Claim)
	g.o.Verdict(v)
	g.wire.Verdict(v)
	g.signal(l)
}
