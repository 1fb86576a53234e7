package turnstile

import (
	"errors"
	"fmt"
	"time"
)

// Signal is what the lamps and the buzzer say. It never is colour alone: red is
// a cross, green an arrow, amber blinks, and the verdicts are told by sound too.
type Signal uint8

// The signals. Idle, Admit, Open, Fault and Closed last until another one is
// shown. Refuse and Wait stand before the one that lasts and leave it in place.
const (
	// SignalIdle is dark. It ends Wait; a Refuse runs out its time.
	SignalIdle Signal = iota
	// SignalAdmit is green, with one high beep when it comes.
	SignalAdmit
	// SignalOpen is green without a sound: a turnstile that stands open.
	SignalOpen
	// SignalRefuse is red for its time, with two low beeps; green is off
	// meanwhile. Shown again, it starts again.
	SignalRefuse
	// SignalWait is amber at 1 Hz: on for half a period, off for the other half.
	SignalWait
	// SignalFault is red.
	SignalFault
	// SignalClosed is red.
	SignalClosed
)

var signalNames = [...]string{"idle", "admit", "open", "refuse", "wait", "fault", "closed"}

// String gives the signal's name for logs.
func (s Signal) String() string {
	if int(s) < len(signalNames) {
		return signalNames[s]
	}
	return fmt.Sprintf("signal(%d)", uint8(s))
}

// Beeps is a pattern of the buzzer: Count times On, with Off in between. The
// buzzer has one pitch, so a high beep is a short one and a low beep a long one.
type Beeps struct {
	Count   int
	On, Off time.Duration
}

// at tells whether the buzzer sounds after a time since the pattern began, and
// when it changes next; 0 when it is over.
func (b Beeps) at(since time.Duration) (on bool, next time.Duration) {
	period := b.On + b.Off
	n := int(since / period)
	if n >= b.Count {
		return false, 0
	}
	begin := time.Duration(n) * period
	if since < begin+b.On {
		return true, begin + b.On
	}
	return false, begin + period
}

// Timing is how the signals look and sound. A zero field means its default.
type Timing struct {
	RefuseFor  time.Duration // red of a refusal; default 2.5 s
	WaitPeriod time.Duration // amber of a wait; default 1 s
	MarkOn     time.Duration // the mode mark's blink; default 100 ms
	MarkPeriod time.Duration // from blink to blink; default 2 s
	Admitted   Beeps         // default one of 120 ms: the high beep
	Refused    Beeps         // default two of 350 ms, 150 ms apart: the low beeps
}

func (t Timing) filled() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.RefuseFor, 2500*time.Millisecond)
	def(&t.WaitPeriod, time.Second)
	def(&t.MarkOn, 100*time.Millisecond)
	def(&t.MarkPeriod, 2*time.Second)
	if t.Admitted == (Beeps{}) {
		t.Admitted = Beeps{Count: 1, On: 120 * time.Millisecond}
	}
	if t.Refused == (Beeps{}) {
		t.Refused = Beeps{Count: 2, On: 350 * time.Millisecond, Off: 150 * time.Millisecond}
	}
	return t
}

// shortestFlash is the shortest time that a lamp or the buzzer is given.
const shortestFlash = 10 * time.Millisecond

func (t Timing) check() error {
	var errs []error
	least := func(name string, d, least time.Duration) {
		if d < least {
			errs = append(errs, fmt.Errorf("%s %v: must be at least %v", name, d, least))
		}
	}
	least("red of a refusal", t.RefuseFor, shortestFlash)
	least("period of a wait", t.WaitPeriod, 2*shortestFlash)
	least("mode mark", t.MarkOn, shortestFlash)
	least("period of the mode mark", t.MarkPeriod, t.MarkOn+shortestFlash)
	least("beep of an admission", t.Admitted.On, shortestFlash)
	least("beep of a refusal", t.Refused.On, shortestFlash)
	least("pause of an admission's beeps", t.Admitted.Off, 0)
	least("pause of a refusal's beeps", t.Refused.Off, 0)
	return errors.Join(errs...)
}

// look is what is to be seen and heard, as a function of time.
type look struct {
	timing Timing

	base    Signal // Idle, Admit, Open, Fault or Closed
	top     Signal // Refuse or Wait before it; SignalIdle: nothing
	topAt   time.Time
	mark    bool
	markAt  time.Time
	light   bool
	opened  bool  // the driver was: every lamp is off
	beeps   Beeps // what sounds last
	beepsAt time.Time
}

func (l *look) show(s Signal, now time.Time) {
	l.expire(now)
	switch s {
	case SignalRefuse:
		l.top, l.topAt = SignalRefuse, now
		l.beeps, l.beepsAt = l.timing.Refused, now
		return
	case SignalWait:
		if l.top != SignalWait {
			l.top, l.topAt = SignalWait, now
		}
		return
	case SignalAdmit:
		if l.base != SignalAdmit || l.top == SignalRefuse {
			l.beeps, l.beepsAt = l.timing.Admitted, now
		}
		l.top = SignalIdle
	}
	l.base = s
	if l.top == SignalWait {
		l.top = SignalIdle
	}
}

func (l *look) setMark(on bool, now time.Time) {
	if on && !l.mark {
		l.markAt = now
	}
	l.mark = on
}

// expire ends a refusal whose time is over.
func (l *look) expire(now time.Time) {
	if l.top == SignalRefuse && now.Sub(l.topAt) >= l.timing.RefuseFor {
		l.top = SignalIdle
	}
}

// at gives the state that each lamp and the buzzer has now, and when one of
// them changes by itself; the zero time: never.
func (l *look) at(now time.Time) (state [outputCount]bool, next time.Time) {
	l.expire(now)
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	state[LineLight] = l.light
	refused := l.top == SignalRefuse
	state[LineRed] = refused || l.base == SignalFault || l.base == SignalClosed
	state[LineGreen] = !refused && (l.base == SignalAdmit || l.base == SignalOpen)
	if refused {
		sooner(l.topAt.Add(l.timing.RefuseFor))
	}
	// The mode mark would not be seen in the blinking of a wait.
	switch {
	case l.top == SignalWait:
		on, change := blink(now, l.topAt, l.timing.WaitPeriod/2, l.timing.WaitPeriod)
		state[LineAmber] = on
		sooner(change)
	case l.mark:
		on, change := blink(now, l.markAt, l.timing.MarkOn, l.timing.MarkPeriod)
		state[LineAmber] = on
		sooner(change)
	}
	if l.beeps.Count > 0 {
		on, change := l.beeps.at(now.Sub(l.beepsAt))
		state[LineBuzzer] = on
		if change > 0 {
			sooner(l.beepsAt.Add(change))
		}
	}
	return state, next
}

// blink tells whether a lamp that is on for the first part of each period is on,
// and when it changes.
func blink(now, since time.Time, on, period time.Duration) (bool, time.Time) {
	begin := now.Add(-(now.Sub(since) % period))
	if now.Sub(begin) < on {
		return true, begin.Add(on)
	}
	return false, begin.Add(period)
}
