package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/hardware/camera"
	"admitone/hardware/reader"
	"admitone/hardware/turnstile"
	"admitone/internal/config"
	"admitone/internal/gate"
	"admitone/internal/scan"
)

// laneDevices are the devices of one lane.
type laneDevices struct {
	lines     *turnstile.Kept
	turnstile *turnstile.Turnstile
	adapter   *turnstileAdapter
	readers   []reader.Reader
	cameras   []camera.Source
	darkLevel int      // of their frames; 0: darkness is not looked for
	devices   []device // those of them that know how they stand
	frames    *frames
	log       *slog.Logger
}

func openLane(c config.Lane, log *slog.Logger, stderr io.Writer) (*laneDevices, error) {
	l := &laneDevices{frames: newFrames(), log: log}
	var err error
	if l.lines, err = newKept(c.Turnstile, stderr, log); err != nil {
		return nil, err
	}
	l.turnstile, err = turnstile.New(l.lines, turnstile.Options{
		Log: log, MaxOn: time.Duration(c.Turnstile.MaxOn), Gap: time.Duration(c.Turnstile.Gap), Debounce: debounce(c.Turnstile),
	})
	if err != nil {
		return nil, errors.Join(err, l.lines.Close())
	}
	l.tell("turnstile", lost{l.turnstile})
	l.adapter = &turnstileAdapter{t: l.turnstile, events: make(chan gate.TurnstileEvent)}
	if err := l.openReaders(c, log); err != nil {
		return nil, errors.Join(err, l.lines.Close())
	}
	return l, nil
}

// lost is a turnstile as the status tells it.
type lost struct{ t *turnstile.Turnstile }

// State gives the reason why its lines are out of reach.
func (l lost) State() error { return l.t.Lost() }

func (l *laneDevices) openReaders(c config.Lane, log *slog.Logger) error {
	for i, r := range c.Readers {
		line, err := openReader(r, log)
		if err != nil {
			return err
		}
		l.readers = append(l.readers, line)
		l.tell(fmt.Sprintf("reader %d (%s)", i+1, r.Driver), line)
	}
	if c.Camera != nil {
		cam, err := openCamera(*c.Camera, log)
		if err != nil {
			return err
		}
		l.cameras = append(l.cameras, cam)
		l.darkLevel = c.Camera.DarkLevel
		l.tell("camera", cam)
	}
	return nil
}

// run starts the lane's devices in the group.
func (l *laneDevices) run(ctx context.Context, eg *errgroup.Group, look func(gate.Look)) {
	eg.Go(func() error { return l.turnstile.Run(ctx) })
	eg.Go(func() error { return l.adapter.run(ctx) })
	for _, r := range l.readers {
		eg.Go(func() error {
			return r.Run(ctx, func(k reader.Look) { look(gate.Look{Text: k.Text, At: k.At, Line: true, Cut: k.Cut}) })
		})
	}
	for _, c := range l.cameras {
		eg.Go(func() error { return c.Run(ctx, counted(l.frames, lit(l.darkLevel, l.turnstile.Light, l.watch(look)))) })
	}
}

// watch reads the codes in each frame. A frame that breaks the reader costs a log
// line, the first time, and nothing else.
func (l *laneDevices) watch(look func(gate.Look)) func(camera.Frame) {
	r, told := scan.New(scan.Options{}), false
	return func(f camera.Frame) {
		texts, err := r.Read(scan.Frame{Pix: f.Pix, Stride: f.Stride, W: f.W, H: f.H})
		if err != nil {
			if !told {
				l.log.Error("read frame", "err", err)
			}
			told = true
			return
		}
		for _, t := range texts {
			look(gate.Look{Text: t, At: f.Captured})
		}
	}
}

func (l *laneDevices) close() error {
	if err := l.lines.Close(); err != nil {
		return fmt.Errorf("close turnstile: %w", err)
	}
	return nil
}

func laneOptions(c config.Lane, dev *laneDevices) gate.LaneOptions {
	return gate.LaneOptions{
		Name: c.Name, Turnstile: dev.adapter, Sensor: c.Sensor(), Hold: c.Turnstile.Release == config.ReleaseHold,
		Pulse: time.Duration(c.Turnstile.Pulse), HoldAfter: time.Duration(c.Turnstile.HoldAfter), MaxOn: time.Duration(c.Turnstile.MaxOn),
		PassageTimeout: time.Duration(c.PassageTimeout), LatePassage: time.Duration(c.LatePassage),
		Keep: c.OnNoPassage == config.Keep, Credits: c.Credits,
	}
}

// turnstileAdapter speaks the gate's words to the device.
type turnstileAdapter struct {
	t      *turnstile.Turnstile
	events chan gate.TurnstileEvent
}

func (a *turnstileAdapter) Ready() bool { return a.t.Ready() }

func (a *turnstileAdapter) Pulse(width time.Duration) error {
	_, err := a.t.Pulse(width)
	return err
}

func (a *turnstileAdapter) Open(d time.Duration) error {
	_, err := a.t.Open(d)
	return err
}

// Idle needs no answer: after an error the device tries again by itself, and says
// so in an event.
func (a *turnstileAdapter) Idle() { _ = a.t.Idle() }

func (a *turnstileAdapter) MarkMode(on bool)                   { a.t.SetModeMark(on) }
func (a *turnstileAdapter) Events() <-chan gate.TurnstileEvent { return a.events }

func (a *turnstileAdapter) Show(s gate.Signal) {
	a.t.Show([...]turnstile.Signal{
		gate.SignalIdle: turnstile.SignalIdle, gate.SignalAdmit: turnstile.SignalAdmit, gate.SignalOpen: turnstile.SignalOpen,
		gate.SignalRefuse: turnstile.SignalRefuse, gate.SignalWait: turnstile.SignalWait,
		gate.SignalFault: turnstile.SignalFault, gate.SignalClosed: turnstile.SignalClosed,
	}[s])
}

func (a *turnstileAdapter) run(ctx context.Context) error {
	told := map[turnstile.Kind]gate.TurnstileEvent{
		turnstile.PassageIn: gate.PassageIn, turnstile.PassageOut: gate.PassageOut, turnstile.PulseEnd: gate.PulseEnd,
		turnstile.ReadyOn: gate.ReadyChanged, turnstile.ReadyOff: gate.ReadyChanged,
		turnstile.AlarmOn: gate.AlarmOn, turnstile.AlarmOff: gate.AlarmOff, turnstile.Fault: gate.LinesFailed,
		turnstile.DriverLost: gate.LinesLost, turnstile.DriverBack: gate.LinesBack,
		turnstile.EmergencyOn: gate.EmergencyOn, turnstile.EmergencyOff: gate.EmergencyOff, turnstile.StaffPress: gate.StaffPress,
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-a.t.Events():
			if known, ok := told[e.Kind]; ok {
				select {
				case a.events <- known:
				case <-ctx.Done():
				}
			}
		}
	}
}
