// Package alive tells the service manager how a process stands, and feeds its
// watchdog only while every part of the process has been seen to move. A timer
// that feeds by itself would keep a process alive whose work stands still.
//
// It speaks the protocol of sd_notify(3): READY once every proof was given for
// the first time, WATCHDOG while all are fresh, STATUS in words, STOPPING.
package alive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
)

// Proof is one part of a process that must move for the process to be worth
// keeping.
type Proof struct {
	Name string // as people read it, as in "the store"

	// Check returns nil once it has seen the part move after the call, and an
	// error where the part says that it cannot. It may block as long as the part
	// does: it holds up no other proof, and Run does not wait for it.
	Check func(ctx context.Context) error
}

// Manager is who started the process and watches it.
type Manager struct {
	Send     func(state string) error // nil: nobody is there to be told
	Watchdog time.Duration            // it ends a process that was silent for so long; 0: it does not watch
}

// Systemd gives the manager that the environment names (NOTIFY_SOCKET,
// WATCHDOG_USEC); without one it is empty. It returns an error when the
// environment makes no sense.
func Systemd() (Manager, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return Manager{}, nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return Manager{}, fmt.Errorf("read the watchdog's limit: %w", err)
	}
	send := func(state string) error {
		if _, err := daemon.SdNotify(false, state); err != nil {
			return fmt.Errorf("notify service manager: %w", err)
		}
		return nil
	}
	return Manager{Send: send, Watchdog: watchdog}, nil
}

// defaultWatchdog sets the pace where nobody watches: the units have the same.
const defaultWatchdog = 20 * time.Second

// Options of an Alive.
type Options struct {
	Manager Manager
	Proofs  []Proof       // at least one
	Status  func() string // how the process stands, one line; it must not block
	Log     *slog.Logger
}

// Alive feeds one manager.
type Alive struct {
	o      Options
	every  time.Duration // between two checks of a proof, and two looks at them
	within time.Duration // how old a proof may be
	parts  []*part

	ready bool
	told  string // the status sent last
	stuck string // what was logged last
	mute  bool   // the manager could not be told
}

// part is a proof and when it was given last.
type part struct {
	Proof
	mu   sync.Mutex
	last time.Time
	err  error // of the last check that ended
}

// New makes an Alive that starts nothing. Proofs are asked for ten times within
// the manager's limit, and are fresh for a quarter of it.
func New(o Options) (*Alive, error) {
	if len(o.Proofs) == 0 || o.Log == nil || o.Status == nil {
		return nil, errors.New("watch process: proofs, status and log are needed")
	}
	limit := o.Manager.Watchdog
	if limit <= 0 {
		limit = defaultWatchdog
	}
	a := &Alive{o: o, every: limit / 10, within: limit / 4}
	for _, p := range o.Proofs {
		a.parts = append(a.parts, &part{Proof: p})
	}
	return a, nil
}

// Run feeds the manager until ctx ends, and then says so. Where nobody is to be
// told it only waits.
func (a *Alive) Run(ctx context.Context) error {
	if a.o.Manager.Send == nil {
		<-ctx.Done()
		return nil
	}
	eg, ctx := errgroup.WithContext(ctx)
	started := time.Now()
	for _, p := range a.parts {
		p.last = started
		p.err = errNever
		eg.Go(func() error { return p.run(ctx, a.every) })
	}
	eg.Go(func() error { return a.feed(ctx) })
	err := eg.Wait()
	a.send(daemon.SdNotifyStopping + "\nSTATUS=stops")
	return err
}

// errNever stands until a part has moved for the first time.
var errNever = errors.New("has not started")

// run asks for the part's proof again and again.
func (p *part) run(ctx context.Context, every time.Duration) error {
	for {
		result := make(chan error, 1)
		go func() { result <- p.Check(ctx) }()
		select {
		case <-ctx.Done():
			return nil
		case err := <-result:
			p.given(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func (p *part) given(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	if err == nil {
		p.last = time.Now()
	}
}

// doubt says what is wrong with the part, "" where nothing is.
func (p *part) doubt(within time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.last)
	switch {
	case errors.Is(p.err, errNever):
		return p.Name + " " + errNever.Error()
	case age <= within:
		return ""
	case p.err != nil:
		return fmt.Sprintf("%s: %v", p.Name, p.err)
	}
	return p.Name + " stands still"
}

// feed looks at the proofs and tells the manager: often until it is ready, for a
// gate that restarts keeps people waiting.
func (a *Alive) feed(ctx context.Context) error {
	for {
		a.look()
		pause := a.every
		if !a.ready {
			pause /= 40
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (a *Alive) look() {
	var doubts, say []string
	for _, p := range a.parts {
		if d := p.doubt(a.within); d != "" {
			doubts = append(doubts, d)
		}
	}
	stuck := strings.Join(doubts, "; ")
	if len(doubts) == 0 {
		if !a.ready {
			a.ready = true
			say = append(say, daemon.SdNotifyReady)
		}
		say = append(say, daemon.SdNotifyWatchdog)
	}
	if status := a.status(stuck); status != a.told {
		a.told = status
		say = append(say, "STATUS="+status)
	}
	a.log(stuck)
	if len(say) > 0 {
		a.send(strings.Join(say, "\n"))
	}
}

// status is one line: a newline would begin another assignment.
func (a *Alive) status(stuck string) string {
	s := stuck
	switch {
	case !a.ready:
		s = "starts: " + stuck
	case stuck == "":
		s = a.o.Status()
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
}

// log says once that the watchdog is not fed, and why, and once that it is again.
func (a *Alive) log(stuck string) {
	if !a.ready || stuck == a.stuck {
		return
	}
	a.stuck = stuck
	if stuck == "" {
		a.o.Log.Info("watchdog is fed again")
		return
	}
	a.o.Log.Error("watchdog is not fed", "why", stuck)
}

func (a *Alive) send(state string) {
	err := a.o.Manager.Send(state)
	if err != nil && !a.mute {
		a.o.Log.Error("tell service manager", "err", err)
	}
	a.mute = err != nil
}
