package simtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// check holds the protocol's invariants after a heal: everything must be level,
// the conflicts must be the doubles that truly happened, and every ticket must be
// treated as what happened to it asks.
func (w *World) check() {
	w.t.Helper()
	ledgertest.Check(w.t, w.ledger.Store())
	units := w.units()
	for _, u := range units {
		w.checkLevel(u)
		w.checkTruth(u)
	}
	w.checkCursors()
	w.checkAnswers(units)
	w.checkConflicts(units)
	w.checkAmber()
	w.lastPaths(units)
	w.tally()
}

func (w *World) units() (out []ticket.Unit) {
	for _, tk := range w.minted {
		out = append(out, tk.Unit)
	}
	return out
}

// checkLevel: every node has the same revision of every claim (invariant 7), and
// nothing is open any more.
func (w *World) checkLevel(u ticket.Unit) {
	w.t.Helper()
	want := map[ticket.ClaimID]ticket.Claim{}
	for _, r := range w.ledger.Claims(u) {
		want[r.Claim.ID] = r.Claim
		if r.Claim.State == ticket.Pending {
			w.Errorf("%s of %s is pending still", r.Claim.ID, u.Ticket)
		}
	}
	for _, g := range w.gates {
		got := map[ticket.ClaimID]ticket.Claim{}
		for _, k := range g.View(u).Claims {
			got[k.Claim.ID] = k.Claim
		}
		for id, c := range want {
			if h, ok := got[id]; !ok || h.Rev != c.Rev || ticket.Forked(c, h) {
				w.Errorf("ticket %s: %s has %s at rev %d (%s; %v), the ledger at rev %d (%s)", u.Ticket, g.id, id, h.Rev, h.State, ok, c.Rev, c.State)
			}
			delete(got, id)
		}
		for id := range got {
			w.Errorf("ticket %s: the ledger lacks %s, which %s has", u.Ticket, id, g.id)
		}
	}
}

// unknown reports whether what became of a claim stood in a store that was lost,
// and reached nobody: c is the last revision that anybody has. The notes are held.
func (w *World) unknown(c ticket.Claim) bool {
	lost := slices.ContainsFunc(w.gates, func(g *Gate) bool { return g.hasLost(c.ID.Run) })
	return lost && w.notes.final[c.ID].Rev >= c.Rev && w.notes.final[c.ID].State != c.State
}

// checkTruth compares a unit's records with what happened at the turnstiles.
func (w *World) checkTruth(u ticket.Unit) {
	w.t.Helper()
	n := &w.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range w.ledger.Claims(u) {
		c := r.Claim
		_, passed := n.passed[c.ID]
		switch {
		case c.State == ticket.Admitted && !passed:
			w.Errorf("%s says admitted, and nobody went through", c.ID)
		case c.State == ticket.Presumed && !n.marked[c.ID] && !w.rebooted(c):
			w.Errorf("%s says presumed, and never fired", c.ID)
		case (c.State == ticket.Refused || c.State == ticket.Annulled) && passed && !n.taken[c.ID] && !n.unseen[c.ID] && !w.unknown(c):
			w.Errorf("%s says %s, and somebody went through at %s", c.ID, c.State, n.passed[c.ID])
		}
	}
}

// rebooted reports whether the gate of a claim has another boot than it was made
// in: then nobody can know whether it fired.
func (w *World) rebooted(c ticket.Claim) bool {
	for _, g := range w.gates {
		if g.id == c.ID.Gate {
			return g.boot != c.Claimed.Boot
		}
	}
	return true
}

// checkCursors: every high-water is its head (invariant 7), at the ledger and at
// every gate.
func (w *World) checkCursors() {
	w.t.Helper()
	high := w.ledger.Streams()
	for s, r := range high {
		if r.High != r.Head || r.Top != r.High {
			w.Errorf("the ledger has run %s/%s up to %d of %d", s.Source, s.Run, r.High, r.Head)
		}
	}
	for _, g := range w.gates {
		own, err := g.proc.store.Own()
		if err != nil {
			w.t.Fatal(err)
		}
		receipts, err := g.proc.store.Receipts()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, p := range own {
			if got := high[p.Stream()].High; got != p.Pos {
				w.Errorf("the ledger has run %s/%s up to %d, its gate up to %d", p.Source, p.Run, got, p.Pos)
			}
			i := slices.IndexFunc(receipts, func(r ticket.StreamPos) bool { return r.Stream() == p.Stream() })
			if p.Pos > 0 && (i < 0 || receipts[i].Pos != p.Pos) {
				w.Errorf("%s has a receipt for run %s that is not %d: %v", g.id, p.Run, p.Pos, receipts)
			}
		}
		w.checkHeld(g, own, high)
	}
}

func (w *World) checkHeld(g *Gate, own []ticket.StreamPos, high map[ticket.Stream]ledger.StreamRow) {
	w.t.Helper()
	cursors, err := g.proc.store.Cursors()
	if err != nil {
		w.t.Fatal(err)
	}
	held := map[ticket.Stream]uint64{}
	for _, p := range slices.Concat(own, cursors) {
		held[p.Stream()] = p.Pos
	}
	for s, r := range high {
		if held[s] != r.High {
			w.Errorf("%s has run %s/%s up to %d, the ledger up to %d", g.id, s.Source, s.Run, held[s], r.High)
		}
	}
}

