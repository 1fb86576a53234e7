package simtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"admitone/internal/gate"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// lane is a turnstile with its people.
type lane struct {
	g       *Gate
	n       int
	passage time.Duration // how long after the relay somebody goes through; negative: never
	taken   time.Time     // until then somebody who was let in stands in it
	nevers  int           // in a row
	amber   time.Time     // since when the lamp says wait; zero: it does not
}

// Passage says when people go through after the relay moved; negative: never.
func (g *Gate) Passage(lane int, after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes[lane].passage = after
}

// handle is a lane as one process holds it. A dead process moves nothing.
type handle struct {
	*lane
	p      *proc
	events chan gate.TurnstileEvent
}

func (l *lane) name() string { return fmt.Sprint(l.n + 1) }

func (h *handle) Idle()                              {}
func (h *handle) MarkMode(bool)                      {}
func (h *handle) Events() <-chan gate.TurnstileEvent { return h.events }

// Ready is false while somebody is still in the turnstile, though their claim may
// have ended: the next passage will be theirs.
func (h *handle) Ready() bool {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	return !time.Now().Before(h.taken)
}

// people gives when somebody goes through whom the relay lets in now. Four in a
// row who do not would make the sensor suspect, and nobody asks for that here.
func (l *lane) people() time.Duration {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	after := l.passage
	if after >= 0 {
		l.taken, l.nevers = time.Now().Add(after), 0
	} else if l.nevers++; l.nevers > 3 {
		after, l.nevers = 200*time.Millisecond, 0
	}
	return after
}

// tell hands an input to the process that runs now.
func (l *lane) tell(e gate.TurnstileEvent) {
	p := l.g.running()
	if p == nil {
		return
	}
	select {
	case p.lanes[l.n].events <- e:
	default:
	}
}

// Pulse moves the relay: the moment on which everything turns.
func (h *handle) Pulse(width time.Duration) error {
	p := h.p
	if p.dead.Load() {
		return errors.New("the process has ended")
	}
	p.mu.Lock()
	id := p.marked
	p.marked = ticket.ClaimID{}
	p.mu.Unlock()
	p.judgeFire(id)
	after := h.people()
	h.g.w.notes.fire(p, h.n, id)
	time.AfterFunc(width, func() { h.tell(gate.PulseEnd) })
	if after >= 0 {
		time.AfterFunc(after, func() {
			h.g.w.notes.pass(p, id)
			h.tell(gate.PassageIn)
		})
	}
	p.die(afterRelay)
	return nil
}

// Open holds the relay: in mode free only, as these lanes are pulsed.
func (h *handle) Open(time.Duration) error {
	if h.p.dead.Load() {
		return errors.New("the process has ended")
	}
	saved, err := h.p.store.Saved()
	if err == nil && saved.Mode != ticket.ModeFree {
		h.g.w.Errorf("%s holds its relay, and mode %q is what its disk says", h.g.id, saved.Mode)
	}
	return nil
}

// Show notes how long people look at amber.
func (h *handle) Show(s gate.Signal) {
	if h.p.dead.Load() {
		return
	}
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	switch {
	case s == gate.SignalWait && h.amber.IsZero():
		h.amber = time.Now()
	case s != gate.SignalWait && !h.amber.IsZero():
		h.g.w.notes.amber(time.Since(h.amber))
		h.amber = time.Time{}
	}
}

// Fired and Mark are the file on tmpfs.
func (p *proc) Fired(id ticket.ClaimID) bool { return p.was[id] }

func (p *proc) Mark(id ticket.ClaimID) error {
	if p.dead.Load() {
		return errors.New("the process has ended")
	}
	p.mu.Lock()
	p.marked = id
	p.mu.Unlock()
	p.g.mu.Lock()
	p.g.fired[id] = true
	p.g.mu.Unlock()
	p.g.w.notes.mark(id)
	p.die(beforeRelay)
	return nil
}

// running gives the process that runs, nil where none does. It may be called by
// timers.
func (g *Gate) running() *proc {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc == nil || g.proc.dead.Load() {
		return nil
	}
	return g.proc
}

func (p *proc) verdict(v ticket.Verdict) {
	if p.dead.Load() {
		return
	}
	p.g.mu.Lock()
	p.g.verdicts = append(p.g.verdicts, v)
	p.g.mu.Unlock()
	p.g.w.notes.verdict(p, v)
}

func (p *proc) result(r ticket.Result) {
	if p.dead.Load() {
		return
	}
	p.g.mu.Lock()
	p.g.results = append(p.g.results, r)
	p.g.mu.Unlock()
	p.g.w.notes.result(p, r)
}

// judgeFire holds what must be true of a claim when its relay moves: invariants 1
// and 2 of the protocol.
func (p *proc) judgeFire(id ticket.ClaimID) {
	w := p.g.w
	c, ok, err := p.store.Find(id)
	now := time.Now()
	switch {
	case id.IsZero() || err != nil || !ok:
		w.Errorf("%s moved its relay without a durable claim (%q, %v)", p.g.id, id, err)
		return
	case c.State != ticket.Pending:
		w.Errorf("%s moved its relay for %s, which is %s", p.g.id, id, c.State)
	case w.notes.hasFired(id):
		w.Errorf("%s moved its relay twice for %s", p.g.id, id)
	}
	p.g.mu.Lock()
	age := now.Sub(p.g.bootAt) - time.Duration(c.Claimed.Up)
	p.g.mu.Unlock()
	if age > 10*time.Second+time.Second/10 {
		w.Errorf("%s moved its relay for %s, %s after it was claimed", p.g.id, id, age)
	}
	p.judgeKnown(c, now)
}

