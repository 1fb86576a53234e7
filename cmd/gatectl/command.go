package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	"admitone/internal/config"
)

// defaultSocket is where gated listens by default.
const defaultSocket = "/run/gated/control.sock"

// command is a row of the table of commands.
type command struct {
	name  string // one word, or a group and a word
	args  string // what stands beside the flags, as help prints it
	about string // one line
	help  string // more, for its own help
	alone bool   // the group's word alone means this command
	min   int    // arguments
	max   int    // and most of them; -1: any number
	uses  uses
	raw   bool // it parses its own flags

	// flags declares the command's own flags and gives what it does.
	flags func(*flag.FlagSet) action
}

// action does a command.
type action func(ctx context.Context, c *call) error

// call is one run of a command.
type call struct {
	args []string
	out  *output
	env  environment
	globals
}

// uses says which of the global flags a command takes.
type uses uint8

const (
	reads  uses = 1 << iota // the ledger, with a bearer key
	writes                  // the ledger, with a signing key
	socket                  // a gate's socket
)

// globals are the flags that many commands have in common.
type globals struct {
	json                          bool
	ledger, keyFile, sign, socket string
}

// declare adds the flags that a command takes.
func (g *globals) declare(fs *flag.FlagSet, u uses) {
	fs.BoolVar(&g.json, "json", g.json, "print JSON, one object a line")
	if u&(reads|writes) != 0 {
		fs.StringVar(&g.ledger, "ledger", g.ledger, "the ledger's `URL`; default $ADMITONE_LEDGER")
	}
	if u&reads != 0 {
		fs.StringVar(&g.keyFile, "key-file", g.keyFile, "a `FILE` with a bearer key for reads; default $ADMITONE_KEY")
	}
	if u&writes != 0 {
		fs.StringVar(&g.sign, "sign", g.sign, "the private key `FILE` that signs changes; default $ADMITONE_SIGN")
	}
	if u&socket != 0 {
		fs.StringVar(&g.socket, "socket", g.socket, "the gate's socket, a `PATH`")
	}
}

// noFlags is for commands without flags of their own.
func noFlags(a action) func(*flag.FlagSet) action {
	return func(*flag.FlagSet) action { return a }
}

// dispatch finds the command and runs it. Global flags may stand before it.
func dispatch(ctx context.Context, args []string, g globals, env environment) error {
	lead := newFlags()
	g.declare(lead, reads|writes|socket)
	if err := lead.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return help(env, nil)
		}
		return wrongFlag(lead, err)
	}
	args = lead.Args()
	if len(args) == 0 {
		if err := help(env, nil); err != nil {
			return err
		}
		return &usage{errTold}
	}
	if args[0] == "help" {
		return help(env, args[1:])
	}
	c, rest, err := find(args)
	if err != nil {
		return err
	}
	return c.run(ctx, rest, g, env)
}

// find gives the command that the first words name, and what follows them.
func find(args []string) (command, []string, error) {
	word := ""
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		word = args[1]
	}
	var alone *command
	var group []string // the words that may follow the first
	table := commands()
	for i, c := range table {
		first, second, two := strings.Cut(c.name, " ")
		if first != args[0] {
			continue
		}
		if !two {
			return c, args[1:], nil
		}
		if second == word {
			return c, args[2:], nil
		}
		if group = append(group, second); c.alone {
			alone = &table[i]
		}
	}
	switch {
	case word == "" && alone != nil:
		return *alone, args[1:], nil
	case group == nil:
		return command{}, nil, suggest(wrongUsage("unknown command %q", args[0]), args[0], firstWords(table), "")
	case word == "":
		return command{}, nil, hint(wrongUsage("%s what?", args[0]), "one of: %s", strings.Join(group, ", "))
	}
	return command{}, nil, suggest(wrongUsage("unknown command %q", args[0]+" "+word), word, group, args[0]+" ")
}

func firstWords(table []command) []string {
	var words []string
	for _, c := range table {
		first, _, _ := strings.Cut(c.name, " ")
		words = append(words, first)
	}
	return append(slices.Compact(words), "help")
}

// suggest adds the nearest known name to an error, or where to look.
func suggest(err error, name string, known []string, prefix string) error {
	if near := config.Nearest(name, known); near != "" {
		return hint(err, "did you mean %s%s?", prefix, near)
	}
	return hint(err, "`gatectl help` lists all commands")
}

// run parses what follows the command's name, and does it.
func (c command) run(ctx context.Context, args []string, g globals, env environment) error {
	fs := newFlags()
	g.declare(fs, c.uses)
	do := c.flags(fs)
	if c.raw {
		return do(ctx, &call{args: args, env: env})
	}
	rest, err := parse(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return help(env, strings.Fields(c.name))
	case err != nil:
		return wrongFlag(fs, err)
	case len(rest) < c.min:
		return hint(wrongUsage("%s: something is missing", c.name), "gatectl %s", strings.TrimSpace(c.name+" "+c.args))
	case c.max >= 0 && len(rest) > c.max:
		return hint(wrongUsage("%s: %q is too much", c.name, rest[c.max]), "gatectl %s", strings.TrimSpace(c.name+" "+c.args))
	}
	out := newOutput(env, g.json)
	err = do(ctx, &call{args: rest, out: out, env: env, globals: g})
	return errors.Join(err, out.w.Flush())
}

func newFlags() *flag.FlagSet {
	fs := flag.NewFlagSet("gatectl", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// parse takes flags before, between and after the arguments; "--" ends them.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	var tail []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, tail = args[:i], args[i+1:]
	}
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if args = fs.Args(); len(args) == 0 {
			return append(rest, tail...), nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// wrongFlag turns what package flag says into an error of ours.
func wrongFlag(fs *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return wrongUsage("%w", err)
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if near := config.Nearest(name, known); near != "" {
		return hint(wrongUsage("unknown flag -%s", name), "did you mean -%s?", near)
	}
	return hint(wrongUsage("unknown flag -%s", name), "the flags here are -%s", strings.Join(known, ", -"))
}
