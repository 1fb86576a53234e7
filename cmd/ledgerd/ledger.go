package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
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
	l, err := ledger.New(store.Store, ledger.Options{
		Process: c.Process, Now: time.Now, Log: log, ProgrammeKey: programmeKey, DeviceID: wire.DeviceID,
		Demo: c.Demo, TicketKey: ticketKey,
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
	api, ln, err := openHTTP(c, l, box, enrolment, log)
	if err != nil {
		return err
	}
	watch, err := watchLedger(c, ln.Addr(), store.alive, conn, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	log.Info("ledger serves", "http", ln.Addr().String(), "process", c.Process, "pid", os.Getpid())
	eg.Go(func() error { return store.keep(ctx) })
	eg.Go(func() error { return l.Run(ctx) })
	eg.Go(func() error { return serving.Run(ctx) })
	eg.Go(func() error { return box.Run(ctx) })
	eg.Go(func() error { return api.Run(ctx, ln) })
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

func openHTTP(c config.Ledger, l *ledger.Ledger, box *office.Office, e ledgerhttp.Enrolment, log *slog.Logger) (*ledgerhttp.Server, net.Listener, error) {
	o := ledgerhttp.Options{Ledger: l, Now: time.Now, Log: log, Enrolment: e, Office: box, Policies: policies(c)}
	for _, k := range c.Callers {
		caller := ledgerhttp.Caller{Name: k.Name, Place: k.Place, NotBefore: k.NotBefore, NotAfter: k.NotAfter}
		if _, err := hex.Decode(caller.Hash[:], []byte(k.KeySHA256)); err != nil {
			return nil, nil, fmt.Errorf("read caller %s: %w", k.Name, err)
		}
		for _, s := range k.Scopes {
			caller.Scopes = append(caller.Scopes, string(s))
		}
		o.Callers = append(o.Callers, caller)
	}
	for _, k := range c.Signers {
		public, err := hex.DecodeString(k.Public)
		if err != nil {
			return nil, nil, fmt.Errorf("read signer %s: %w", k.Name, err)
		}
		signer := ledgerhttp.Signer{Name: k.Name, Public: public, NotBefore: k.NotBefore, NotAfter: k.NotAfter}
		for _, s := range k.Scopes {
			signer.Scopes = append(signer.Scopes, string(s))
		}
		o.Signers = append(o.Signers, signer)
	}
	server, err := ledgerhttp.New(o)
	if err != nil {
		return nil, nil, err
	}
	ln, err := net.Listen("tcp", c.HTTP.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	if c.HTTP.TLS() {
		pair, err := tls.LoadX509KeyPair(c.HTTP.Cert, c.HTTP.Key)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("read HTTP certificate: %w", err), ln.Close())
		}
		ln = tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	}
	return server, ln, nil
}
