package lab

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ticket"
)

// Options of a lab.
type Options struct {
	Dir       string                      // empty, or not there yet
	Gates     int                         // places 1, 2, …
	Bin       string                      // the folder with gated and ledgerd
	Cameras   bool                        // give each gate a folder camera, gate-K/camera
	Demo      bool                        // accept keys marked demo
	TicketKey ed25519.PrivateKey          // nil: a new one
	Programme *ticket.Programme           // nil: one event, Event, signed with the ticket key
	Lane      func(*config.Lane)          // changes each gate's lane; nil: as it is
	Gate      func(k int, c *config.Gate) // changes gate k's configuration; nil: as it is
}

// MaxGates bounds a lab: each gate is a process.
const MaxGates = 100

// Lab is a running lab. Its methods may be called from any goroutine.
type Lab struct {
	o          Options
	at         layout
	url        string
	bank       *bank
	uplink     *proxy
	links      []*proxy // gate K's is links[K-1]
	brokerAddr string
	brokerPin  string
	forker     *forker
	procs      map[string]*process

	mu   sync.Mutex
	cuts map[string]Cut // by "1", "2", …, "broker", "ledger"
}

// readyWithin bounds how long Up and Start wait.
const readyWithin = 60 * time.Second

// Up builds a lab, starts it and returns when all of it is ready.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if o.Gates < 1 || o.Gates > MaxGates {
		return nil, fmt.Errorf("open lab: %d gates, want 1 to %d", o.Gates, MaxGates)
	}
	at, err := newLayout(o.Dir)
	if err != nil {
		return nil, err
	}
	l := &Lab{o: o, at: at, forker: newForker(), procs: map[string]*process{}, cuts: map[string]Cut{}}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := l.build(ctx); err != nil {
		l.Down()
		return nil, err
	}
	return l, nil
}

// build makes and starts one part after the other: each needs to know of those
// before it.
func (l *Lab) build(ctx context.Context) error {
	if err := l.buildLedger(ctx); err != nil {
		return err
	}
	c, err := l.Client()
	if err != nil {
		return err
	}
	p, err := l.programme()
	if err != nil {
		return err
	}
	if _, err := c.PushProgramme(ctx, p); err != nil {
		return fmt.Errorf("push programme: %w", err)
	}
	e, err := c.Enrolment(ctx)
	if err != nil {
		return fmt.Errorf("read enrolment: %w", err)
	}
	if err := l.buildBroker(ctx, c, e); err != nil {
		return err
	}
	for k := 1; k <= l.o.Gates; k++ {
		if err := l.buildGate(ctx, k, c, e); err != nil {
			return err
		}
	}
	for k := 1; k <= l.o.Gates; k++ {
		if err := l.awaitGate(ctx, k, true); err != nil {
			return err
		}
	}
	return nil
}

// URL is the ledger's.
func (l *Lab) URL() string { return l.url }

// Dir is the lab's directory.
func (l *Lab) Dir() string { return l.at.dir }

// gateState is what readiness depends on, of a gate's status.
type gateState struct {
	Programme uint64 `json:"programme"`
	Amnesia   bool   `json:"amnesia"`
	Link      string `json:"link"`
	Lanes     []struct {
		Ready bool `json:"ready"`
	} `json:"lanes"`
}

// opens reports whether a gate's turnstiles are ready, which takes them a moment.
func (s gateState) opens() bool {
	for _, l := range s.Lanes {
		if !l.Ready {
			return false
		}
	}
	return true
}

// linked reports whether a gate knows all that it needs to judge.
func (s gateState) linked() bool { return s.Programme > 0 && !s.Amnesia && s.Link == "up" }

// awaitGate waits until a gate answers and its turnstiles are ready, and, with
// linked, until it is online and knows what there is to know.
func (l *Lab) awaitGate(ctx context.Context, k int, linked bool) error {
	name := "gate-" + strconv.Itoa(k)
	return await(ctx, name, func(ctx context.Context) error {
		if err := l.procs[name].dead(ctx); err != nil {
			return err
		}
		raw, err := l.Gate(k).Status(ctx)
		if err != nil {
			return err
		}
		var s gateState
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if !s.opens() || linked && !s.linked() {
			return fmt.Errorf("not ready: %s", raw)
		}
		return nil
	})
}

// Gate is a client of gate k's socket.
func (l *Lab) Gate(k int) *control.Client { return control.NewClient(l.at.gateSocket(k)) }

// gateNumber reads a K of the command line.
func (l *Lab) gateNumber(name string) (int, error) {
	k, err := strconv.Atoi(name)
	if err != nil || k < 1 || k > l.o.Gates {
		return 0, fmt.Errorf("there is no gate %q: the lab has gates 1 to %d", name, l.o.Gates)
	}
	return k, nil
}

