package simtest

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/wire/wiretest"
)

// Random schedules: people, cuts, delays, losses, repeats, crashes, lost stores,
// wrong clocks and staff, by one seed; then everything is healed and checked.
//
//	SIM_SEED=n    runs that seed alone
//	SIM_SEEDS=n   runs so many seeds, however long it takes
//	SIM_LOG=1     prints what every node says
func TestRandomSchedules(t *testing.T) {
	from, to := uint64(1), uint64(seeds)
	began, most := time.Now(), budget
	if n := number(t, "SIM_SEEDS"); n > 0 {
		to, most = n, 24*time.Hour
	}
	if n := number(t, "SIM_SEED"); n > 0 {
		from, to = n, n
	}
	var mu sync.Mutex
	var total [paths]int
	ran := 0
	t.Run("seeds", func(t *testing.T) {
		for seed := from; seed <= to; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if time.Since(began) > most {
					return
				}
				got := randomWorld(t, seed)
				mu.Lock()
				defer mu.Unlock()
				ran++
				for i, n := range got {
					total[i] += n
				}
			})
		}
	})
	t.Logf("%d seeds in %s", ran, time.Since(began).Round(time.Second))
	for i, n := range total {
		t.Logf("%6d %s", n, pathNames[i])
	}
}

func number(t *testing.T, name string) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return n
}

func randomWorld(t *testing.T, seed uint64) (got [paths]int) {
	d := newDice(seed, 1)
	s := setup{gates: 3, ledgers: 1 + int(seed/2%2), lanes: 1 + d.N(2), disk: time.Duration(1+d.N(30)) * time.Millisecond,
		link: wiretest.Link{Delay: d.Span(20 * time.Millisecond), Jitter: time.Microsecond + d.Span(10*time.Millisecond)}}
	switch seed % 20 {
	case 5:
		s.gates = 2
	case 10:
		s.gates = 4 + d.N(7)
	}
	simulate(t, seed, s, func(w *World) {
		defer func() {
			if t.Failed() {
				t.Logf("replay with SIM_SEED=%d", seed)
			}
		}()
		w.crowded = true
		c := &chaos{World: w}
		provocations[seed%uint64(paths)](c)
		for range 40 {
			c.step()
		}
		c.over()
		w.check()
		w.permute(2)
		w.checkShown()
		got = w.reached()
	})
	return got
}

// chaos does one random thing after the other.
type chaos struct {
	*World
	ledgers []*kv.Mem // backups
	gateOld []*kv.Mem // of gates, by number; nil: none
}

// step lets something happen, mostly people, and time pass.
func (c *chaos) step() {
	for range 1 + c.dice.N(3) {
		c.visit()
	}
	if c.dice.Hit(2) {
		c.trouble()
	}
	most := 2 * time.Second
	if c.dice.Hit(8) {
		most = 30 * time.Second
	}
	c.Wait(c.dice.Span(most))
}

// visit shows a new ticket, or one that was around lately, at one gate or several.
func (c *chaos) visit() {
	var tk Ticket
	if recent := c.minted[max(0, len(c.minted)-5):]; len(recent) > 0 && c.dice.Hit(2) {
		tk = recent[c.dice.N(len(recent))]
	} else {
		tk = c.Mint()
	}
	for range 1 + c.dice.N(2) {
		g, lane := c.any(), c.dice.N(c.setup.lanes)
		switch c.dice.N(8) {
		case 0:
			g.Passage(lane, -1)
		case 1:
			g.Passage(lane, 12*time.Second+c.dice.Span(20*time.Second))
		default:
			g.Passage(lane, 200*time.Millisecond+c.dice.Span(time.Duration(1+c.dice.N(9))*time.Second))
		}
		if c.dice.Hit(3) {
			g.Hold(lane, tk, c.dice.Span(15*time.Second))
		} else {
			g.Look(lane, tk)
		}
		if c.dice.Hit(2) {
			c.Wait(c.dice.Span(300 * time.Millisecond))
		}
	}
}

func (c *chaos) any() *Gate { return c.gates[c.dice.N(len(c.gates))] }

// badLink is a link with everything that links do.
func (c *chaos) badLink() wiretest.Link {
	return wiretest.Link{Delay: c.dice.Span(200 * time.Millisecond), Jitter: time.Microsecond + c.dice.Span(300*time.Millisecond),
		Drop: float64(c.dice.N(50)) / 100, Duplicate: float64(c.dice.N(30)) / 100, Reorder: float64(c.dice.N(50)) / 100}
}

// over puts everything right and waits until it is level.
func (c *chaos) over() {
	for _, g := range c.gates {
		if g.running() == nil {
			g.Kill()
		}
		g.Doom(never)
		g.Fail(kv.Durable)
	}
	c.Wait(35 * time.Second) // nobody is in a turnstile any more
	c.World.Heal()
}
