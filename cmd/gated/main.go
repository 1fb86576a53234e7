// Gated is the gate daemon: it reads tickets, claims them in its own store,
// works the turnstile, and tells the other gates and the ledger.
//
//	gated -config FILE                 run until SIGTERM or SIGINT
//	gated -config FILE -check-config   print every problem and exit 1, or 0 if there is none
//	gated doctor -config FILE [-json]  look at everything around the gate, change nothing; exit 1 if something is bad
//	gated db verify STORE              check a store file; exit 0 if it is sound
//	gated relay-off -config FILE       make every output inactive once, without the daemon
//	gated keeper                       hold a turnstile's lines for the daemon, which starts it
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends at once
	}()
	os.Exit(run(ctx, os.Args[1:], environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// environment is what the daemon has from its process, so that a test can start
// it.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run gives the exit code: 0 after a clean stop, 1 for a problem that a person
// must mend, 2 for a wrong command line, 3 where a restart may help.
func run(ctx context.Context, args []string, env environment) int {
	if len(args) > 0 && args[0] == "db" {
		return verify(args[1:], env)
	}
	if len(args) > 0 && args[0] == "doctor" {
		return doctor(ctx, args[1:], env)
	}
	if len(args) > 0 && args[0] == "keeper" {
		return keeper(args[1:], env)
	}
	if len(args) > 0 && args[0] == "relay-off" {
		return relayOff(args[1:], env)
	}
	flags := flag.NewFlagSet("gated", flag.ContinueOnError)
	flags.SetOutput(env.stderr)
	file := flags.String("config", "/etc/gated/gated.toml", "the configuration `file`")
	check := flags.Bool("check-config", false, "print every problem of the configuration and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(env.stderr, "gated: unknown argument %q\n", flags.Arg(0))
		return 2
	}
	c, err := config.LoadGate(*file)
	if *check || err != nil {
		out := env.stderr
		if *check {
			out = env.stdout
		}
		return config.Report(out, *file, err)
	}
	log := slog.New(slog.NewTextHandler(env.stderr, nil))
	d, err := newDaemon(ctx, c, log, env)
	if err == nil {
		err = errors.Join(d.run(ctx), d.close())
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintln(env.stderr, "gated:", err)
	var locked *boltfile.LockedError
	var version *boltfile.VersionError
	if errors.As(err, &locked) || errors.As(err, &version) {
		return 1
	}
	return 3
}

// verify is the child that looks at a store before the daemon maps it: damage can
// end the process that looks, in ways that cannot be caught.
func verify(args []string, env environment) int {
	if len(args) != 2 || args[0] != "verify" {
		fmt.Fprintln(env.stderr, "usage: gated db verify STORE")
		return 2
	}
	err := boltfile.Verify(args[1])
	if err == nil {
		return 0
	}
	fmt.Fprintln(env.stderr, err)
	var damaged *boltfile.DamagedError
	if errors.As(err, &damaged) {
		return 1
	}
	return boltfile.ExitUnsure
}
