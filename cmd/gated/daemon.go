package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/alive"
	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/gate"
	"admitone/internal/gatestore"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// daemon is everything that one gate consists of.
type daemon struct {
	gate    *gate.Gate
	wire    *wire.Gate
	conn    *wire.NATS
	control *control.Server
	alive   *alive.Alive
	clock   *systemClock
	lanes   []*laneDevices
	closers []func() error // in the order of opening
	log     *slog.Logger
	place   string
	lost    string // why the store is a new one
	export  exporter
}

// newDaemon opens everything that can fail, and starts nothing. The store comes
// first: a second process on it must touch no line of the turnstile.
func newDaemon(ctx context.Context, c config.Gate, log *slog.Logger, env environment) (d *daemon, err error) {
	d = &daemon{log: log, place: c.Device.Place}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	public, err := wire.PublicKey(c.Device.Seed)
	if err != nil {
		return d, err
	}
	device, err := wire.DeviceID(public)
	if err != nil {
		return d, err
	}
	file, store, lost, err := openStore(ctx, c, device, log)
	if err != nil {
		return d, err
	}
	d.closers = append(d.closers, file.Close)
	d.lost = lost
	d.export = exporter{store: store, device: device}
	if d.export.key, err = wire.SigningKey(c.Device.Seed); err != nil {
		return d, err
	}
	if d.clock, err = newSystemClock(c.Sim.ClockOffsetFile); err != nil {
		return d, err
	}
	marks, err := gatestore.OpenMarks(c.RunDir, d.clock.boot)
	if err != nil {
		return d, err
	}
	d.closers = append(d.closers, marks.Close)
	for _, l := range c.Lanes {
		dev, err := openLane(l, log.With("lane", l.Name), env.stderr)
		if err != nil {
			return d, err
		}
		d.lanes = append(d.lanes, dev)
		d.closers = append(d.closers, dev.close)
	}
	if err := d.assemble(ctx, c, device, store, marks, env); err != nil {
		return d, err
	}
	return d, d.watch(file)
}

// assemble puts the gate, its wire and its socket together.
func (d *daemon) assemble(ctx context.Context, c config.Gate, device ticket.Source, store *gatestore.Store, marks *gatestore.Marks, env environment) error {
	key, err := hex.DecodeString(c.Device.ProgrammeKey)
	if err != nil {
		return fmt.Errorf("read programme key: %w", err)
	}
	verdicts, err := openLines(c.Verdicts, env.stdout, d.log)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, verdicts.close)
	results, err := openLines(c.Results, env.stdout, d.log)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, results.close)

	o := gate.Options{
		Device: device, Place: c.Device.Place, ProgrammeKey: ed25519.PublicKey(key), Demo: c.Demo,
		LedgerPatience: time.Duration(c.LedgerPatience), FireWithin: time.Duration(c.FireWithin), Rearm: time.Duration(c.Rearm),
		AmnesiaWait: time.Duration(c.AmnesiaWait), Offline: gate.Policy(c.Offline), UntrustedClock: gate.Policy(c.UntrustedClock),
		Amnesia: gate.Policy(c.Amnesia), StoreLost: d.lost, Log: d.log,
		Clock: gate.NewClock(gate.ClockOptions{Wall: d.clock.wall, Up: d.clock.up, Boot: d.clock.boot, Synced: d.clock.synced}),
		Verdict: func(v ticket.Verdict) {
			verdicts.write(v)
			d.control.Verdict(v)
		},
		Result: func(r ticket.Result) { results.write(r) },
	}
	for i, l := range c.Lanes {
		o.Lanes = append(o.Lanes, laneOptions(l, d.lanes[i]))
	}
	if d.gate, err = gate.New(store, marks, o); err != nil {
		return err
	}
	if d.control, err = control.New(c.Control, controlled{d}, d.log); err != nil {
		return err
	}
	d.conn, err = wire.Dial(ctx, wire.NATSOptions{
		URLs: c.Device.Brokers, Seed: c.Device.Seed, PinnedKeys: c.Device.BrokerKeys,
		Plain: plain(c.Device.Brokers), Name: c.Device.Place, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func() error { d.conn.Close(); return nil })
	d.wire, err = wire.NewGate(d.conn, store, wireEvents{d.gate}, wire.GateOptions{
		Device: device, LedgerPatience: time.Duration(c.LedgerPatience), HeadInfo: d.head, Log: d.log, Now: d.clock.wall,
	})
	if err != nil {
		return err
	}
	d.gate.Connect(network{d.wire, time.Duration(c.PeerPatience)})
	return nil
}

// plain reports whether every address is one of this host without TLS.
func plain(urls []string) bool {
	for _, u := range urls {
		if !strings.HasPrefix(u, "nats://") {
			return false
		}
	}
	return true
}

// run works until ctx ends or a part of the gate cannot go on.
func (d *daemon) run(ctx context.Context) error {
	d.log.Info("gate starts", "place", d.place, "pid", os.Getpid())
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error { return d.clock.run(ctx) })
	for i, l := range d.lanes {
		l.run(ctx, eg, func(k gate.Look) { d.gate.Look(i, k) })
	}
	eg.Go(func() error { return d.gate.Run(ctx) })
	eg.Go(func() error { return d.wire.Run(ctx) })
	eg.Go(func() error { return d.control.Run(ctx) })
	eg.Go(func() error { return d.alive.Run(ctx) })
	err := eg.Wait()
	d.log.Info("gate stops", "place", d.place)
	return err
}

// close closes what was opened, the last first.
func (d *daemon) close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// statusPatience bounds how long a head waits for the loop, which may be in a
// commit.
const statusPatience = time.Second

// head is what the gate tells everybody every two seconds.
func (d *daemon) head() wire.Head {
	h := wire.Head{Place: d.place, Time: d.clock.wall().UnixNano(), Note: "the gate's loop does not answer"}
	ctx, cancel := context.WithTimeout(context.Background(), statusPatience)
	defer cancel()
	if s, err := d.status(ctx); err == nil {
		h.Place, h.Clock, h.Mode, h.Note = s.Place, s.Clock, s.Mode, s.Note()
	}
	return h
}
