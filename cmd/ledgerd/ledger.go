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

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// serveLedger runs the ledger with its HTTP side, and in role all its broker.
func serveLedger(ctx context.Context, c config.Ledger, log *slog.Logger) (err error) {
	store, err := openStore(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	programmeKey, err := config.EnsureKey(c.ProgrammeKey)
	if err != nil {
		return err
	}
	ticketKey, err := ticketKey(c)
	if err != nil {
		return err
	}
	keys, keyWatch, err := watchKeys(c, log)
	if err != nil {
		return err
	}
	out, err := openOutbox(c, keys, store.books, log)
	if err != nil {
		return err
	}
	l, err := ledger.New(store.Store, ledger.Options{
		Process: c.Process, Now: time.Now, Log: log, ProgrammeKey: programmeKey, DeviceID: wire.DeviceID, DeviceKey: wire.VerifyingKey,
		Demo: c.Demo, TicketKey: ticketKey, Tell: tell(out),
	})
	if err != nil {
		return err
	}
	if _, err := l.Programme(ctx); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("%w: is programme_key that of the other ledgers on this store?", err)
	}
	box, err := openOffice(c, l, store.books, log)
	if err != nil {
		return err
	}
	eg, ctx := errgroup.WithContext(ctx)
	conn, enrolment, err := connect(ctx, eg, c, log, programmeKey)
	if err != nil {
		return err
	}
	defer conn.Close()
	serving, err := wire.NewLedger(conn, &service{Ledger: l, key: programmeKey}, wire.LedgerOptions{Process: c.Process, Log: log})
	if err != nil {
		return err
	}
	api, err := openHTTP(c, parts{l, store.books, box, out, keys, enrolment}, log)
	if err != nil {
		return err
	}
	watch, err := watchLedger(c, api.ln.Addr(), store.alive, conn, log)
	if err != nil {
		return errors.Join(err, api.ln.Close())
	}
	log.Info("ledger serves", "http", api.ln.Addr().String(), "process", c.Process, "pid", os.Getpid())
	eg.Go(func() error { return store.keep(ctx) })
	eg.Go(func() error { return l.Run(ctx) })
	eg.Go(func() error { return serving.Run(ctx) })
	eg.Go(func() error { return box.Run(ctx) })
	eg.Go(func() error { return out.Run(ctx) })
	eg.Go(func() error { return keyWatch.Run(ctx) })
	eg.Go(func() error { return api.run(ctx) })
	eg.Go(func() error { return watch.Run(ctx) })
	return eg.Wait()
}

// connect gives the ledger its connection: to the broker in this process, or to
// an external one. It also gives what a new device needs to know of the broker.
func connect(ctx context.Context, eg *errgroup.Group, c config.Ledger, log *slog.Logger, programmeKey ed25519.PrivateKey) (*wire.NATS, ledgerhttp.Enrolment, error) {
	public := programmeKey.Public().(ed25519.PublicKey)
	e := ledgerhttp.Enrolment{ProgrammeKey: hex.EncodeToString(public), Brokers: c.NATS.Advertise, Leaf: c.NATS.AdvertiseLeaf}
	if c.Role == config.RoleLedger {
		seed, err := os.ReadFile(c.NATS.UpstreamSeed)
		if err != nil {
			return nil, e, fmt.Errorf("read upstream seed: %w", err)
		}
		e.BrokerKeys = c.NATS.UpstreamKeys
		conn, err := wire.Dial(ctx, wire.NATSOptions{
			URLs: c.NATS.Upstream, Seed: strings.TrimSpace(string(seed)), PinnedKeys: c.NATS.UpstreamKeys,
			Plain: c.NATS.Plain(), Name: "ledger " + c.Process, Log: log,
		})
		return conn, e, err
	}
	seed, key, err := wire.NewDeviceKey()
	if err != nil {
		return nil, e, err
	}
	o, err := brokerOptions(c, log, public)
	if err != nil {
		return nil, e, err
	}
	o.Ledgers = []string{key}
	b, err := broker.New(o)
	if err != nil {
		return nil, e, err
	}
	pin, err := brokerPin(o)
	if err != nil {
		return nil, e, err
	}
	if pin != "" {
		e.BrokerKeys = []string{pin}
	}
	eg.Go(func() error { return runBroker(ctx, b, log) })
	select {
	case <-b.Ready():
	case <-ctx.Done():
		return nil, e, eg.Wait()
	}
	if len(e.Brokers) == 0 {
		e.Brokers = []string{b.URL()}
	}
	if e.Leaf == "" {
		e.Leaf = b.LeafURL()
	}
	conn, err := wire.Dial(ctx, wire.NATSOptions{InProcess: b, Seed: seed, Name: "ledger " + c.Process, Log: log})
	return conn, e, err
}