func (p *proc) judgeKnown(c ticket.Claim, now time.Time) {
	v, err := p.store.View(c.Unit)
	if err != nil {
		p.g.w.Errorf("read unit: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[c.ID]
	heard := a.Answer
	if !a.at.Before(now) {
		heard = ticket.AnswerNone
	}
	if heard != ticket.AnswerNone && heard != ticket.AnswerFirst {
		p.g.w.Errorf("%s moved its relay for %s, and the ledger had said %q", p.g.id, c.ID, heard)
	}
	holders := map[ticket.ClaimID]ticket.Claim{}
	for _, k := range v.Claims {
		if k.Holds() {
			holders[k.Claim.ID] = k.Claim
		}
	}
	for id, k := range p.known[c.Unit] {
		if durable, ok := v.Find(id); !k.at.Before(now) || ok && !ticket.Wins(k.claim, durable.Claim) {
			continue
		}
		delete(holders, id)
		rev, ok := p.released[id]
		if (ticket.Known{Claim: k.claim, Released: ok && rev == k.claim.Rev}).Holds() {
			holders[id] = k.claim
		}
	}
	delete(holders, c.ID)
	for id, h := range holders {
		if a.Answer != ticket.AnswerFirst || h.State != ticket.Pending || h.Alone {
			p.g.w.Errorf("%s moved its relay for %s (answer %q), and %s was known to hold: %s, alone %v",
				p.g.id, c.ID, a.Answer, id, h.State, h.Alone)
		}
	}
}

// events is the gate as the wire sees it, as in cmd/gated, and takes note of what
// the gate knew when.
type events struct {
	*gate.Gate
	p *proc
}

func (e events) Learn(ctx context.Context, live bool, as []ticket.Arrival) error {
	e.p.sawEarly(as)
	if live {
		e.p.learned(as)
	}
	err := e.Gate.Learn(ctx, live, as)
	if err == nil && !live {
		e.p.learned(as)
	}
	return err
}

func (e events) Answered(a ticket.Answered) {
	e.p.mu.Lock()
	e.p.answers[a.Claim] = answer{a, time.Now()}
	e.p.mu.Unlock()
	if a.Answer == ticket.AnswerMismatch {
		e.p.g.w.notes.reach(pathMismatch)
	}
	e.Gate.Answered(a)
}

func (e events) OwnRunAhead(s ticket.Stream, pos uint64) {
	e.p.g.w.notes.reach(pathReverted)
	e.Forgot(fmt.Sprintf("others hold run %s of this device up to %d", s.Run, pos))
}

func (e events) CatchUpChanged(caughtUp bool) {
	if caughtUp {
		e.CaughtUp()
	}
}

// learned notes claims of others, and releases.
func (p *proc) learned(as []ticket.Arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range as {
		switch {
		case a.Record == nil:
		case a.Record.Claim != nil:
			c := *a.Record.Claim
			if p.known[c.Unit] == nil {
				p.known[c.Unit] = map[ticket.ClaimID]arrived{}
			}
			if was, ok := p.known[c.Unit][c.ID]; !ok || ticket.Wins(c, was.claim) {
				p.known[c.Unit][c.ID] = arrived{c, time.Now()}
			}
		case a.Record.Feed != nil && a.Record.Feed.Release != nil:
			p.released[a.Record.Feed.Release.Claim] = a.Record.Feed.Release.Rev
		}
	}
}

// sawEarly counts annulments that came before their claim.
func (p *proc) sawEarly(as []ticket.Arrival) {
	came := map[ticket.ClaimID]bool{}
	for _, a := range as {
		if a.Record == nil || a.Record.Claim == nil {
			continue
		}
		with := came[a.Record.Claim.ID]
		came[a.Record.Claim.ID] = true
		if with || a.Record.Claim.State != ticket.Annulled {
			continue
		}
		v, err := p.store.View(a.Record.Claim.Unit)
		if _, known := v.Find(a.Record.Claim.ID); err == nil && !known {
			p.g.w.notes.reach(pathAnnulFirst)
		}
	}
}

// network is the wire as the gate sees it, as in cmd/gated, and takes note of
// what is published.
type network struct {
	*wire.Gate
	p *proc
}

func (n network) Publish(r ticket.Record) {
	n.p.g.w.notes.published(n.p, r)
	n.Gate.Publish(r)
}

func (n network) Verdict(v ticket.Verdict) {
	if line, err := json.Marshal(v); err == nil {
		n.PublishVerdict(line)
	}
}

func (e events) LinkChanged() {
	e.p.g.w.logger(string(e.p.g.id)).Debug("link", "is", e.p.wire.Link().Word())
	e.Gate.LinkChanged()
}
