package simtest

import (
	"sync"
	"time"

	"admitone/internal/ticket"
)

// notes are what a bystander with a notebook saw: which relay moved for which
// claim, who went through, and what every gate published.
type notes struct {
	w *World

	mu        sync.Mutex
	claims    map[ticket.ClaimID]ticket.Claim // as published last
	final     map[ticket.ClaimID]ticket.Claim // as published last before its store was lost
	contents  map[ticket.Ref]ticket.Claim     // of each revision
	fired     map[ticket.ClaimID]time.Time
	marked    map[ticket.ClaimID]bool
	passed    map[ticket.ClaimID]time.Time
	unseen    map[ticket.ClaimID]bool // passed when the process that had fired was gone, or went before it could say so
	taken     map[ticket.ClaimID]bool // back, by staff or a supervisor
	corrected map[ticket.ClaimID]time.Time
	waited    map[ticket.ClaimID]time.Time // amber with an open claim
	amberMost time.Duration
	shown     map[shownKey]*shown
	paths     [paths]int
	history   []happened
}

// shownKey tells presentations apart.
type shownKey struct {
	p            *proc
	lane, ticket string // as verdicts name them
}

// shown is a ticket at a lane.
type shown struct {
	last    time.Time // look
	waiting bool
	green   bool // in this presentation
	fires   int  // in this presentation
}

// path is something that some seed must reach (protocol.md, invariant 13).
type path int

const (
	pathYield      path = iota // crossing claims, the later one gives up
	pathStay                   // crossing claims, the earlier one waits
	pathHerd                   // several wait when a claim is annulled
	pathUnanswered             // fired without an answer
	pathAnnulFirst             // an annulment arrives before its claim
	pathLate                   // late passage
	pathOverdue                // overdue, then annulled or refused
	pathOverridden             // the ledger said first, a peer's claim prevailed
	pathMismatch
	pathAside     // a record set aside is passed
	pathReverted  // an own run is ahead elsewhere
	pathCorrected // a time corrected after its conflict
	pathReleased  // released, and then a late result
	paths
)

var pathNames = [paths]string{"crossing: yield", "crossing: wait", "herd after an annul", "fired without answer", "annul before claim",
	"late passage", "overdue, then freed", "first overridden by a peer", "mismatch", "set aside, passed", "run reverted",
	"correction after a conflict", "release, then late result"}

func (n *notes) begin(w *World) {
	n.w = w
	n.final = map[ticket.ClaimID]ticket.Claim{}
	n.claims, n.contents = map[ticket.ClaimID]ticket.Claim{}, map[ticket.Ref]ticket.Claim{}
	n.fired, n.passed = map[ticket.ClaimID]time.Time{}, map[ticket.ClaimID]time.Time{}
	n.marked, n.taken, n.unseen = map[ticket.ClaimID]bool{}, map[ticket.ClaimID]bool{}, map[ticket.ClaimID]bool{}
	n.corrected, n.waited = map[ticket.ClaimID]time.Time{}, map[ticket.ClaimID]time.Time{}
	n.shown = map[shownKey]*shown{}
}

func (n *notes) reach(p path) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paths[p]++
}

func (n *notes) mark(id ticket.ClaimID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.marked[id] = true
}

func (n *notes) hasFired(id ticket.ClaimID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.fired[id].IsZero()
}

// fire notes a relay command; one presentation has at most one (invariant 12).
func (n *notes) fire(p *proc, lane int, id ticket.ClaimID) {
	g := p.g
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fired[id] = time.Now()
	s := n.shown[shownKey{p, g.lanes[lane].name(), n.claims[id].Unit.Ticket.String()}]
	if s == nil {
		n.w.Errorf("%s moved its relay for %s, which nobody shows", g.id, id)
		return
	}
	if s.fires++; s.fires > 1 {
		n.w.Errorf("%s moved its relay %d times for one presentation of %s", g.id, s.fires, n.claims[id].Unit.Ticket)
	}
}

func (n *notes) pass(p *proc, id ticket.ClaimID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.passed[id] = time.Now()
	n.unseen[id] = p.dead.Load()
	time.AfterFunc(10*n.w.setup.disk, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.unseen[id] = n.unseen[id] || p.dead.Load() && n.claims[id].State != ticket.Admitted
	})
}

