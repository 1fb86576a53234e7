package turnstile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limits and defaults of Options.
const (
	DefaultMaxOn    = 15 * time.Second       // a passage timeout of 10 s, and some
	MaxMaxOn        = 2 * time.Minute        // a longer limit would protect nothing
	DefaultGap      = 200 * time.Millisecond // what turnstile controllers need to tell two pulses apart
	MinGap          = 10 * time.Millisecond
	DefaultDebounce = 20 * time.Millisecond // contacts bounce for some milliseconds, a passage lasts 100 and more
	MaxDebounce     = time.Second
)

// Errors of Open, Pulse and Idle. A driver's own error is wrapped as it is.
var (
	// ErrStopped is returned when Run has ended: nothing was done, the relay is inactive.
	ErrStopped = errors.New("turnstile stopped")
	// ErrBusy is returned when a pulse could not begin within the maximum
	// on-time, so much is waiting before it.
	ErrBusy = errors.New("too many pulses waiting")
	// ErrSuperseded comes with PulseDropped when Open or Idle was called while
	// the pulse waited for its turn.
	ErrSuperseded = errors.New("superseded")
)

// Options of a Turnstile. A zero field means its default.
type Options struct {
	Log *slog.Logger // default: discard

	// MaxOn is the maximum on-time: the relay is inactive when this time has
	// passed since the last call that asked for it, whatever was asked.
	MaxOn time.Duration

	// Gap is how long the relay stays inactive between two pulses at least.
	Gap time.Duration

	// Debounce is how long an input must keep a state before it counts.
	// Negative: the driver debounces.
	Debounce time.Duration

	// Timing is how the signals look and sound.
	Timing Timing
}

// Opening names one time that the relay is active, from edge to edge. A further
// Open that only renews it has the same one.
type Opening uint64

// Turnstile is a turnstile with its lamps. Its methods may be called from any
// goroutine. Commands given before Run are carried out when Run starts.
type Turnstile struct {
	lines   Lines
	events  *events
	relay   *relay
	panel   *panel
	inputs  *inputs
	started atomic.Bool
	done    chan struct{}
	lost    lost
}

// New makes a Turnstile over a driver and starts nothing; no line is touched.
// It returns an error that names every option that is out of its limits. The
// driver stays the caller's, who closes it when Run has returned.
func New(lines Lines, o Options) (*Turnstile, error) {
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("set up turnstile: %w", err)
	}
	ev := newEvents(o.Log)
	w := writer{lines: lines, events: ev}
	relay := newRelay(w, o.MaxOn, o.Gap)
	t := &Turnstile{
		lines:  lines,
		events: ev,
		relay:  relay,
		panel:  newPanel(w, o.Timing),
		inputs: newInputs(ev, lines.Inputs(), o.Debounce, func(on bool, at time.Time) {
			relay.box.put(func() { relay.emergency(on, at) })
		}),
		done: make(chan struct{}),
	}
	if s, ok := lines.(Supervised); ok {
		s.Notify(t.driver)
	}
	return t, nil
}

func (o Options) checked() (Options, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.MaxOn, DefaultMaxOn)
	def(&o.Gap, DefaultGap)
	def(&o.Debounce, DefaultDebounce)
	o.Timing = o.Timing.filled()

	var errs []error
	if o.MaxOn < 0 || o.MaxOn > MaxMaxOn {
		errs = append(errs, fmt.Errorf("maximum on-time %v: must be above 0 and at most %v", o.MaxOn, MaxMaxOn))
	}
	if o.Gap < MinGap || o.Gap > MaxMaxOn {
		errs = append(errs, fmt.Errorf("gap between pulses %v: must be %v to %v", o.Gap, MinGap, MaxMaxOn))
	}
	if o.Debounce > MaxDebounce {
		errs = append(errs, fmt.Errorf("debounce %v: must be at most %v", o.Debounce, MaxDebounce))
	}
	errs = append(errs, o.Timing.check())
	return o, errors.Join(errs...)
}

