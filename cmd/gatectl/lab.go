package main

import (
	"context"
	"strings"

	"admitone/internal/lab"
	"admitone/internal/ticket"
)

func labCommands() []command {
	return []command{{
		name: "lab", args: "VERB DIR ...", about: "Rehearse with simulated hardware on this machine", max: -1, raw: true,
		help: strings.TrimSpace(lab.Usage), flags: noFlags(runLab),
	}}
}

// runLab hands the line over; the lab tells its own errors.
func runLab(ctx context.Context, c *call) error {
	out := newOutput(c.env, false)
	switch lab.Main(ctx, c.args, lab.Terminal{Out: c.env.stdout, Err: c.env.stderr, Verdict: func(v ticket.Verdict) error {
		out.line(verdictLine(v), nil)
		return out.w.Flush()
	}}) {
	case exitOK:
		return nil
	case exitUsage:
		return &usage{errTold}
	}
	return errTold
}
