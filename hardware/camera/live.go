package camera

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Times and limits of the cameras that follow a device.
const (
	// Between two tries to open: doubled from the first to the last, and up to a
	// quarter more, so that several cameras do not try in step.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second

	// proven is how long frames must have come for a device to be well: one that
	// gives a frame and breaks, over and over, is not.
	proven = 2 * time.Second

	// Without a good frame for this long, a device has stalled. Cameras take their
	// time over the first one: power up, exposure, and the USB bus before it.
	defaultDeadline = 2 * time.Second
	firstDeadline   = 8 * time.Second

	// maxSpoilt is how many bad frames in a row are too many. Cameras begin with
	// one or two. After each, spoiltPause: a device that sends ten thousand a
	// second costs no more than one that sends two hundred.
	maxSpoilt   = 10
	spoiltPause = 5 * time.Millisecond

	// stopPatience is how long a stop waits for the device to be closed. Longer
	// than a wait for a frame; a driver that hangs is left behind.
	stopPatience = 3 * time.Second

	// hung is how much later than its deadline a device is known not to come back
	// from a call into its driver.
	hung = 3 * time.Second
)

// errStopped ends a session because the camera stops.
var errStopped = errors.New("stopped")

// modeError is trouble that the device might not have in another of its modes.
type modeError struct{ error }

func (e modeError) Unwrap() error { return e.error }

// live is what the cameras that follow a device have in common. One goroutine,
// the session's, owns the device: it opens it, takes each frame as it comes and
// puts it into the box, and opens it again when it is lost. The caller of Run makes
// the newest frame grey and hands it out. So a busy receiver never holds up the
// device: its buffers do not fill with old frames, and none of them is seen later.
type live struct {
	name     string // what it is called in errors and logs
	log      *slog.Logger
	deadline time.Duration
	box      *box
	health   health
	started  atomic.Bool
	as       string // what it was opened as; the session's
}

func (l *live) init(name string, deadline time.Duration, log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if deadline == 0 {
		deadline = defaultDeadline
	}
	l.name, l.deadline, l.log = name, deadline, log
	l.box = newBox()
	l.health.err = fmt.Errorf("%s: no frame yet", name)
}

// State is nil while frames come, and says why they do not otherwise. It may be
// called from any goroutine, and answers when the driver does not.
func (l *live) State() error {
	alive, err := l.health.state()
	if err != nil {
		return err
	}
	if since := time.Since(alive); since > l.deadline+hung {
		return fmt.Errorf("%s: its driver has not answered for %v", l.name, since.Round(time.Second))
	}
	return nil
}

// Stats counts what came from the device since the start.
func (l *live) Stats() Stats { return l.health.counts() }

// run runs sessions and hands out frames until ctx ends.
func (l *live) run(ctx context.Context, out func(Frame), session func(context.Context) error) error {
	if l.started.Swap(true) {
		return fmt.Errorf("run %s: it was run before", l.name)
	}
	// No errgroup: a goroutine in a driver that hangs cannot be waited for.
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.follow(ctx, session)
	}()
	l.consume(ctx, out)
	select {
	case <-closed:
	case <-time.After(stopPatience):
		l.log.Error("the camera's driver hangs, its device stays open", "camera", l.name)
	}
	return nil
}

// follow runs one session after another. A loss is told once, and its end once.
func (l *live) follow(ctx context.Context, session func(context.Context) error) {
	pause, told, before := firstPause, false, ""
	works := func() {
		pause = firstPause
		switch {
		case told:
			l.log.Info("camera works again", "camera", l.name, "as", l.as)
		case l.as != before:
			l.log.Info("camera works", "camera", l.name, "as", l.as)
		}
		told, before = false, l.as
	}
	for ctx.Err() == nil {
		l.health.begin(works)
		err := l.guard(ctx, session)
		if ctx.Err() != nil {
			return
		}
		err = fmt.Errorf("%s: %w", l.name, err)
		l.health.lost(err)
		if !told {
			l.log.Warn("camera lost, trying again", "camera", l.name, "err", err)
		}
		told = true
		sleep(ctx, pause+rand.N(pause/4))
		pause = min(2*pause, lastPause)
	}
}

// guard makes an error of a panic: the library indexes its buffers with what the
// driver says.
func (l *live) guard(ctx context.Context, session func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its driver broke: %v", p)
		}
	}()
	return session(ctx)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// patience gives how long the next frame may take to come; an error when its time
// is over.
func (l *live) patience() (time.Duration, error) {
	since, some := l.health.since()
	patience := l.deadline
	if !some {
		patience = max(patience, firstDeadline)
	}
	if since >= patience {
		return 0, modeError{fmt.Errorf("no frame for %v", since.Round(time.Millisecond))}
	}
	return patience - since, nil
}

// arrived takes a frame that has the right shape into the box.
func (l *live) arrived(s *shot) {
	l.health.arrived(s.at, l.box.put(s))
}

// spoilt counts a frame that is none, and gives an error when there are too many
// of them in a row.
func (l *live) spoilt(ctx context.Context, why error) error {
	if n := l.health.spoilt(); n >= maxSpoilt {
		return modeError{fmt.Errorf("%d bad frames in a row, the last: %w", n, why)}
	}
	sleep(ctx, spoiltPause)
	return nil
}

// unreadable gives an error when the receiving side could not read the last
// frames, though they had the right shape.
func (l *live) unreadable() error { return l.health.unreadable() }

// consume hands out the newest frame, and the next when out is done with it.
func (l *live) consume(ctx context.Context, out func(Frame)) {
	var g greyer
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.box.news:
		}
		s := l.box.take()
		if s == nil || ctx.Err() != nil {
			continue
		}
		f, err := g.frame(s)
		l.health.read(err)
		if err == nil {
			out(f)
		}
		l.box.give(s)
	}
}

// greyer makes frames of shots, in buffers that it keeps.
type greyer struct {
	jpeg jpegDecoder
	fit  fitter
}

func (g *greyer) frame(s *shot) (Frame, error) {
	f := Frame{Pix: s.data, Stride: s.w, W: s.w, H: s.h}
	if s.jpeg {
		var err error
		if f, err = g.jpeg.decode(s.data); err != nil {
			return Frame{}, err
		}
	}
	f.Captured = s.at
	return g.fit.fit(f, MaxWidth, MaxHeight), nil
}
