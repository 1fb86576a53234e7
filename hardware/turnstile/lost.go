package turnstile

import (
	"errors"
	"sync"
	"time"
)

// ErrLost is returned by a supervised driver while its lines are out of reach. As
// far as anything could see to that, every output is inactive then.
var ErrLost = errors.New("turnstile's lines are out of reach")

// Supervised is a driver whose lines can be lost, and come back with every output
// inactive, as those of [Kept].
type Supervised interface {
	Lines

	// Notify names the function that is told of it, before Watch: with an error,
	// why they are out of reach, and with nil each time that they were opened.
	// From the call with an error on, and before Set answers ErrLost, they are
	// lost; until the first call with nil they are not there yet.
	Notify(func(why error))
}

// lost is what is known of a supervised driver.
type lost struct {
	mu  sync.Mutex
	why error
}

// Lost gives the reason why the lines are out of reach; nil: they are not.
func (t *Turnstile) Lost() error {
	t.lost.mu.Lock()
	defer t.lost.mu.Unlock()
	return t.lost.why
}

// driver takes what a supervised driver tells.
func (t *Turnstile) driver(why error) {
	t.lost.mu.Lock()
	was := t.lost.why
	t.lost.why = why
	t.lost.mu.Unlock()
	switch {
	case why == nil:
		t.panel.box.put(func(l *look, _ time.Time) { l.opened = true })
		if was != nil {
			t.events.emit(Event{Kind: DriverBack, At: time.Now()})
		}
	case was == nil:
		t.relay.box.put(func() { t.relay.cut(why) })
		t.events.emit(Event{Kind: DriverLost, At: time.Now(), Err: why})
	}
}

// unlessLost forgives at the end of Run what cannot be done without lines: they
// are inactive, or whoever held them has told why they may not be.
func unlessLost(err error) error {
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}
