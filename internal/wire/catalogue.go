package wire

import (
	"sync"
	"time"

	"admitone/internal/ticket"
)

// catalogue is what is known of runs: how far they go, and how far they have
// come here. It is a copy in memory, for deciding what to fetch; the store's
// cursors are the truth, and each pass of the fetching reads them.
type catalogue struct {
	me ticket.Source

	mu       sync.Mutex
	heads    map[ticket.Stream]uint64
	have     map[ticket.Stream]uint64
	retry    map[ticket.Stream]retry
	ahead    map[ticket.Stream]bool // own runs that others were found to hold further
	target   map[ticket.Stream]uint64
	hello    bool // target is what the ledger told, since the last evidence of a loss
	caughtUp bool
}

type retry struct {
	at   time.Time
	wait time.Duration
}

const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

func newCatalogue(me ticket.Source) *catalogue {
	return &catalogue{me: me, heads: make(map[ticket.Stream]uint64), have: make(map[ticket.Stream]uint64),
		retry: make(map[ticket.Stream]retry), ahead: make(map[ticket.Stream]bool)}
}

// note notes a run's head, and reports whether that is further than it has come
// here. Runs beyond the limit are not noted.
func (c *catalogue) note(s ticket.Stream, pos uint64) (missing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.heads[s]; !there && len(c.heads) >= maxStreamsList {
		return false
	}
	if pos > c.heads[s] {
		c.heads[s] = pos
	}
	return pos > c.have[s]
}

// took notes that a live record was stored, and reports whether it was the next
// of its run or an old one.
func (c *catalogue) took(s ticket.Stream, pos uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.heads[s]; !there && len(c.heads) >= maxStreamsList {
		return true
	}
	if pos > c.have[s]+1 {
		return false
	}
	c.have[s] = max(c.have[s], pos)
	c.heads[s] = max(c.heads[s], pos)
	return true
}

// read takes over what the store says it has.
func (c *catalogue) read(own, cursors []StreamPos) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.have)
	for _, list := range [][]StreamPos{own, cursors} {
		for _, p := range list {
			s := ticket.Stream{Source: p.Source, Run: p.Run}
			c.have[s] = max(c.have[s], p.Pos)
		}
	}
}

// has gives how far a run has come here.
func (c *catalogue) has(s ticket.Stream) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.have[s]
}

// missing lists the runs that go further than they have come here and are due to
// be tried, and says when the next of the others is due.
func (c *catalogue) missing(now time.Time) (due []ticket.Stream, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = helloEvery
	for s, head := range c.heads {
		if head <= c.have[s] {
			continue
		}
		if left := c.retry[s].at.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		due = append(due, s)
	}
	return due, next
}

// ownGaps lists the own runs that are known to go further than they have come here.
func (c *catalogue) ownGaps() (list []ticket.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, head := range c.heads {
		if s.Source == c.me && head > c.have[s] {
			list = append(list, s)
		}
	}
	return list
}

// putOff has a run that nobody could give tried later, ever later.
func (c *catalogue) putOff(s ticket.Stream, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := min(max(2*c.retry[s].wait, retryMin), retryMax)
	c.retry[s] = retry{at: now.Add(wait), wait: wait}
}

// got clears what putOff did.
func (c *catalogue) got(s ticket.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.retry, s)
}

// tryAll has all runs tried at once: somebody new is there to ask.
func (c *catalogue) tryAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.retry)
}

// lost notes that somebody holds one of this gate's own runs further than it has
// come here, and reports whether that is news.
func (c *catalogue) lost(s ticket.Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead[s] {
		return false
	}
	c.ahead[s] = true
	return true
}

// aim sets the ledger's heads as what is to be reached.
func (c *catalogue) aim(lists ...[]StreamPos) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caughtUp {
		return
	}
	c.hello, c.target = true, make(map[ticket.Stream]uint64)
	for _, list := range lists {
		for _, p := range list {
			c.target[ticket.Stream{Source: p.Source, Run: p.Run}] = p.Pos
		}
	}
}

// reached reports whether what is to be reached has come here: the ledger's heads
// if it is there and has told them; otherwise, if peers will do, all known heads.
func (c *catalogue) reached(ledger, peers bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.heads
	switch {
	case ledger && c.hello:
		target = c.target
	case ledger || !peers:
		return false
	}
	for s, pos := range target {
		if c.have[s] < pos {
			return false
		}
	}
	return true
}

// setCaughtUp reports whether that is a change.
func (c *catalogue) setCaughtUp(v bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.caughtUp != v
	c.caughtUp = v
	if !v {
		c.hello = false
	}
	return changed
}

func (c *catalogue) isCaughtUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caughtUp
}
