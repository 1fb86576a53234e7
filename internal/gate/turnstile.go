package gate

import (
	"context"
	"time"
)

// Signal is what the lamps and the buzzer say.
type Signal uint8

// The signals (spec, section 2, item 7). Refuse ends by itself after 2.5 s; the
// others stay until the next.
const (
	SignalIdle Signal = iota
	SignalAdmit
	SignalOpen // mode free: green without a sound
	SignalRefuse
	SignalWait
	SignalFault
	SignalClosed
)

// TurnstileEvent is what a turnstile's inputs say.
type TurnstileEvent uint8

// The events.
const (
	PassageIn TurnstileEvent = iota + 1
	PassageOut
	ReadyChanged
	AlarmOn
	AlarmOff
	PulseEnd    // the relay became inactive again
	LinesFailed // a line could not be written
	LinesLost   // the lines are out of reach: nothing opens until LinesBack
	LinesBack
	EmergencyOn // the turnstile has opened already, and stays so until EmergencyOff
	EmergencyOff
	StaffPress // staff want one person let through
)

// Turnstile is the device of one lane. It bounds the relay's on-time by itself,
// whatever the loop does.
type Turnstile interface {
	Ready() bool
	Pulse(width time.Duration) error // one pulse; a second follows the first with a gap
	Open(d time.Duration) error      // active for d from now; a further Open extends
	Idle()                           // relay inactive now
	Show(Signal)
	MarkMode(on bool) // a short amber blink on top: the mode is not normal
	Events() <-chan TurnstileEvent
}

// forward hands a lane's events to the loop, with when they came: the loop may be
// in a commit, and whether somebody passed before or after a relay moved matters.
func (g *Gate) forward(ctx context.Context, l *lane) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-l.Turnstile.Events():
			if !ok {
				return nil
			}
			at := time.Now()
			g.box.put(func(ctx context.Context) { g.turnstile(ctx, l, e, at) })
		}
	}
}