func (n *notes) tookBack(id ticket.ClaimID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken[id] = true
}

func (n *notes) amber(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.amberMost = max(n.amberMost, d)
}

// rearm is less than the gates' own by a little: what is shown again after longer
// may be a new presentation.
const rearm = 1400 * time.Millisecond

func (n *notes) looked(p *proc, lane int, tk Ticket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := shownKey{p, p.lanes[lane].name(), tk.Unit.Ticket.String()}
	s := n.shown[k]
	if s == nil {
		s = &shown{}
		n.shown[k] = s
	}
	if time.Since(s.last) > rearm {
		s.green, s.fires = false, 0
	}
	s.last = time.Now()
	n.history = append(n.history, happened{at: s.last, gate: p.g.n, ticket: k.ticket, what: "look"})
}

func (n *notes) verdict(p *proc, v ticket.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.shown[shownKey{p, v.Lane, v.Ticket}]; s != nil {
		s.waiting = v.Reason == ticket.InProgress
		if v.Verdict == ticket.Refuse && s.green && v.Reason != ticket.Fault {
			n.w.Errorf("%s shows red (%s) after its own green, for %s", p.g.id, v.Reason, v.Ticket)
		}
		s.green = s.green || v.Verdict == ticket.Admit
	}
	n.history = append(n.history, happened{at: time.Now(), gate: p.g.n, ticket: v.Ticket, what: string(v.Reason)})
	id, err := ticket.ParseClaimID(v.Claim)
	if err != nil {
		return
	}
	since, waited := n.waited[id]
	switch {
	case v.Reason == ticket.InProgress && !waited:
		n.waited[id] = time.Now()
	case waited && time.Now().After(since):
		n.paths[pathStay]++
	}
}

func (n *notes) result(p *proc, r ticket.Result) {
	if r.Result != ticket.Annulled {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history = append(n.history, happened{at: time.Now(), gate: p.g.n, ticket: r.Ticket, what: annulled})
	waiting := 0
	for k, s := range n.shown {
		if s.waiting && k.ticket == r.Ticket && !k.p.dead.Load() {
			waiting++
		}
	}
	if waiting > 1 {
		n.paths[pathHerd]++
	}
}

// published notes a gate's own record; a revision has one content (invariant 4).
func (n *notes) published(p *proc, r ticket.Record) {
	if r.Claim == nil || p.dead.Load() {
		return
	}
	c := *r.Claim
	p.mu.Lock()
	said := p.answers[c.ID].Answer
	p.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := ticket.Ref{Claim: c.ID, Rev: c.Rev}
	if was, ok := n.contents[at]; ok && ticket.Forked(was, c) && !p.g.hasLost(c.ID.Run) {
		n.w.Errorf("%s published two contents of %s rev %d", p.g.id, c.ID, c.Rev)
	}
	n.contents[at] = c
	was, ok := n.claims[c.ID]
	n.claims[c.ID] = c
	if !p.g.hasLost(c.ID.Run) {
		n.final[c.ID] = c
	}
	n.notePaths(was, ok, c, said)
}

func (n *notes) notePaths(was ticket.Claim, ok bool, c ticket.Claim, said ticket.Answer) {
	since, waited := n.waited[c.ID]
	switch {
	case c.State == ticket.Pending && c.Rev > 0 && c.Alone && !was.Alone:
		n.paths[pathUnanswered]++
	case c.State == ticket.Refused && said == ticket.AnswerFirst && (c.Reason == ticket.AlreadyUsed || waited):
		n.paths[pathOverridden]++
	case c.State == ticket.Refused && said == ticket.AnswerNone && waited && !time.Now().After(since.Add(n.w.setup.disk)):
		n.paths[pathYield]++
	case c.State == ticket.Admitted && ok && was.State == ticket.Annulled:
		n.paths[pathLate]++
	}
	if ok && was.Claimed.Class == ticket.Untrusted && c.Claimed.Class == ticket.Trusted {
		if !n.corrected[c.ID].IsZero() {
			n.w.Errorf("%s was corrected twice", c.ID)
		}
		n.corrected[c.ID] = time.Now()
	}
}