// checkAnswers: what the ledger answered is stored for good.
func (w *World) checkAnswers(units []ticket.Unit) {
	w.t.Helper()
	stored := map[ticket.ClaimID]ticket.Answer{}
	for _, u := range units {
		for _, r := range w.ledger.Claims(u) {
			stored[r.Claim.ID] = r.Answer
		}
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for id, a := range w.ledger.answers {
		if stored[id] != a {
			w.Errorf("the ledger answered %q about %s, and %q is stored", a, id, stored[id])
		}
	}
}

// checkConflicts: the units with a conflict that is not withdrawn are those that
// truly were entered twice (invariant 8), and each was announced once.
func (w *World) checkConflicts(units []ticket.Unit) {
	w.t.Helper()
	found := map[string]ledger.Conflict{}
	for _, c := range w.ledger.AllConflicts() {
		if c.State != ledger.ConflictWithdrawn {
			found[c.ID] = c
		}
	}
	for _, u := range units {
		c, reported := found[ticket.ConflictID(u)]
		delete(found, c.ID)
		truly := w.doubles(u, func(ticket.Claim) bool { return true })
		provably := w.doubles(u, func(c ticket.Claim) bool {
			return c.State == ticket.Admitted || c.State == ticket.Presumed || !w.unknown(c)
		})
		switch {
		case provably && !reported:
			w.Errorf("ticket %s was entered twice, and no conflict says so: %s", u.Ticket, w.story(u))
		case reported && c.Certain && !truly:
			w.Errorf("ticket %s is reported as a certain conflict, and was not entered twice: %s", u.Ticket, w.story(u))
		case reported && !c.Certain && !w.possibly(u):
			w.Errorf("ticket %s is reported as a possible conflict, and nothing of it is presumed: %s", u.Ticket, w.story(u))
		}
		if reported {
			w.checkFirst(u, c)
		}
	}
	for id := range found {
		w.Errorf("a conflict %s of no ticket that was sold", id)
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for id, times := range w.ledger.announced {
		if times > 1 && !w.ledger.restored {
			w.Errorf("conflict %s was announced %d times", id, times)
		}
	}
}

// doubles reports whether two people went through on a unit by claims, of those
// that count, of which neither was taken back, nor made on the word that the other
// was.
func (w *World) doubles(u ticket.Unit, counts func(ticket.Claim) bool) bool {
	w.notes.mu.Lock()
	defer w.notes.mu.Unlock()
	var sides []ticket.Claim
	for _, r := range w.ledger.Claims(u) {
		c := r.Claim
		_, passed := w.notes.passed[c.ID]
		rev, released := w.released[c.ID]
		back := w.notes.taken[c.ID] || released && rev == c.Rev
		lost := !counts(c) || w.notes.unseen[c.ID] && (c.State == ticket.Annulled || c.State == ticket.Refused)
		if passed && !back && !lost {
			sides = append(sides, c)
		}
	}
	for i, a := range sides {
		for _, b := range sides[i+1:] {
			if !freed(a, b) && !freed(b, a) {
				return true
			}
		}
	}
	return false
}

func freed(by, c ticket.Claim) bool {
	return slices.Contains(by.After, ticket.Ref{Claim: c.ID, Rev: c.Rev})
}

func (w *World) possibly(u ticket.Unit) bool {
	return slices.ContainsFunc(w.ledger.Claims(u), func(r ledger.ClaimRow) bool { return r.Claim.State == ticket.Presumed })
}

// checkFirst: the first of a conflict is the smallest of its claims, by records
// alone.
func (w *World) checkFirst(u ticket.Unit, c ledger.Conflict) {
	w.t.Helper()
	var sides []ticket.Claim
	for _, r := range w.ledger.Claims(u) {
		if id := r.Claim.ID.String(); id == c.First.Claim || slices.ContainsFunc(c.Others, func(o ledger.ConflictSide) bool { return o.Claim == id }) {
			sides = append(sides, r.Claim)
		}
	}
	slices.SortFunc(sides, func(a, b ticket.Claim) int {
		return cmp.Or(cmp.Compare(a.Claimed.Class, b.Claimed.Class), cmp.Compare(a.Claimed.Wall, b.Claimed.Wall), a.ID.Compare(b.ID))
	})
	if len(sides) != len(c.Others)+1 || sides[0].ID.String() != c.First.Claim {
		w.Errorf("ticket %s: conflict %+v, of claims %s", u.Ticket, c, w.story(u))
	}
}

// checkAmber: nobody looks at amber beyond a claim's lease (invariant 6), and at
// the end nobody does.
func (w *World) checkAmber() {
	w.t.Helper()
	const lease, bound = 25 * time.Second, 2 * time.Second
	w.notes.mu.Lock()
	most := w.notes.amberMost
	w.notes.mu.Unlock()
	if !w.crowded && most > lease+time.Second+bound {
		w.Errorf("somebody looked at amber for %s", most)
	}
	for _, g := range w.gates {
		s := g.Status()
		for i, l := range s.Lanes {
			g.mu.Lock()
			amber := g.lanes[i].amber
			g.mu.Unlock()
			if len(l.Open) > 0 || !amber.IsZero() {
				w.Errorf("lane %s of %s has open claims %v, amber since %s", l.Name, g.id, l.Open, amber)
			}
		}
	}
}

// story tells what became of a unit, for messages.
func (w *World) story(u ticket.Unit) (out []string) {
	for _, r := range w.ledger.Claims(u) {
		c := r.Claim
		line := c.ID.String() + " " + c.State.String() + " rev " + fmt.Sprint(c.Rev) + " answer " + string(r.Answer)
		if at, ok := w.notes.passed[c.ID]; ok {
			line += " passed " + at.Sub(w.born).String()
		}
		if at, ok := w.notes.fired[c.ID]; ok {
			line += " fired " + at.Sub(w.born).String()
		}
		out = append(out, line)
	}
	return out
}