// Run drives the turnstile until ctx ends, then makes the relay and all lamps
// inactive and returns nil. It returns an error when the inputs cannot be read
// any more, or when the relay or a lamp could not be made inactive at the end.
// It is called once.
func (t *Turnstile) Run(ctx context.Context) error {
	if t.started.Swap(true) {
		return errors.New("run turnstile: it was run before")
	}
	defer close(t.done)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.relay.run(ctx) })
	g.Go(func() error { return t.panel.run(ctx) })
	g.Go(func() error { return t.inputs.run(ctx) })
	g.Go(func() error { return t.events.run(ctx) })
	g.Go(func() error {
		if err := t.lines.Watch(ctx, t.inputs.box.put); err != nil {
			return fmt.Errorf("watch turnstile inputs: %w", err)
		}
		return nil
	})
	return g.Wait()
}

// Open makes the relay active for d from now: the hold of one admission, or a
// part of an opening that lasts, as in mode free, which is renewed before it
// runs out and shows no edge in between. Where the relay is active already, a
// further Open can only make it longer. d above the maximum on-time is cut to it.
//
// Pulses that wait for their turn are dropped (ErrSuperseded): the turnstile is
// open for them. Open returns when the driver has done it; an error means that
// the relay is not active and will not become so.
func (t *Turnstile) Open(d time.Duration) (Opening, error) {
	return t.command(d, "open turnstile", t.relay.open)
}

// Pulse makes the relay active for width, once, as a pulse of its own: where
// the relay is active or has just been, it waits until it was inactive for the
// gap. Pulses begin in the order of the calls. PulseBegin and PulseEnd, or
// PulseDropped, follow as events. width above the maximum on-time is cut to it.
//
// An error means that there is no pulse; it is ErrBusy when the pulse could not
// begin within the maximum on-time.
func (t *Turnstile) Pulse(width time.Duration) (Opening, error) {
	return t.command(width, "pulse turnstile", t.relay.pulse)
}

// Idle makes the relay inactive now and drops the pulses that wait. After an
// error the driver is tried again until it succeeds.
func (t *Turnstile) Idle() error {
	_, err := t.command(1, "idle turnstile", func(time.Duration) (Opening, error) { return 0, t.relay.idle() })
	return err
}

// command runs f in the relay's goroutine and waits for its answer.
func (t *Turnstile) command(d time.Duration, what string, f func(time.Duration) (Opening, error)) (Opening, error) {
	if d <= 0 {
		return 0, fmt.Errorf("%s: a time of %v is no time", what, d)
	}
	type answer struct {
		opening Opening
		err     error
	}
	reply := make(chan answer, 1)
	t.relay.box.put(func() {
		o, err := f(d)
		reply <- answer{o, err}
	})
	select {
	case a := <-reply:
		if a.err != nil {
			return 0, fmt.Errorf("%s: %w", what, a.err)
		}
		return a.opening, nil
	case <-t.done:
		return 0, fmt.Errorf("%s: %w", what, ErrStopped)
	}
}

// Show shows a signal. It never waits. Showing the steady signal that is shown
// already changes nothing.
func (t *Turnstile) Show(s Signal) {
	t.panel.box.put(func(l *look, now time.Time) { l.show(s, now) })
}

// SetModeMark says whether the gate's mode is another than normal: a short
// amber blink on top of every signal.
func (t *Turnstile) SetModeMark(on bool) {
	t.panel.box.put(func(l *look, now time.Time) { l.setMark(on, now) })
}

// Light makes the light for the camera on or off. It never waits.
func (t *Turnstile) Light(on bool) {
	t.panel.box.put(func(l *look, _ time.Time) { l.light = on })
}

// Events gives what happens at the turnstile, in order. There is one channel,
// for one reader; it is never closed. A slow reader keeps nothing else waiting.
func (t *Turnstile) Events() <-chan Event { return t.events.out }

// Ready tells whether the turnstile can be used: the ready input's state, false
// until it was read for the first time; true where none is wired. It is false
// while the driver is lost.
func (t *Turnstile) Ready() bool { return t.inputs.ready.Load() && t.Lost() == nil }

// Alarmed gives the alarm input's state; false where none is wired.
func (t *Turnstile) Alarmed() bool { return t.inputs.alarm.Load() }

// HasPassage tells whether the input passage_in is wired, so that passages are seen.
func (t *Turnstile) HasPassage() bool { return slices.Contains(t.lines.Inputs(), LinePassageIn) }

// writer writes lines and reports how it went.
type writer struct {
	lines  Lines
	events *events
}

func (w writer) set(line Line, active bool) error {
	err := w.lines.Set(line, active)
	w.events.wrote(line, err)
	if err != nil {
		return fmt.Errorf("set %v: %w", line, err)
	}
	return nil
}
