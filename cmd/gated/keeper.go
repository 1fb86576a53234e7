package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"admitone/hardware/turnstile"
	"admitone/internal/config"
)

// self starts another process of this program, also where its file was replaced by
// an upgrade since: a keeper must speak as its parent does.
const self = "/proc/self/exe"

// keeper is the child process that holds a turnstile's lines: see turnstile.Keeper.
func keeper(args []string, env environment) int {
	if len(args) > 0 {
		fmt.Fprintln(env.stderr, "usage: gated keeper (the daemon starts it by itself)")
		return 2
	}
	_ = os.WriteFile("/proc/self/comm", []byte("gated-keeper"), 0) // a name for top, which would say exe
	return turnstile.Keeper(env.stdin, env.stdout, env.stderr, turnstile.Open)
}

// newKept makes the lines of a turnstile, held by a keeper of their own.
func newKept(c config.Turnstile, stderr io.Writer, log *slog.Logger) (*turnstile.Kept, error) {
	w, err := wiring(c)
	if err != nil {
		return nil, err
	}
	return turnstile.NewKept(turnstile.KeptOptions{
		Command: []string{self, "keeper"}, Stderr: stderr, Wiring: w, MaxOn: time.Duration(c.MaxOn), Log: log,
	})
}

// wiring is what the configuration says of a turnstile's lines.
func wiring(c config.Turnstile) (turnstile.Wiring, error) {
	w := turnstile.Wiring{
		Driver: turnstile.Driver(c.Driver), Chip: c.Chip, AllowDevMem: c.AllowDevMem, Debounce: time.Duration(c.Debounce),
		Pins: map[turnstile.Line]int{}, Pull: map[turnstile.Line]turnstile.Pull{},
		File: c.File, Passage: turnstile.Passage(c.Passage),
	}
	for _, names := range []struct {
		from []string
		to   *[]turnstile.Line
	}{{c.ActiveLow, &w.ActiveLow}, {c.Inputs, &w.Inputs}} {
		for _, n := range names.from {
			line, err := turnstile.ParseLine(n)
			if err != nil {
				return w, err
			}
			*names.to = append(*names.to, line)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.Pins)) {
		line, err := turnstile.ParseLine(n)
		if err != nil {
			return w, err
		}
		w.Pins[line] = c.Pins[n]
		if pull, ok := c.Pull[n]; ok {
			w.Pull[line] = turnstile.Pull(pull)
		}
	}
	return w, nil
}

// debounce is what is left for the turnstile to do.
func debounce(c config.Turnstile) time.Duration {
	if c.Driver == config.DriverGPIOChip || c.Debounce == 0 {
		return -1 // the kernel does it, or nobody should
	}
	return time.Duration(c.Debounce)
}

// offPatience is how long relay-off tries to get lines that are in use: the
// daemon's keeper may be about to end.
const offPatience = 3 * time.Second

// relayOff makes every output of every turnstile inactive, without the daemon: for
// the service manager when the daemon has ended, however it did. It never fails a
// unit: what could not be done is told, and the exit code is 0 except for a wrong
// command line.
func relayOff(args []string, env environment) int {
	flags := flag.NewFlagSet("gated relay-off", flag.ContinueOnError)
	flags.SetOutput(env.stderr)
	file := flags.String("config", "/etc/gated/gated.toml", "the configuration `file`")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	// A configuration that the daemon would not take may still say where the relay is.
	c, err := config.LoadGate(*file)
	if err != nil {
		config.Report(env.stderr, *file, err)
	}
	for _, l := range c.Lanes {
		if err := off(l.Turnstile); err != nil {
			fmt.Fprintf(env.stderr, "gated relay-off: lane %s: %v\n", l.Name, err)
			continue
		}
		fmt.Fprintf(env.stdout, "lane %s: every output is inactive\n", l.Name)
	}
	return 0
}

func off(c config.Turnstile) error {
	w, err := wiring(c)
	if err != nil {
		return err
	}
	return turnstile.Off(w, offPatience)
}
