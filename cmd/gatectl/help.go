package main

import (
	"flag"
	"strings"
)

const helpHead = `Gatectl works gates and their ledger.

Usage: gatectl COMMAND [arguments and flags, in any order]

`

const helpFoot = `
Commands that speak with the ledger take -ledger URL (or $ADMITONE_LEDGER),
reads -key-file FILE (or $ADMITONE_KEY) with a bearer key, changes -sign FILE
(or $ADMITONE_SIGN) with a signing key. Commands on a gate take -socket PATH.
With -json every command prints JSON, one object a line.

Exit codes: 0 all was done, 1 something was not, 2 the command line is wrong.
"gatectl help COMMAND" says more.
`

// help prints the list of commands, those of a group, or one with its flags.
func help(env environment, words []string) error {
	o := newOutput(env, false)
	var match []command
	name := strings.Join(words, " ")
	for _, c := range commands() {
		if name == "" || c.name == name || strings.HasPrefix(c.name, name+" ") {
			match = append(match, c)
		}
	}
	switch {
	case name == "":
		o.prose(helpHead)
		o.overview(match)
		o.prose(helpFoot)
	case len(match) == 0:
		return suggest(wrongUsage("unknown command %q", name), words[0], firstWords(commands()), "")
	case len(match) == 1:
		o.manual(match[0])
	default:
		o.overview(match)
	}
	return o.w.Flush()
}

// prose prints lines of our own.
func (o *output) prose(s string) {
	for l := range strings.Lines(s) {
		o.line([]cell{text(strings.TrimSuffix(l, "\n"))}, nil)
	}
}

func (o *output) overview(list []command) {
	var rows [][]cell
	for _, c := range list {
		rows = append(rows, []cell{text(" "), {c.name + " " + c.args, strong}, text(c.about)})
	}
	o.columns(rows)
}

func (o *output) manual(c command) {
	flags := " [flags]"
	if c.raw {
		flags = ""
	}
	o.prose("Usage: gatectl " + strings.TrimSpace(c.name+" "+c.args) + flags + "\n\n" + c.about + ".\n")
	if c.help != "" {
		o.prose("\n" + c.help + "\n")
	}
	if c.raw {
		return
	}
	own, common := newFlags(), newFlags()
	c.flags(own)
	g := globals{socket: defaultSocket}
	g.declare(common, c.uses)
	o.prose("\nFlags:\n")
	var rows [][]cell
	for _, fs := range []*flag.FlagSet{own, common} {
		fs.VisitAll(func(f *flag.Flag) {
			arg, about := flag.UnquoteUsage(f)
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
				about += " (default " + f.DefValue + ")"
			}
			rows = append(rows, []cell{text(" "), {strings.TrimSpace("-" + f.Name + " " + arg), strong}, text(about)})
		})
	}
	o.columns(rows)
}
