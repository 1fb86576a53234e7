package gate

import (
	"testing"
	"time"

	"admitone/internal/ticket"
)

// hands is a device's clock that a test sets.
type hands struct {
	wall time.Time
	up   time.Duration
}

func (h *hands) pass(d time.Duration) { h.wall = h.wall.Add(d); h.up += d }

func (h *hands) clock(f ticket.Floor) *Clock {
	return NewClock(ClockOptions{Wall: func() time.Time { return h.wall }, Up: func() time.Duration { return h.up }, Boot: ticket.BootID{1}, Floor: f})
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestFloorHoldsUntrustedTimeUp(t *testing.T) {
	h := &hands{wall: time.Unix(0, 0), up: time.Minute}
	c := h.clock(ticket.Floor{Wall: noon.UnixNano(), Boot: ticket.BootID{9}, Up: int64(time.Hour)})
	if now, class := c.Now(); class != ticket.Untrusted || !now.Equal(noon) {
		t.Fatal(now, class)
	}
	same := h.clock(ticket.Floor{Wall: noon.UnixNano(), Boot: ticket.BootID{1}, Up: int64(30 * time.Second)})
	if now, _ := same.Now(); !now.Equal(noon.Add(30 * time.Second)) {
		t.Fatalf("the time since the floor was stored does not count: %s", now)
	}
}

func TestUntrustedTimeRaisesNoFloorByItself(t *testing.T) {
	h := &hands{wall: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), up: time.Minute}
	c := h.clock(ticket.Floor{Wall: noon.UnixNano(), Boot: ticket.BootID{1}, Up: int64(time.Minute)})
	if f := c.RaiseFloor(); f != nil {
		t.Fatalf("2099 became the floor: %s", time.Unix(0, f.Wall))
	}
	h.pass(2 * time.Minute)
	f := c.RaiseFloor()
	if f == nil || !time.Unix(0, f.Wall).Equal(noon.Add(2*time.Minute)) {
		t.Fatalf("floor %+v, want what has certainly passed", f)
	}
}

func TestLedgersTimeIsTrustedAndLowersABadFloor(t *testing.T) {
	h := &hands{wall: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), up: time.Minute}
	c := h.clock(ticket.Floor{Wall: h.wall.UnixNano(), Boot: ticket.BootID{1}, Up: int64(time.Minute)})
	trusted, lowered := c.Ledger(noon.UnixNano(), int64(20*time.Millisecond))
	if !trusted || !lowered {
		t.Fatal(trusted, lowered)
	}
	h.pass(time.Hour)
	h.wall = time.Unix(0, 0) // a step of the wall clock moves nothing
	s := c.Stamp()
	if s.Class != ticket.Trusted || s.Time().Sub(noon.Add(time.Hour)).Abs() > 20*time.Millisecond {
		t.Fatalf("%s %s", s.Time(), s.Class)
	}
	if s.Bound < int64(10*time.Millisecond) || s.Bound > int64(500*time.Millisecond) {
		t.Fatalf("error bound %s after an hour", time.Duration(s.Bound))
	}
	if again, _ := c.Ledger(noon.Add(2*time.Hour).UnixNano(), int64(20*time.Millisecond)); again {
		t.Fatal("became trusted twice")
	}
}

func TestASlowAnswerDoesNotLoosenAGoodAnchor(t *testing.T) {
	h := &hands{wall: noon, up: time.Minute}
	c := h.clock(ticket.Floor{})
	c.Ledger(noon.UnixNano(), int64(2*time.Millisecond))
	c.Ledger(noon.Add(3*time.Second).UnixNano(), int64(8*time.Second))
	if s := c.Stamp(); s.Bound > int64(2*time.Millisecond) {
		t.Fatalf("bound %s", time.Duration(s.Bound))
	}
}

func TestStepsAreNoticed(t *testing.T) {
	h := &hands{wall: noon, up: time.Minute}
	c := h.clock(ticket.Floor{})
	c.Stepped()
	h.pass(time.Hour)
	if by, stepped := c.Stepped(); stepped {
		t.Fatal("a step where there is none", by)
	}
	h.wall = h.wall.Add(-time.Minute)
	if by, stepped := c.Stepped(); !stepped || by != -time.Minute {
		t.Fatal(by, stepped)
	}
	if _, stepped := c.Stepped(); stepped {
		t.Fatal("told twice")
	}
}
