// Ledgerd is the centre: the ledger that decides between gates, its HTTP side with
// the operators' page, and the broker that carries the messages. By its role it
// is all of that, the ledger alone, or a venue's broker alone.
//
//	ledgerd -config FILE                 run until SIGTERM or SIGINT
//	ledgerd -config FILE -check-config   print every problem and exit 1, or 0 if there is none
//	ledgerd db verify STORE              check a store file; exit 0 if it is sound
//	ledgerd migrate -config FILE         copy a store file into an empty PostgreSQL database
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/ledgerstore/pgschema"
	"admitone/internal/ledgerstore/pgstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run gives the exit code: 0 after a clean stop, 1 for a problem that a person
// must mend, 2 for a wrong command line, 3 where a restart may help.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "db" {
		return verify(args[1:], stderr)
	}
	if len(args) > 0 && args[0] == "migrate" {
		return migrate(ctx, args[1:], stdout, stderr)
	}
	flags := flag.NewFlagSet("ledgerd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "/etc/ledgerd/ledgerd.toml", "the configuration `file`")
	check := flags.Bool("check-config", false, "print every problem of the configuration and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "ledgerd: unknown argument %q\n", flags.Arg(0))
		return 2
	}
	c, err := config.LoadLedger(*file)
	if *check || err != nil {
		out := stderr
		if *check {
			out = stdout
		}
		return config.Report(out, *file, err)
	}
	err = serve(ctx, c, slog.New(slog.NewTextHandler(stderr, nil)))
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintln(stderr, "ledgerd:", err)
	return exitCode(err)
}

func exitCode(err error) int {
	var locked *boltfile.LockedError
	var kind *boltfile.KindError
	var version *boltfile.VersionError
	var damaged *boltfile.DamagedError
	var server *pgstore.ServerError
	if errors.As(err, &locked) || errors.As(err, &kind) || errors.As(err, &version) || errors.As(err, &damaged) ||
		errors.As(err, &server) || errors.Is(err, pgschema.ErrNewer) {
		return 1
	}
	return 3
}

// serve runs what the role asks for.
func serve(ctx context.Context, c config.Ledger, log *slog.Logger) error {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("open data directory: %w", err)
	}
	if c.Role == config.RoleBroker {
		return serveBroker(ctx, c, log)
	}
	return serveLedger(ctx, c, log)
}

func verify(args []string, stderr io.Writer) int {
	if len(args) != 2 || args[0] != "verify" {
		fmt.Fprintln(stderr, "usage: ledgerd db verify STORE")
		return 2
	}
	err := boltfile.Verify(args[1])
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	var damaged *boltfile.DamagedError
	if errors.As(err, &damaged) {
		return 1
	}
	return boltfile.ExitUnsure
}
