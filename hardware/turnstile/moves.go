package turnstile

import (
	"context"
	"time"
)

// Moves returns nil once the goroutines of the relay and of the lamps have both
// gone round after the call, the relay's with a write to the driver: proof for a
// watchdog that no line hangs. A line that cannot be written is no error here:
// it is told as a Fault, and another process would meet the same line.
//
// It returns ctx's error when they did not within ctx, and ErrStopped when Run
// has ended. No line sees an edge from it, and no opening becomes longer.
func (t *Turnstile) Moves(ctx context.Context) error {
	round := make(chan struct{}, 2)
	t.relay.box.put(func() {
		t.relay.prove()
		round <- struct{}{}
	})
	t.panel.box.put(func(*look, time.Time) { round <- struct{}{} })
	for range 2 {
		select {
		case <-round:
		case <-t.done:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// prove writes to the driver what its relay line is already: inactive. While it
// is active nothing is written, for the driver would count that as a renewal.
func (r *relay) prove() {
	if r.active || r.unsure {
		return
	}
	if r.w.set(LineRelay, false) != nil {
		r.unsure = true // told as a Fault, and tried again
	}
}
