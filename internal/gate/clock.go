package gate

import (
	"sync"
	"time"

	"admitone/internal/ticket"
)

// drift bounds how far a crystal strays while nothing corrects it: 100 parts per
// million is the usual limit of the parts on such boards.
const drift = 1e-4

// stepSeen is how far wall time and time since boot may part between two looks
// before it counts as a step of the wall clock.
const stepSeen = int64(2 * time.Second)

// ClockOptions are where a Clock gets its readings.
type ClockOptions struct {
	Wall   func() time.Time     // the device's wall clock
	Up     func() time.Duration // since boot, not stopping in suspend (CLOCK_BOOTTIME)
	Boot   ticket.BootID
	Synced func() (bool, time.Duration) // whether NTP holds the wall clock, and its error bound; nil: never
	Floor  ticket.Floor
}

// Clock tells the time as far as it can be known: trusted once NTP or the ledger
// has said it in this boot, else the wall clock held up by the floor on disk.
// Safe for concurrent use.
type Clock struct {
	o ClockOptions

	mu     sync.Mutex
	floor  ticket.Floor
	anchor bool  // the ledger's time is known in this boot
	wall   int64 // the ledger's time …
	up     int64 // … when the time since boot was this
	bound  int64
	offset int64 // wall minus up at the last look, to notice steps
	looked bool
}

// NewClock starts from the floor that the store kept.
func NewClock(o ClockOptions) *Clock {
	return &Clock{o: o, floor: o.Floor}
}

// Stamp is the present moment.
func (c *Clock) Stamp() ticket.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp()
}

func (c *Clock) stamp() ticket.Stamp {
	up := int64(c.o.Up())
	s := ticket.Stamp{Boot: c.o.Boot, Up: up}
	switch synced, bound := c.ntp(); {
	case c.anchor:
		s.Wall = c.wall + up - c.up
		s.Bound = c.bound + int64(float64(up-c.up)*drift)
	case synced:
		s.Wall, s.Bound = c.o.Wall().UnixNano(), int64(bound)
	default:
		s.Class = ticket.Untrusted
		s.Wall = max(c.o.Wall().UnixNano(), c.floorAt(up))
	}
	return s
}

func (c *Clock) ntp() (bool, time.Duration) {
	if c.o.Synced == nil {
		return false, 0
	}
	return c.o.Synced()
}

// floorAt is the floor plus what has certainly passed since it was stored.
func (c *Clock) floorAt(up int64) int64 {
	f := c.floor
	if f.Boot == c.o.Boot && up > f.Up {
		return f.Wall + up - f.Up
	}
	return f.Wall
}

// Now is the present time in UTC and whether it can be trusted.
func (c *Clock) Now() (time.Time, ticket.Class) {
	s := c.Stamp()
	return s.Time(), s.Class
}

// Wall is the device's own idea of the time, for heads: the ledger judges skew
// by it.
func (c *Clock) Wall() time.Time { return c.o.Wall() }

// Ledger takes the ledger's time as a message brought it. It reports whether the
// clock became trusted by it, and whether the floor had to be lowered: one bad
// clock must not close a gate for ever.
func (c *Clock) Ledger(unixNano, roundTrip int64) (trusted, lowered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.stamp()
	up := int64(c.o.Up())
	bound := roundTrip/2 + 1
	// The tighter of what is known and what came: a slow answer must not loosen
	// a good anchor.
	if c.anchor && c.bound+int64(float64(up-c.up)*drift) <= bound {
		return false, false
	}
	c.anchor, c.wall, c.up, c.bound = true, unixNano+roundTrip/2, up, bound
	if c.floorAt(up) > c.wall+int64(time.Minute) {
		c.floor, lowered = ticket.Floor{Wall: c.wall, Boot: c.o.Boot, Up: up}, true
	}
	return was.Class == ticket.Untrusted, lowered
}

// RaiseFloor gives the floor to store, if a minute has passed since the stored
// one: raised by trusted time, or by the time since boot on top of the old floor.
// It takes effect through SetFloor, after the commit.
func (c *Clock) RaiseFloor() *ticket.Floor {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stamp()
	f := ticket.Floor{Wall: s.Wall, Boot: s.Boot, Up: s.Up}
	if s.Class == ticket.Untrusted {
		f.Wall = c.floorAt(s.Up)
	}
	if f.Wall-c.floor.Wall < int64(time.Minute) {
		return nil
	}
	return &f
}

// SetFloor takes the floor that was stored.
func (c *Clock) SetFloor(f ticket.Floor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor = f
}

// Floor is the floor in force.
func (c *Clock) Floor() ticket.Floor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.floor
}

// Correct gives an untrusted stamp of this boot its trusted time: now, less what
// has passed since.
func (c *Clock) Correct(s *ticket.Stamp) {
	now := c.Stamp()
	s.Wall = now.Wall - (now.Up - s.Up)
	s.Bound = now.Bound + int64(float64(now.Up-s.Up)*drift)
}

// Stepped reports whether the wall clock jumped against the time since boot
// since the last call, and by how much.
func (c *Clock) Stepped() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := c.o.Wall().UnixNano() - int64(c.o.Up())
	by := offset - c.offset
	first := !c.looked
	c.offset, c.looked = offset, true
	if first || by < stepSeen && by > -stepSeen {
		return 0, false
	}
	return time.Duration(by), true
}
