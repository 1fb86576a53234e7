package turnstile

import (
	"context"
	"time"
)

// relayRetry is how long after a failed write the relay is made inactive again.
const relayRetry = 100 * time.Millisecond

// relay holds the relay line. It has a goroutine and a timer of its own: what
// it was asked for ends in time, whatever the caller, the lamps and the inputs
// are doing.
type relay struct {
	w          writer
	maxOn, gap time.Duration
	box        *mailbox[func()]

	// The rest belongs to the goroutine of run.
	last    Opening
	current Opening   // while active
	active  bool      // as last written
	unsure  bool      // a write failed: the level is not known, inactive is wanted
	until   time.Time // while active: when it ends
	rested  time.Time // when the next pulse may begin
	queue   []pulse

	held    bool      // the emergency input is active: so is the relay
	renewAt time.Time // while held: when the driver hears of it again
}

// pulse waits for its turn.
type pulse struct {
	opening Opening
	width   time.Duration
}

func newRelay(w writer, maxOn, gap time.Duration) *relay {
	return &relay{w: w, maxOn: maxOn, gap: gap, box: newMailbox[func()]()}
}

func (r *relay) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.stop()
		case <-r.box.wake:
		case <-timer.C:
		}
		// What is due comes first: a command must not find a relay that should
		// be inactive already.
		r.tick()
		for _, command := range r.box.take() {
			command()
		}
		if next := r.next(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// open is Turnstile.Open.
func (r *relay) open(d time.Duration) (Opening, error) {
	r.drop(ErrSuperseded)
	now := time.Now()
	d = min(d, r.maxOn)
	if r.held {
		r.until = later(r.until, now.Add(d))
		return r.current, r.hold(now)
	}
	if !r.active {
		r.last++
		return r.last, r.begin(r.last, now, d)
	}
	if err := r.w.set(LineRelay, true); err != nil {
		r.fail()
		return 0, err
	}
	r.unsure = false
	r.until = later(r.until, now.Add(d))
	return r.current, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// pulse is Turnstile.Pulse.
func (r *relay) pulse(width time.Duration) (Opening, error) {
	if r.held {
		return r.current, r.hold(time.Now()) // the turnstile is open
	}
	if r.unsure {
		if err := r.end(); err != nil {
			return 0, err
		}
	}
	now := time.Now()
	width = min(width, r.maxOn)
	start := r.rested
	if r.active {
		start = r.until.Add(r.gap)
	}
	for _, p := range r.queue {
		start = start.Add(p.width + r.gap)
	}
	if start.Sub(now) > r.maxOn {
		return 0, ErrBusy
	}
	r.last++
	if start.After(now) || len(r.queue) > 0 {
		r.queue = append(r.queue, pulse{r.last, width})
		return r.last, nil
	}
	return r.last, r.begin(r.last, now, width)
}

// idle is Turnstile.Idle.
func (r *relay) idle() error {
	r.drop(ErrSuperseded)
	if r.held {
		r.until = time.Time{} // then the emergency's end is the relay's
		return nil
	}
	if !r.active && !r.unsure {
		return nil
	}
	return r.end()
}

// tick does what is due: the end of an opening, another try to end it, the next pulse.
func (r *relay) tick() {
	now := time.Now()
	if r.held {
		if !r.active || r.unsure || !now.Before(r.renewAt) {
			_ = r.hold(now) // tried again
		}
		return
	}
	if r.unsure || r.active && !now.Before(r.until) {
		if r.end() != nil {
			return
		}
	}
	if r.active || len(r.queue) == 0 || now.Before(r.rested) {
		return
	}
	p := r.queue[0]
	r.queue = r.queue[1:]
	if err := r.begin(p.opening, now, p.width); err != nil {
		r.w.events.emit(Event{Kind: PulseDropped, At: now, Opening: p.opening, Err: err})
	}
}

// next is when tick has something to do; the zero time: never.
func (r *relay) next() time.Time {
	switch {
	case r.unsure || r.held && !r.active:
		return time.Now().Add(relayRetry)
	case r.held:
		return r.renewAt
	case r.active:
		return r.until
	case len(r.queue) > 0:
		return r.rested
	}
	return time.Time{}
}

// emergency takes the emergency input. The relay comes first and the event after.
func (r *relay) emergency(on bool, at time.Time) {
	r.held = on
	kind := EmergencyOff
	if on {
		kind = EmergencyOn
		r.drop(ErrSuperseded)
		_ = r.hold(time.Now()) // tried again
	} else {
		r.tick()
	}
	r.w.events.emit(Event{Kind: kind, At: at})
}

// hold makes the relay active for as long as the emergency lasts, which no
// maximum on-time ends: it is renewed for a driver that has one of its own. So
// it ends with the process all the same, and after an error it is tried again.
func (r *relay) hold(now time.Time) error {
	r.renewAt = now.Add(r.maxOn / 3)
	if err := r.w.set(LineRelay, true); err != nil {
		r.unsure = true
		return err
	}
	r.unsure = false
	if r.active {
		return nil
	}
	r.last++
	r.current, r.active, r.until = r.last, true, time.Time{}
	r.w.events.emit(Event{Kind: PulseBegin, At: now, Opening: r.current})
	return nil
}

// cut follows a driver that was lost: the relay is inactive by what is known, and
// is written to be so once that can be done.
func (r *relay) cut(why error) {
	r.drop(why)
	switch {
	case r.held:
		r.unsure = true // held anew as soon as that can be done
	case r.active || r.unsure:
		_ = r.end() // tried again
	}
}

// begin makes the relay active. After an error it is made inactive again, for
// nobody knows what the driver did.
func (r *relay) begin(o Opening, now time.Time, d time.Duration) error {
	r.current = o
	if err := r.w.set(LineRelay, true); err != nil {
		r.fail()
		return err
	}
	r.active, r.unsure, r.until = true, false, now.Add(d)
	r.w.events.emit(Event{Kind: PulseBegin, At: now, Opening: o})
	return nil
}

// end makes the relay inactive. After an error next brings another try, and the
// pulses that wait are dropped: they would come whenever the driver recovers.
func (r *relay) end() error {
	if err := r.w.set(LineRelay, false); err != nil {
		r.unsure = true
		r.drop(err)
		return err
	}
	now := time.Now()
	if r.active {
		r.w.events.emit(Event{Kind: PulseEnd, At: now, Opening: r.current})
	}
	r.active, r.unsure, r.rested = false, false, now.Add(r.gap)
	return nil
}

// fail follows a write of active that failed: the error is the caller's already.
func (r *relay) fail() {
	r.unsure = true
	_ = r.end() // told as a Fault, and tried again
}

// drop lets the pulses that wait go.
func (r *relay) drop(why error) {
	now := time.Now()
	for _, p := range r.queue {
		r.w.events.emit(Event{Kind: PulseDropped, At: now, Opening: p.opening, Err: why})
	}
	r.queue = nil
}

// stop is the end of run: inactive, even where it should be so already.
func (r *relay) stop() error {
	r.drop(ErrStopped)
	err := r.end()
	for try := 1; err != nil && try < 3; try++ {
		err = r.end()
	}
	return unlessLost(err)
}
