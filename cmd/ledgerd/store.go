package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
)

// storage is the ledger's store, with what it needs beside it.
type storage struct {
	ledger.Store
	books office.Books
	alive func(context.Context) error // asks the writer for a sign of life
	keep  func(context.Context) error // runs beside the ledger until the context ends
	close func() error
}

// openStore opens what the configuration names.
func openStore(ctx context.Context, c config.Ledger, log *slog.Logger) (storage, error) {
	if c.Store.Driver == config.DriverPostgres {
		return openDatabase(ctx, c, log)
	}
	file, err := openFile(ctx, c, boltPath(c), log)
	if err != nil {
		return storage{}, err
	}
	s := ledgerstore.New(file)
	return storage{
		Store: s, books: s.Books(), close: s.Close,
		alive: func(ctx context.Context) error {
			return file.Update(ctx, func(kv.Tx) error { return nil }) // after whatever commit is under way; no flush
		},
		keep: func(context.Context) error { return nil },
	}, nil
}

func boltPath(c config.Ledger) string { return filepath.Join(c.DataDir, "ledger.db") }

func openFile(ctx context.Context, c config.Ledger, path string, log *slog.Logger) (*boltfile.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f, err := boltfile.Open(ctx, path, boltfile.Options{
		Name: "ledger", Version: ledgerstore.Version, MaxSize: int64(c.MaxSize), Log: log,
		Verify: func(ctx context.Context, path string) error {
			return boltfile.VerifyInChild(ctx, exe, []string{"db", "verify"}, path)
		},
	})
	var damaged *boltfile.DamagedError
	if errors.As(err, &damaged) {
		// Unlike a gate's, a ledger's store holds what nobody else may have: a
		// person decides.
		return nil, fmt.Errorf("%w; put a backup in its place, or move it away: then the gates bring back what they hold", err)
	}
	if err == nil && f.Doubtful() {
		log.Error("a meta page of the store is damaged: the last commit may be missing, and only what gates were told comes back")
	}
	return f, err
}

func databaseOptions(c config.Ledger, log *slog.Logger) pgstore.Options {
	return pgstore.Options{URL: c.Store.URL, Process: c.Process, Conns: c.Store.Connections, Log: log}
}

// openDatabase takes this process's name on the database first: two of one name
// would publish under one source.
func openDatabase(ctx context.Context, c config.Ledger, log *slog.Logger) (storage, error) {
	o := databaseOptions(c, log)
	name, err := pgstore.TakeName(ctx, o)
	if err != nil {
		return storage{}, err
	}
	s, err := pgstore.Open(ctx, o)
	if err != nil {
		return storage{}, errors.Join(err, name.Close())
	}
	if _, err := os.Stat(boltPath(c)); err == nil {
		log.Warn("a ledger's file lies unused beside the database: ledgerd migrate copies it, then move it away", "file", boltPath(c))
	}
	return storage{
		Store: s, books: s.Books(), alive: s.Ready, keep: name.Run,
		close: func() error { return errors.Join(s.Close(), name.Close()) },
	}, nil
}
