package main

import (
	"context"
	"strings"

	"admitone/internal/lab"
)

func labCommands() []command {
	return []command{{
		name: "lab", args: "VERB DIR ...", about: "Rehearse with simulated hardware on this machine", max: -1, raw: true,
		help: strings.TrimSpace(lab.Usage), flags: noFlags(runLab),
	}}
}

// runLab hands the line over; the lab tells its own errors.
func runLab(ctx context.Context, c *call) error {
	switch lab.Main(ctx, c.args, c.env.stdin, c.env.stdout, c.env.stderr) {
	case exitOK:
		return nil
	case exitUsage:
		return &usage{errTold}
	}
	return errTold
}
