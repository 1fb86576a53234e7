package turnstile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// idleRetry is how often a keeper tries to make outputs inactive that it could
// not, and reopenEvery how often it tries to open lines that are in use.
const (
	idleRetry   = 100 * time.Millisecond
	reopenEvery = 20 * time.Millisecond
)

// Keeper is the whole of a keeper process: it keeps lines for the process that
// started it, until its standard input ends, and gives the exit code. It is deaf
// to signals that are meant for the parent, whose end it sees by itself.
func Keeper(stdin io.Reader, stdout, stderr io.Writer, open func(Wiring) (Lines, error)) int {
	// A write to a parent that is gone must be an error and no SIGPIPE: the lines
	// come after it. SIGABRT is what a service manager's watchdog sends to all.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE)
	if err := Keep(stdin, stdout, open); err != nil {
		fmt.Fprintln(stderr, "turnstile keeper:", err)
		return 1
	}
	return 0
}

// Keep opens the lines that the first frame of in describes, obeys the frames that
// follow, and tells the inputs' changes to out. Every output is inactive when in
// ends, when it has been silent for too long while an output is active, and when
// Keep returns, whatever the reason. The relay is inactive when the maximum
// on-time has passed since it was set last. Where the lines cannot be opened, out is
// told why, and that is no error.
func Keep(in io.Reader, out io.Writer, open func(Wiring) (Lines, error)) error {
	orders := newFrames(in)
	first, err := orders.next()
	if err == nil && (first.Do != verbOpen || first.Terms == nil) {
		err = errors.New("the first frame opens nothing")
	}
	if err != nil {
		return fmt.Errorf("keep lines: %w", err)
	}
	lines, err := openPatiently(first.Terms.Wiring, first.Terms.Retry, open)
	if err != nil {
		return writeFrame(out, frame{Do: verbRefused, Err: err.Error(), Held: errors.Is(err, ErrHeld)}) // told there
	}
	k := &keeper{terms: *first.Terms, lines: lines, orders: make(chan frame), told: newMailbox[frame](), full: make(chan struct{}, 1)}
	k.tell(frame{Do: verbOpened})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.watch(ctx) })
	// Two goroutines may hang in a pipe that the parent holds: nobody waits for them.
	go func() { ended <- k.read(ctx, orders) }()
	broken := make(chan error, 1)
	go func() { broken <- k.write(ctx, out) }()
	err = k.loop(ctx, ended, broken)
	idle := k.end()
	cancel()
	return errors.Join(err, idle, g.Wait())
}

// Off makes every output inactive once, and gives the lines back. Lines that are
// in use are tried again for as long as patience lasts.
func Off(w Wiring, patience time.Duration) error {
	lines, err := openPatiently(w, patience, Open)
	if err != nil {
		return err
	}
	return lines.Close()
}

func openPatiently(w Wiring, patience time.Duration, open func(Wiring) (Lines, error)) (Lines, error) {
	for until := time.Now().Add(patience); ; {
		lines, err := open(w)
		if err == nil || !errors.Is(err, ErrHeld) || time.Now().After(until) {
			return lines, err
		}
		<-time.After(reopenEvery)
	}
}

// keeper keeps lines. What it knows belongs to the goroutine of loop.
type keeper struct {
	terms  terms
	lines  Lines
	orders chan frame
	told   *mailbox[frame]
	full   chan struct{} // told has more than its limit

	active  [outputCount]bool // as last set
	unsure  [outputCount]bool // inactive is wanted, and the last write failed
	heard   time.Time         // the parent
	relayAt time.Time         // the relay was set
}

func (k *keeper) loop(ctx context.Context, ended, broken <-chan error) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	k.heard = time.Now()
	for {
		if next := k.next(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done(): // the inputs cannot be read any more
			return nil
		case err := <-ended:
			return err
		case err := <-broken:
			return err
		case <-k.full:
			return errors.New("the daemon reads nothing any more")
		case fr := <-k.orders:
			// What is due comes first: an order must not make an overdue relay longer.
			k.due(time.Now())
			k.heard = time.Now()
			if err := k.obey(fr); err != nil {
				return err
			}
		case <-timer.C:
			k.due(time.Now())
		}
	}
}

