package turnstile

import (
	"context"
	"errors"
	"time"
)

// lampRetry is how long after a failed write a lamp is written again.
const lampRetry = time.Second

// panel shows the look on the lamps and the buzzer. It has a goroutine of its
// own, so that a lamp that hangs does not hold the relay.
type panel struct {
	w    writer
	box  *mailbox[func(*look, time.Time)]
	look look

	shown  [outputCount]bool
	unsure [outputCount]bool // the last write failed
}

func newPanel(w writer, t Timing) *panel {
	return &panel{w: w, box: newMailbox[func(*look, time.Time)](), look: look{timing: t}}
}

func (p *panel) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.dark()
		case <-p.box.wake:
		case <-timer.C:
		}
		now := time.Now()
		for _, change := range p.box.take() {
			change(&p.look, now)
		}
		if next := p.write(now); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// write makes the lines what the look is now, and gives the time to look again.
func (p *panel) write(now time.Time) time.Time {
	if p.look.opened {
		p.look.opened, p.shown, p.unsure = false, [outputCount]bool{}, [outputCount]bool{}
	}
	want, next := p.look.at(now)
	for line := LineRed; line.Output(); line++ {
		if want[line] == p.shown[line] && !p.unsure[line] {
			continue
		}
		if p.set(line, want[line]) == nil {
			continue
		}
		if retry := now.Add(lampRetry); next.IsZero() || retry.Before(next) {
			next = retry
		}
	}
	return next
}

func (p *panel) set(line Line, active bool) error {
	err := p.w.set(line, active)
	p.unsure[line] = err != nil
	if err == nil {
		p.shown[line] = active
	}
	return err
}

// dark is the end: every lamp that is on, or may be, is off.
func (p *panel) dark() error {
	var errs []error
	for line := LineRed; line.Output(); line++ {
		if p.shown[line] || p.unsure[line] {
			errs = append(errs, unlessLost(p.set(line, false)))
		}
	}
	return errors.Join(errs...)
}
