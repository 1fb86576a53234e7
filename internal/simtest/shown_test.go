package simtest

import (
	"context"
	"slices"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// checkShown shows tickets at a gate, after everything is level: what was used is
// refused with the first time and place, and what was not is admitted (invariant
// 10, G6). Of very many, it shows an even choice.
func (w *World) checkShown() {
	w.t.Helper()
	every := 1 + len(w.minted)/200
	for i, tk := range slices.Clone(w.minted) {
		if tk.Unit.Event != today || i%every > 0 {
			continue
		}
		g := w.gates[i/every%len(w.gates)]
		want, cite := w.due(g, tk.Unit)
		g.Passage(0, 200*time.Millisecond)
		g.Look(0, tk)
		w.Wait(1700 * time.Millisecond)
		got := g.Last(tk)
		if got.Reason != want {
			w.Errorf("ticket %s shown at %s: %s, want %s: %s", tk.Unit.Ticket, g.id, got.Reason, want, w.story(tk.Unit))
		} else if want == ticket.AlreadyUsed && (got.FirstGate != cite.Place || !got.FirstSeen.Equal(cite.Claimed.Time())) {
			w.Errorf("ticket %s at %s cites %s at %s, want %s at %s", tk.Unit.Ticket, g.id, got.FirstGate, got.FirstSeen, cite.Place, cite.Claimed.Time())
		}
	}
}

// due is how a gate that knows everything treats a ticket.
func (w *World) due(g *Gate, u ticket.Unit) (ticket.Reason, ticket.Claim) {
	v := g.View(u)
	if v.Revoked {
		return ticket.Revoked, ticket.Claim{}
	}
	h, held := v.Holder(ticket.ClaimID{})
	if !held {
		return ticket.OK, ticket.Claim{}
	}
	return ticket.AlreadyUsed, h.Claim
}

// lastPaths counts the paths that show in the end only.
func (w *World) lastPaths(units []ticket.Unit) {
	states := map[string]ticket.Claim{}
	for _, u := range units {
		for _, r := range w.ledger.Claims(u) {
			states[r.Claim.ID.String()] = r.Claim
		}
	}
	for _, a := range w.ledger.AllAlarms(ledger.AlarmOverdue) {
		if s := states[a.Claim].State; s == ticket.Annulled || s == ticket.Refused {
			w.notes.reach(pathOverdue)
		}
	}
	for _, c := range w.ledger.AllConflicts() {
		announced, err := time.Parse(ticket.TimeFormat, c.Announced)
		for _, s := range append(c.Others, c.First) {
			at := w.notes.corrected[states[s.Claim].ID]
			if err == nil && at.After(announced) {
				w.notes.reach(pathCorrected)
			}
		}
	}
	for id, rev := range w.released {
		if states[id.String()].Rev > rev {
			w.notes.reach(pathReleased)
		}
	}
}

// tally logs what became of all claims, so that a test that reaches nothing shows.
func (w *World) tally() {
	count := map[ticket.State]int{}
	for _, u := range w.units() {
		for _, r := range w.ledger.Claims(u) {
			count[r.Claim.State]++
		}
	}
	w.notes.mu.Lock()
	defer w.notes.mu.Unlock()
	w.t.Logf("%d tickets, claims %v, %d fired, %d passed, %d conflicts", len(w.minted), count, len(w.notes.fired), len(w.notes.passed), len(w.ledger.AllConflicts()))
	for p, n := range w.notes.paths {
		if n > 0 {
			w.t.Logf("%6d %s", n, pathNames[p])
		}
	}
}

// reached gives the counts of the paths.
func (w *World) reached() [paths]int {
	w.notes.mu.Lock()
	defer w.notes.mu.Unlock()
	return w.notes.paths
}

// Release is a supervisor's word at the ledger that a claim does not hold.
func (w *World) Release(id ticket.ClaimID) error {
	u := ticket.Unit{}
	for _, tk := range w.minted {
		for _, r := range w.ledger.Claims(tk.Unit) {
			if r.Claim.ID == id {
				u = tk.Unit
			}
		}
	}
	before := w.ledger.Claims(u)
	if err := w.ledger.Release(context.Background(), id, "supervisor", ""); err != nil {
		return err
	}
	for _, r := range before {
		if r.Claim.ID == id {
			w.released[id] = r.Claim.Rev
		}
	}
	return nil
}
