package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"admitone/internal/config"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/ledgerstore/tables"
)

// migrate copies a ledger's file into the empty database that the configuration
// names: all of it, read back and compared, or nothing.
func migrate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ledgerd migrate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "/etc/ledgerd/ledgerd.toml", "the configuration `file`, with store.driver postgres")
	from := flags.String("from", "", "the ledger's `file`; default ledger.db in the data folder")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "ledgerd migrate: unknown argument %q\n", flags.Arg(0))
		return 2
	}
	c, err := config.LoadLedger(*file)
	if err != nil {
		return config.Report(stderr, *file, err)
	}
	if *from == "" {
		*from = boltPath(c)
	}
	sums, err := copyStore(ctx, c, *from, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		fmt.Fprintf(stderr, "ledgerd migrate: %v\nNothing was copied.\n", err)
		return 1
	}
	for _, t := range tables.All() {
		sum := sums[t.Name]
		fmt.Fprintf(stdout, "%-12s %9d rows  %s\n", t.Name, sum.Rows, &sum)
	}
	fmt.Fprintf(stdout, "All rows of %s are in the database, read back and compared. Move that file away and start ledgerd.\n", *from)
	return 0
}

func copyStore(ctx context.Context, c config.Ledger, from string, log *slog.Logger) (sums map[string]tables.Sum, err error) {
	if c.Store.Driver != config.DriverPostgres {
		return nil, errors.New(`the configuration's store.driver is "bolt"; set it to "postgres", with the database to copy to`)
	}
	if _, err := os.Stat(from); err != nil {
		return nil, fmt.Errorf("find the ledger's file: %w", err)
	}
	file, err := openFile(ctx, c, from, log)
	if err != nil {
		return nil, err
	}
	store := ledgerstore.New(file)
	defer func() { err = errors.Join(err, store.Close()) }()
	return pgstore.Import(ctx, databaseOptions(c, log), func(row func(string, tables.Row) error) error { return store.Export(ctx, row) })
}
