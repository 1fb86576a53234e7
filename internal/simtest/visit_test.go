package simtest

import (
	"context"
	"errors"
	"time"

	"admitone/internal/gate"
	"admitone/internal/ticket"
)

// Look shows a ticket once at a lane, as a scanner module reads it.
func (g *Gate) Look(lane int, tk Ticket) {
	if g.proc == nil {
		return
	}
	g.w.notes.looked(g.proc, lane, tk)
	g.proc.gate.Look(lane, gate.Look{Text: tk.Text, At: time.Now(), Line: true})
}

// Hold keeps a ticket in a camera's view for a time, ten frames a second, and
// returns at once.
func (g *Gate) Hold(lane int, tk Ticket, d time.Duration) {
	p := g.proc
	go func() {
		for end := time.Now().Add(d); p != nil && !p.dead.Load() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			g.w.notes.looked(p, lane, tk)
			p.gate.Look(lane, gate.Look{Text: tk.Text, At: time.Now()})
		}
	}()
}

// Annul takes an admission back on the word of staff.
func (g *Gate) Annul(id ticket.ClaimID) error {
	if g.proc == nil {
		return errors.New("the gate is down")
	}
	err := g.proc.gate.Annul(context.Background(), id, "staff")
	if err == nil {
		g.w.notes.tookBack(id)
	}
	return err
}

// Status asks the loop.
func (g *Gate) Status() gate.Status {
	g.w.t.Helper()
	s, err := g.proc.gate.Status(context.Background())
	if err != nil {
		g.w.t.Fatal(err)
	}
	return s
}

// WaitReady waits until the gate has a programme and has caught up.
func (g *Gate) WaitReady(most time.Duration) {
	g.w.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); g.w.Wait(50 * time.Millisecond) {
		if s := g.Status(); s.Programme > 0 && !s.Amnesia {
			return
		}
	}
	g.w.t.Fatalf("%s is not ready: %+v", g.id, g.Status())
}

// Said gives the verdicts about a ticket.
func (g *Gate) Said(tk Ticket) (out []ticket.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.verdicts {
		if v.Ticket == tk.Unit.Ticket.String() {
			out = append(out, v)
		}
	}
	return out
}

// Last gives the last verdict about a ticket.
func (g *Gate) Last(tk Ticket) ticket.Verdict {
	said := g.Said(tk)
	if len(said) == 0 {
		return ticket.Verdict{}
	}
	return said[len(said)-1]
}

// Claim gives the id of the claim that a ticket's last admission was.
func (g *Gate) Claim(tk Ticket) ticket.ClaimID {
	said := g.Said(tk)
	for i := len(said) - 1; i >= 0; i-- {
		if said[i].Verdict == ticket.Admit {
			id, err := ticket.ParseClaimID(said[i].Claim)
			if err != nil {
				g.w.t.Fatal(err)
			}
			return id
		}
	}
	g.w.t.Fatalf("%s admitted no %s", g.id, tk.Unit.Ticket)
	return ticket.ClaimID{}
}

// View gives what the gate's store knows of a unit.
func (g *Gate) View(u ticket.Unit) ticket.View {
	v, err := g.proc.store.View(u)
	if err != nil {
		g.w.t.Fatal(err)
	}
	return v
}
