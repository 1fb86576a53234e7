package simtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// provocations bring each path of the protocol about that some seed must reach, at
// the beginning of a random schedule, which goes on from there. Chance reaches most of
// them, too; with these a bounded number of seeds reaches all.
var provocations = [paths]func(*chaos){
	pathYield: (*chaos).crossing, pathStay: (*chaos).crossing, pathHerd: (*chaos).herd, pathUnanswered: (*chaos).unanswered,
	pathAnnulFirst: (*chaos).annulFirst, pathLate: (*chaos).late, pathOverdue: (*chaos).overdue, pathOverridden: (*chaos).overridden,
	pathMismatch: (*chaos).copied, pathAside: (*chaos).aside, pathReverted: (*chaos).reverted, pathCorrected: (*chaos).corrected,
	pathReleased: (*chaos).released,
}

// tries is how many more seeds a path gets that the first ones missed: how goroutines
// of one instant take turns is not the seed's, and some paths hang on that.
const tries = 8

// TestPathsAreReached runs a fixed set of seeds, a few for each path, and fails
// where one of the paths of invariant 13 was not reached, nor by some more.
func TestPathsAreReached(t *testing.T) {
	var mu sync.Mutex
	var total [paths]int
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(perPath) * uint64(paths) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				got := randomWorld(t, seed)
				mu.Lock()
				defer mu.Unlock()
				for p, n := range got {
					total[p] += n
				}
			})
		}
	})
	for p := range total {
		for i := 0; total[p] == 0 && i < tries; i++ {
			seed := uint64(perPath+i)*uint64(paths) + uint64(p)
			t.Run(fmt.Sprint(seed), func(t *testing.T) { total[p] += randomWorld(t, seed)[p] })
		}
		t.Logf("%6d %s", total[p], pathNames[p])
		if total[p] == 0 {
			t.Errorf("no seed reached: %s", pathNames[p])
		}
	}
}

// crossing shows tickets at two gates at one instant, with nobody to order them.
func (c *chaos) crossing() {
	c.ledger.Cut()
	c.Wait(10 * time.Second)
	for range 4 {
		tk := c.Mint()
		c.gates[0].Look(0, tk)
		c.gates[1].Look(0, tk)
		c.Wait(4 * time.Second)
	}
	c.ledger.Heal()
}

// herd has the other gates wait for a ticket that nobody uses at a third.
func (c *chaos) herd() {
	tk := c.Mint()
	c.gates[0].Passage(0, -1)
	c.gates[0].Look(0, tk)
	c.Wait(time.Second)
	for _, g := range c.gates[1:] {
		g.Hold(0, tk, 14*time.Second)
	}
	c.Wait(20 * time.Second)
}

// deafTo lets the ledger hear no ask of a gate.
func (c *chaos) deafTo(g *Gate) {
	c.ledger.set(func(l *Ledger) { l.deaf = func(from ticket.Source) bool { return g != nil && from == g.id } })
}

func (c *chaos) unanswered() {
	c.deafTo(c.gates[0])
	c.gates[0].Look(0, c.Mint())
	c.Wait(2 * time.Second)
	c.deafTo(nil)
}

// annulFirst lets two gates hear of an annulment that did not hear of its claim.
func (c *chaos) annulFirst() {
	tk := c.Mint()
	for _, g := range c.gates[1:] {
		g.Hang()
	}
	c.gates[0].Passage(0, -1)
	c.gates[0].Look(0, tk)
	for len(c.gates[0].Said(tk)) == 0 {
		c.Wait(time.Millisecond)
	}
	c.Wait(11*time.Second - 20*time.Millisecond)
	for _, g := range c.gates[1:] {
		g.Heal()
	}
	c.Wait(3 * time.Second)
}

func (c *chaos) late() {
	c.gates[0].Passage(0, 20*time.Second)
	c.gates[0].Look(0, c.Mint())
	c.Wait(30 * time.Second)
}

// halfway leaves a claim pending that the ledger put first, at a gate that is down.
func (c *chaos) halfway() Ticket {
	tk, g := c.Mint(), c.gates[0]
	c.ledger.set(func(l *Ledger) { l.hold = func(from ticket.Source) bool { return from == g.id } })
	g.Look(0, tk)
	c.Wait(200 * time.Millisecond)
	g.Kill()
	c.ledger.set(func(l *Ledger) { l.hold = nil })
	c.Wait(30 * time.Second)
	return tk
}

func (c *chaos) overdue() {
	c.halfway()
	c.gates[0].Up()
	c.Wait(3 * time.Second)
}

// overridden has a gate fire without an answer, and tell another so before that one
// gets the ledger's word that it is first. The delays order what happens: the claims
// cross, the second ask is at the ledger before the first claim, and its answer at
// the second gate after it.
func (c *chaos) overridden() {
	a, b := c.gates[0], c.gates[1]
	far, farther := c.ledger.link, c.setup.link
	far.Delay, farther.Delay = 120*time.Millisecond, 80*time.Millisecond
	c.ledger.SetLink(far)
	c.deafTo(a)
	for range 3 {
		tk := c.Mint()
		c.Wait(5 * time.Second)
		a.Hang()
		a.Passage(0, 3*time.Second)
		a.Look(0, tk)
		c.Wait(50 * time.Millisecond)
		a.SetLink(farther)
		c.Wait(320 * time.Millisecond)
		b.Look(0, tk)
		c.Wait(5 * time.Second)
	}
	c.deafTo(nil)
	a.Heal()
	c.ledger.Heal()
}

// copied asks about a claim with another ticket.
func (c *chaos) copied() {
	c.gates[0].Look(0, c.Mint())
	c.Wait(3 * time.Second)
	c.Mint()
	c.forge(c.gates[0])
	c.Wait(time.Second)
}

func (c *chaos) aside() {
	c.damage(c.gates[0])
	c.Wait(10 * time.Second)
}

func (c *chaos) reverted() {
	c.gates[0].Look(0, c.Mint())
	c.Wait(10 * time.Second)
	c.gates[0].PutBack(nil)
	c.Wait(30 * time.Second)
}

// corrected has a gate in the wrong time tell the ledger of a double, while nothing
// tells it the time.
func (c *chaos) corrected() {
	a, b, tk := c.gates[0], c.gates[1], c.Mint()
	b.PowerCut()
	b.Clock(-24*time.Hour, false)
	b.SetLink(wiretest.Link{Cut: true})
	b.Up()
	a.Look(0, tk)
	c.Wait(10 * time.Second)
	b.Passage(0, 8*time.Second)
	b.Look(0, tk)
	c.Wait(3 * time.Second)
	b.SetLink(wiretest.Link{Delay: c.setup.link.Delay, Deaf: true})
	c.Wait(10 * time.Second)
	b.Heal()
	c.Wait(5 * time.Second)
}

// released has a supervisor free a claim whose gate comes back with its result.
func (c *chaos) released() {
	tk := c.halfway()
	for _, r := range c.ledger.Claims(tk.Unit) {
		if err := c.Release(r.Claim.ID); err != nil {
			c.t.Fatal(err)
		}
	}
	c.gates[0].PowerCut()
	c.gates[0].Up()
	c.Wait(5 * time.Second)
}
