package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/gatestore"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// opener opens the gate's store, once or twice.
type opener struct {
	path, exe string
	maxSize   int64
	device    ticket.Source
	log       *slog.Logger
}

// openStore opens the gate's store. One that cannot be used is set aside and a new
// one begun: the gate says so, with why it was lost, catches up, and keeps working.
func openStore(ctx context.Context, c config.Gate, device ticket.Source, log *slog.Logger) (f *boltfile.File, s *gatestore.Store, lost string, err error) {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, nil, "", fmt.Errorf("open store: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, "", fmt.Errorf("open store: %w", err)
	}
	o := opener{path: filepath.Join(c.DataDir, "gate.db"), exe: exe, maxSize: int64(c.MaxSize), device: device, log: log}
	f, s, err = o.open(ctx)
	lost, yes := useless(err)
	if !yes {
		return f, s, "", err
	}
	aside, asideErr := boltfile.SetAside(o.path, time.Now())
	if asideErr != nil {
		return nil, nil, "", errors.Join(err, asideErr)
	}
	log.Error("the store cannot be used and is set aside; the gate begins a new one and catches up", "why", lost, "kept", aside)
	f, s, err = o.open(ctx)
	return f, s, lost, err
}

func (o opener) open(ctx context.Context) (*boltfile.File, *gatestore.Store, error) {
	f, err := boltfile.Open(ctx, o.path, boltfile.Options{
		Name: "gate", Version: gatestore.Version, MaxSize: o.maxSize, Log: o.log,
		Verify: func(ctx context.Context, path string) error {
			return boltfile.VerifyInChild(ctx, o.exe, []string{"db", "verify"}, path)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	if f.Doubtful() {
		o.log.Error("a meta page of the store is damaged: the last commit may be missing, and the gate catches up")
	}
	store, err := gatestore.New(ctx, f, gatestore.Options{Device: o.device, Doubt: f.Doubtful()})
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, store, nil
}

// useless says why a file is none that this gate can go on with: it is damaged, no
// store of a gate's, or another gate's. A gate left alone has nobody to put that
// right, and what the file holds is kept. A newer program's file is no such case:
// whoever went back a version can go forward again.
func useless(err error) (why string, yes bool) {
	var damaged *boltfile.DamagedError
	var kind *boltfile.KindError
	var owner *gatestore.OwnerError
	switch {
	case errors.As(err, &damaged):
		return damaged.Why, true
	case errors.As(err, &kind):
		return "it is no store of a gate", true
	case errors.As(err, &owner):
		return fmt.Sprintf("it is the store of device %s, whose records only that device can upload", owner.Have), true
	case errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrUnknown):
		return err.Error(), true
	}
	return "", false
}
