package ticket

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A small model of gates that see one ticket at about the same time, with the
// real Blocked, Decide and Wins. It goes in ticks; a message takes up to maxDelay
// of them, and a gate decides on the ledger's answer or after twice that
// (protocol.md, peer_patience). Clocks are skewed, some untrusted and corrected
// in the middle of it; answers of the ledger get lost.

const (
	maxDelay = 4
	patience = 2 * maxDelay
	ending   = 60 * patience // by then everything has been decided
)

type modelMessage struct {
	at, to int
	claim  Claim
	answer Answer // with an answer, the claim only names whose it is
}

type modelGate struct {
	known   map[ClaimID]Claim
	own     ClaimID // the claim that is open, zero: none
	made    int     // the tick of its rev 0
	answer  Answer
	fired   int // the tick, 0: not fired
	pos     uint64
	skew    int64
	correct int // the tick at which an untrusted clock becomes trusted
	through bool
	refused bool
	yields  int
}

type model struct {
	t      *rapid.T
	now    int
	gates  []*modelGate
	wire   []modelMessage
	ledger map[ClaimID]Claim // nil: the ledger is gone
	stored map[ClaimID]Answer
	fires  int
	annuls int // how many more passages fail
}

const ledgerNode = -1

func newModel(t *rapid.T) *model {
	m := &model{t: t, stored: map[ClaimID]Answer{}, annuls: rapid.IntRange(0, 2).Draw(t, "annuls")}
	if rapid.Bool().Draw(t, "ledger") {
		m.ledger = map[ClaimID]Claim{}
	}
	for range rapid.IntRange(2, 3).Draw(t, "gates") {
		m.gates = append(m.gates, &modelGate{
			known: map[ClaimID]Claim{}, skew: rapid.Int64Range(-9, 9).Draw(t, "skew"),
			correct: rapid.IntRange(0, 3*patience).Draw(t, "correct"),
		})
	}
	return m
}

func (m *model) delay() int { return rapid.IntRange(0, maxDelay).Draw(m.t, "delay") }

// write stores a revision at its gate, then sends it to everybody, sometimes
// twice.
func (m *model) write(g int, c Claim) {
	m.gates[g].known[c.ID] = c
	for to := ledgerNode; to < len(m.gates); to++ {
		if to == g {
			continue
		}
		for range rapid.IntRange(1, 2).Draw(m.t, "copies") {
			m.wire = append(m.wire, modelMessage{at: m.now + m.delay(), to: to, claim: c})
		}
	}
}

func (m *model) stamp(g int) Stamp {
	s := Stamp{Class: Trusted, Wall: int64(m.now)}
	if m.now < m.gates[g].correct {
		s.Class, s.Wall = Untrusted, int64(m.now)+m.gates[g].skew
	}
	return s
}

func view(known map[ClaimID]Claim, stored map[ClaimID]Answer) View {
	var v View
	for id, c := range known {
		v.Claims = append(v.Claims, Known{Claim: c, Unanswered: stored != nil && stored[id] != AnswerFirst})
	}
	return v
}

func learn(known map[ClaimID]Claim, c Claim) {
	if old, ok := known[c.ID]; !ok || Wins(c, old) {
		known[c.ID] = c
	}
}

func (m *model) deliver() {
	due := slices.DeleteFunc(slices.Clone(m.wire), func(w modelMessage) bool { return w.at > m.now })
	m.wire = slices.DeleteFunc(m.wire, func(w modelMessage) bool { return w.at <= m.now })
	for _, w := range due {
		switch {
		case w.answer != AnswerNone:
			if g := m.gates[w.to]; g.own == w.claim.ID {
				g.answer = w.answer
			}
		case w.to != ledgerNode:
			learn(m.gates[w.to].known, w.claim)
		case m.ledger != nil:
			m.ask(w.claim)
		}
	}
}

// ask is the ledger's transaction; a published rev 0 stands for the ask.
func (m *model) ask(c Claim) {
	learn(m.ledger, c)
	if c.Rev > 0 {
		return
	}
	answer, stored := m.stored[c.ID]
	if !stored {
		answer = AnswerFirst
		if h, held := view(m.ledger, m.stored).Holder(c.ID); held {
			answer = AnswerSeen
			if h.Claim.State == Pending {
				answer = AnswerInProgress
			}
		}
		if m.ledger[c.ID].State != Pending {
			answer = AnswerSettled
		}
		m.stored[c.ID] = answer
	}
	if rapid.IntRange(0, 2).Draw(m.t, "answer_lost") > 0 {
		g := slices.IndexFunc(m.gates, func(g *modelGate) bool { return g.own == c.ID })
		if g >= 0 {
			m.wire = append(m.wire, modelMessage{at: m.now + m.delay(), to: g, claim: c, answer: answer})
		}
	}
}

func (m *model) step(i int) {
	g := m.gates[i]
	switch {
	case g.through || g.refused:
	case g.own.IsZero():
		m.claim(i)
	case g.fired > 0:
		if m.now > g.fired+patience {
			m.passage(i)
		}
	default:
		m.correctClock(i)
		if g.answer != AnswerNone || m.now >= g.made+patience {
			m.decide(i)
		}
	}
}