// next is when due has something to do; the zero time: never.
func (k *keeper) next() (next time.Time) {
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if slices.Contains(k.unsure[:], true) {
		sooner(time.Now().Add(idleRetry))
	}
	if slices.Contains(k.active[:], true) {
		sooner(k.heard.Add(k.terms.Silent))
	}
	if k.active[LineRelay] {
		sooner(k.relayAt.Add(k.terms.MaxOn))
	}
	return next
}

// due makes inactive what must be so by now.
func (k *keeper) due(now time.Time) {
	for line := LineRelay; line.Output(); line++ {
		if k.unsure[line] {
			k.idle(line)
		}
	}
	if slices.Contains(k.active[:], true) && now.Sub(k.heard) >= k.terms.Silent {
		for line := LineRelay; line.Output(); line++ {
			if k.active[line] {
				k.idle(line)
			}
		}
		k.trip("the daemon was silent for %v", k.terms.Silent)
	}
	if k.active[LineRelay] && now.Sub(k.relayAt) >= k.terms.MaxOn {
		k.idle(LineRelay)
		k.trip("the relay was active for %v", k.terms.MaxOn)
	}
}

func (k *keeper) idle(line Line) {
	k.active[line] = false
	k.unsure[line] = k.lines.Set(line, false) != nil
}

func (k *keeper) trip(format string, d time.Duration) {
	k.tell(frame{Do: verbTripped, Err: fmt.Sprintf(format, d)})
}

// obey carries out an order. It returns an error for a frame that is none, and for
// a chip that is gone: a new keeper may find it again.
func (k *keeper) obey(fr frame) error {
	var err error
	switch fr.Do {
	case verbBeat:
	case verbSet:
		err = k.set(fr.Line, fr.Active)
	case verbPassage, verbInput:
		err = script(k.lines, fr)
	default:
		return fmt.Errorf("obey: %q is no order", fr.Do)
	}
	answer := frame{Do: verbAnswer, ID: fr.ID}
	if err != nil {
		answer.Err = err.Error()
	}
	k.tell(answer)
	if errors.Is(err, syscall.ENODEV) {
		return err
	}
	return nil
}

func (k *keeper) set(line Line, active bool) error {
	if !line.Output() {
		return fmt.Errorf("%v is no output", line)
	}
	err := k.lines.Set(line, active)
	// A line that may be active counts as active, and is made inactive in time.
	k.active[line] = active
	k.unsure[line] = err != nil && !active
	if line == LineRelay && active {
		k.relayAt = time.Now()
	}
	return err
}

// script moves the people of a simulated turnstile.
func script(lines Lines, fr frame) error {
	sim, ok := lines.(*Sim)
	switch {
	case !ok:
		return errors.New("this turnstile is not simulated")
	case fr.Do == verbPassage:
		return sim.SetPassage(fr.Passage)
	}
	return sim.SetInput(fr.Line, fr.Active)
}

// toldLimit bounds what is kept for a parent that does not read: an hour of
// passages. A parent that comes back after more gets another keeper.
const toldLimit = 4096

// tell never waits: the pipe of a parent that stands still is full one day.
func (k *keeper) tell(fr frame) {
	k.told.put(fr)
	if k.told.waiting() <= toldLimit {
		return
	}
	select {
	case k.full <- struct{}{}:
	default:
	}
}

// watch tells the inputs' changes.
func (k *keeper) watch(ctx context.Context) error {
	if err := k.lines.Watch(ctx, func(c Change) {
		k.tell(frame{Do: verbChange, Line: c.Line, Active: c.Active, MonoNS: monotonicAt(c.At)})
	}); err != nil {
		return fmt.Errorf("watch inputs: %w", err)
	}
	return nil
}

// read passes the parent's frames on; nil at their end.
func (k *keeper) read(ctx context.Context, in frames) error {
	for {
		fr, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case k.orders <- fr:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *keeper) write(ctx context.Context, out io.Writer) error {
	for {
		for _, fr := range k.told.take() {
			if err := writeFrame(out, fr); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.told.wake:
		}
	}
}

// end makes every output inactive and gives the lines back. What cannot be made so
// is tried some more: nobody else will.
func (k *keeper) end() error {
	var failed []string
	for range 20 {
		failed = nil
		for line := LineRelay; line.Output(); line++ {
			if err := k.lines.Set(line, false); err != nil {
				failed = append(failed, err.Error())
			}
		}
		if failed == nil {
			return k.lines.Close()
		}
		<-time.After(idleRetry)
	}
	return errors.Join(fmt.Errorf("make outputs inactive: %s", strings.Join(failed, "; ")), k.lines.Close())
}