// Cut breaks the link of gate K, or of the ledger (to the venue's broker), or all
// links of the broker.
func (l *Lab) Cut(name string, how Cut) error {
	if how != Down && how != Hang && how != Whole {
		return fmt.Errorf("cannot cut by %q: use down (refused) or hang (accepted and silent)", how)
	}
	if name != "ledger" && name != "broker" {
		if _, err := l.gateNumber(name); err != nil {
			return fmt.Errorf("%w, and ledger and broker", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts[name] = how
	return l.apply()
}

// Heal mends what Cut broke.
func (l *Lab) Heal(name string) error { return l.Cut(name, Whole) }

func (l *Lab) apply() error {
	own := func(name string) Cut {
		if c := l.cuts["broker"]; c != Whole {
			return c
		}
		return l.cuts[name]
	}
	errs := []error{l.uplink.set(own("ledger"))}
	for i, p := range l.links {
		errs = append(errs, p.set(own(strconv.Itoa(i+1))))
	}
	return errors.Join(errs...)
}

func (l *Lab) process(name string) (*process, int, error) {
	if name == "ledger" || name == "broker" {
		return l.procs[name], 0, nil
	}
	k, err := l.gateNumber(name)
	if err != nil {
		return nil, 0, fmt.Errorf("%w, and ledger and broker", err)
	}
	return l.procs["gate-"+name], k, nil
}

// Kill ends a process by SIGKILL; it stays dead until Start.
func (l *Lab) Kill(name string) error { return l.signal(name, syscall.SIGKILL) }

// Stop ends a process by SIGTERM; it stays dead until Start.
func (l *Lab) Stop(name string) error { return l.signal(name, syscall.SIGTERM) }

func (l *Lab) signal(name string, sig syscall.Signal) error {
	p, _, err := l.process(name)
	if err != nil {
		return err
	}
	p.end(sig)
	return nil
}

// Start starts a process again and returns when it answers; a gate may still be
// without its link.
func (l *Lab) Start(ctx context.Context, name string) error {
	p, k, err := l.process(name)
	if err != nil {
		return err
	}
	if err := p.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	switch name {
	case "ledger":
		return l.awaitLedger(ctx)
	case "broker":
		return await(ctx, "the broker", p.dead)
	}
	return l.awaitGate(ctx, k, false)
}

// AwaitOnline returns when gate k is online and has caught up.
func (l *Lab) AwaitOnline(ctx context.Context, k int) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return l.awaitGate(ctx, k, true)
}

// PID gives a process's id, 0 while it does not run.
func (l *Lab) PID(name string) (int, error) {
	p, _, err := l.process(name)
	if err != nil {
		return 0, err
	}
	return p.running(), nil
}

// Passage says what people do at gate K's turnstile: auto, never, twice, now, exit.
func (l *Lab) Passage(ctx context.Context, name, how string) error {
	k, err := l.gateNumber(name)
	if err != nil {
		return err
	}
	return l.Gate(k).Sim(ctx, control.Sim{Passage: how})
}

// Mode changes gate K's mode.
func (l *Lab) Mode(ctx context.Context, name, mode string) error {
	k, err := l.gateNumber(name)
	if err != nil {
		return err
	}
	return l.Gate(k).SetMode(ctx, ticket.GateMode(mode), "lab")
}

// Clock makes gate K's clock wrong by an offset, within a second.
func (l *Lab) Clock(name, offset string) error {
	k, err := l.gateNumber(name)
	if err != nil {
		return err
	}
	if _, err := time.ParseDuration(offset); err != nil {
		return fmt.Errorf("clock offset %q: write a duration as -90m, 26h or 0s", offset)
	}
	tmp := l.at.gate(k, ".clock")
	if err := os.WriteFile(tmp, []byte(offset+"\n"), 0o644); err != nil {
		return fmt.Errorf("set clock: %w", err)
	}
	return os.Rename(tmp, l.at.gate(k, "clock"))
}

// Down ends everything, the gates first.
func (l *Lab) Down() {
	var wg sync.WaitGroup
	for name, p := range l.procs {
		if name != "ledger" && name != "broker" {
			wg.Go(func() { p.end(syscall.SIGTERM) })
		}
	}
	wg.Wait()
	for _, name := range []string{"broker", "ledger"} {
		if p := l.procs[name]; p != nil {
			p.end(syscall.SIGTERM)
		}
	}
	for _, p := range l.links {
		p.close()
	}
	if l.uplink != nil {
		l.uplink.close()
	}
	l.bank.close()
	close(l.forker.stop)
}

// mintTries is how many ids are drawn for a ticket whose text has no space in it.
// About one in six has none.
const mintTries = 200

// Mint makes n new tickets for the lab's event; it needs no running lab. Base45
// has a space among its characters, which shells drop or split at: the lab's texts
// are drawn without.
func Mint(dir string, n int, change func(*ticket.Ticket)) ([]string, error) {
	key, err := config.ReadKey(layout{dir: dir}.mintKey())
	if err != nil {
		return nil, fmt.Errorf("%w (is there a lab in %s?)", err, dir)
	}
	signer := ticket.NewSigner(key)
	texts := make([]string, n)
	for i := range texts {
		for range mintTries {
			t := ticket.Ticket{Format: ticket.FormatA1, Event: Event}
			rand.Read(t.ID[:])
			if change != nil {
				change(&t)
			}
			if texts[i], err = signer.Mint(t); err != nil {
				return nil, err
			}
			if !strings.Contains(texts[i], " ") {
				break
			}
		}
	}
	return texts, nil
}