func (m *model) claim(i int) {
	g := m.gates[i]
	v := view(g.known, nil)
	switch reason, _ := v.Blocked(); {
	case reason == AlreadyUsed:
		g.refused = true
	case reason == OK && rapid.IntRange(0, 2).Draw(m.t, "shown") == 0:
		g.pos++
		g.own = ClaimID{Gate: Source(fmt.Sprint("gate-", i)), Run: 1, Pos: g.pos}
		g.made, g.answer = m.now, AnswerNone
		m.write(i, Claim{ID: g.own, State: Pending, Claimed: m.stamp(i), After: v.Freed()})
	}
}

// correctClock writes the one correction of an untrusted stamp.
func (m *model) correctClock(i int) {
	c := m.gates[i].known[m.gates[i].own]
	if c.Claimed.Class == Untrusted && m.now >= m.gates[i].correct {
		c.Rev++
		c.Claimed = Stamp{Class: Trusted, Wall: int64(m.gates[i].made)}
		m.write(i, c)
	}
}

func (m *model) settle(i int, s State) {
	c := m.gates[i].known[m.gates[i].own]
	c.Rev++
	c.State = s
	m.write(i, c)
}

func (m *model) decide(i int) {
	g := m.gates[i]
	switch d := Decide(Case{
		Own: g.own, View: view(g.known, nil), Answer: g.answer, Looked: true, InTime: true, Ready: true, Normal: true,
	}); d.Step {
	case Open:
		m.fires++
		for j, other := range m.gates {
			if j != i && (other.through || other.fired > 0) {
				m.t.Fatalf("tick %d: gate %d opens while gate %d has", m.now, i, j)
			}
		}
		g.fired = m.now + 1
		if g.answer == AnswerNone {
			c := g.known[g.own]
			c.Rev, c.Alone = c.Rev+1, true
			m.write(i, c)
		}
	case Deny:
		g.refused = d.Reason == AlreadyUsed
		m.settle(i, Refused)
		g.own = ClaimID{}
	case Yield:
		g.yields++
		m.settle(i, Refused)
		g.own = ClaimID{}
	}
}

// passage ends a fire: somebody went through, or nobody did and the ticket is
// free again.
func (m *model) passage(i int) {
	g := m.gates[i]
	g.fired = 0
	if m.annuls == 0 {
		g.through = true
		m.settle(i, Admitted)
		return
	}
	m.annuls--
	m.settle(i, Annulled)
	g.own = ClaimID{}
}

func TestCrossingClaims(t *testing.T) {
	yields, crossed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for m.now = 1; m.now < ending; m.now++ {
			m.deliver()
			open := 0
			for _, i := range rapid.Permutation(indices(len(m.gates))).Draw(t, "order") {
				m.step(i)
				if !m.gates[i].own.IsZero() {
					open++
				}
			}
			if open > 1 {
				crossed++
			}
			if m.settled() {
				break
			}
		}
		through := 0
		for _, g := range m.gates {
			yields += g.yields
			if g.through {
				through++
			}
		}
		if through != 1 || !m.settled() {
			t.Fatalf("after %d ticks %d went through, %d fires; want one, and everybody decided", m.now, through, m.fires)
		}
		if c, ok := DeriveConflict(view(m.gates[0].known, nil)); ok {
			t.Fatalf("conflict of one admission: %+v", c)
		}
	})
	if yields == 0 || crossed == 0 {
		t.Errorf("%d yields, %d ticks of crossing claims: the test did not reach what it is for", yields, crossed)
	}
}

func (m *model) settled() bool {
	return !slices.ContainsFunc(m.gates, func(g *modelGate) bool { return !g.through && !g.refused })
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Of claims that know of each other, with at most one answered first, one at
// most opens, and never do all of them yield: there is always one that opens or
// stays until it can.
func TestCrossingClaimsNeverAllYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v View
		n := rapid.IntRange(2, 4).Draw(t, "claims")
		for i := range n {
			c := drawClaim(t)
			c.ID, c.State, c.Rev = ClaimID{Gate: Source(fmt.Sprint("gate-", i)), Run: 1, Pos: 1}, Pending, 0
			v.Claims = append(v.Claims, Known{Claim: c})
		}
		first := rapid.IntRange(-1, n-1).Draw(t, "answered_first")
		steps := map[Step]int{}
		for i, k := range v.Claims {
			answer := AnswerNone
			if i == first {
				answer = AnswerFirst
			}
			d := Decide(Case{
				Own: k.Claim.ID, View: shuffled(t, v), Answer: answer, Looked: true, InTime: true, Ready: true, Normal: true,
			})
			steps[d.Step]++
		}
		if steps[Open] > 1 || steps[Open]+steps[Stay] == 0 || steps[Stay] > 1 {
			t.Fatalf("%d open, %d stay, %d yield; want one that opens or stays", steps[Open], steps[Stay], steps[Yield])
		}
		if first < 0 && (steps[Open] != 0 || steps[Stay] != 1) {
			t.Fatalf("without the ledger %d open and %d stay, want one that stays", steps[Open], steps[Stay])
		}
	})
}
