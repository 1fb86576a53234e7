package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/config"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// certificateLife is how long a broker's own certificate is dated for. Its key is
// pinned and its dates are only reported, so they may as well be long.
const certificateLife = 20 * 365 * 24 * time.Hour

// serveBroker runs a venue's broker, a leaf of the ledger's.
func serveBroker(ctx context.Context, c config.Ledger, log *slog.Logger) error {
	key, err := hex.DecodeString(c.Device.ProgrammeKey)
	if err != nil {
		return fmt.Errorf("read programme key: %w", err)
	}
	o, err := brokerOptions(c, log, ed25519.PublicKey(key))
	if err != nil {
		return err
	}
	o.Name, o.Seed = strings.ReplaceAll(c.Device.Place, " ", "-"), c.Device.Seed // NATS allows no blanks
	o.Upstream, o.UpstreamPins = c.NATS.Upstream, c.NATS.UpstreamKeys
	b, err := broker.New(o)
	if err != nil {
		return err
	}
	watch, err := watchBroker(b, log)
	if err != nil {
		return err
	}
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error { return runBroker(ctx, b, log) })
	eg.Go(func() error { return watch.Run(ctx) })
	return eg.Wait()
}

// brokerOptions are what the broker of every role has in common. The certificate
// is made at the first start.
func brokerOptions(c config.Ledger, log *slog.Logger, listKey ed25519.PublicKey) (broker.Options, error) {
	o := broker.Options{
		Name: "ledger-" + c.Process, Listen: c.NATS.Listen, LeafListen: c.NATS.Leaf, Plain: c.NATS.PlainLoopback,
		ListKey: listKey, ListFile: filepath.Join(c.DataDir, "gates.list"), Log: log,
		CertFile: filepath.Join(c.DataDir, "broker.crt"), KeyFile: filepath.Join(c.DataDir, "broker.key"),
	}
	if o.Plain {
		o.CertFile, o.KeyFile = "", ""
		return o, nil
	}
	if _, err := os.Stat(o.KeyFile); err == nil {
		return o, nil
	}
	cert, key, err := wire.NewCertificate("admitone broker", time.Now(), certificateLife)
	if err != nil {
		return o, err
	}
	// The certificate first: a key file alone says that both are there. One without
	// its key is what a power cut left.
	if err := os.Remove(o.CertFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, fmt.Errorf("write broker's certificate: %w", err)
	}
	if err := config.WriteNew(o.CertFile, cert, 0o644); err != nil {
		return o, fmt.Errorf("write broker's certificate: %w", err)
	}
	if err := config.WriteNew(o.KeyFile, key, 0o600); err != nil {
		return o, fmt.Errorf("write broker's key: %w", err)
	}
	return o, nil
}

// brokerPin is the hash that gates pin, "" without TLS.
func brokerPin(o broker.Options) (string, error) {
	if o.Plain {
		return "", nil
	}
	cert, err := os.ReadFile(o.CertFile)
	if err != nil {
		return "", fmt.Errorf("read broker's certificate: %w", err)
	}
	return wire.Pin(cert)
}

func runBroker(ctx context.Context, b *broker.Broker, log *slog.Logger) error {
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error { return b.Run(ctx) })
	eg.Go(func() error {
		select {
		case <-b.Ready():
			log.Info("broker listens", "url", b.URL(), "leaf", b.LeafURL())
		case <-ctx.Done():
		}
		return nil
	})
	return eg.Wait()
}
