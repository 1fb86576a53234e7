package main

import (
	"context"
	"flag"
	"strings"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func conflictCommands() []command {
	return []command{{
		name: "conflicts list", alone: true, about: "List the tickets that were admitted twice, oldest first", uses: reads, flags: conflictsFlags,
		help: "`gatectl conflicts` is the same. -csv exports all, a line for each side.",
	}, {
		name: "conflicts acknowledge", args: "ID", about: "Mark a conflict as dealt with", min: 1, max: 1, uses: writes, flags: acknowledgeFlags,
		help: "A claim that is added to it later opens it again.",
	}, {
		name: "alarms", about: "List what people should look into besides conflicts, oldest first", uses: reads, flags: noFlags(alarms),
	}}
}

func conflictsFlags(fs *flag.FlagSet) action {
	csv := fs.Bool("csv", false, "export as CSV")
	return func(ctx context.Context, c *call) error {
		client, err := c.ledgerFor(reads)
		if err != nil {
			return err
		}
		if *csv {
			return client.ConflictsCSV(ctx, c.out.raw())
		}
		head := []string{"id", "state", "ticket", "event", "first", "others", "note"}
		return table(c.out, client.AllConflicts(ctx), "no conflicts", head, conflictRow)
	}
}

func conflictRow(x ledger.Conflict) []cell {
	state := cell{"✓ " + string(x.State), good}
	if x.State == ledger.ConflictOpen {
		state = cell{"! " + string(x.State), bad}
	}
	var others []string
	for _, o := range x.Others {
		others = append(others, side(o))
	}
	var doubts []string
	if !x.Certain {
		doubts = append(doubts, "a side is presumed")
	}
	if !x.Ordered {
		doubts = append(doubts, "which was first is uncertain")
	}
	return []cell{
		text(x.ID), state, text(x.Ticket), text(x.Event), text(side(x.First)), text(strings.Join(others, "; ")),
		text(strings.Join(nonEmpty(x.Note, strings.Join(doubts, ", ")), "; ")),
	}
}

func side(s ledger.ConflictSide) string {
	out := s.Gate + " at " + s.Time
	if s.Clock == ticket.Untrusted {
		out += " (clock untrusted)"
	}
	return out
}

func acknowledgeFlags(fs *flag.FlagSet) action {
	note := fs.String("note", "", "what was found out, a `TEXT`; needed")
	return func(ctx context.Context, c *call) error {
		if *note == "" {
			return hint(wrongUsage("-note is needed"), `say what was found out, as in -note "one family, paid twice"`)
		}
		client, err := c.ledgerFor(writes)
		if err != nil {
			return err
		}
		x, err := client.Acknowledge(ctx, c.args[0], *note)
		if err != nil {
			return err
		}
		return c.out.say(x, cell{"✓ " + string(x.State), good}, text(x.ID))
	}
}

func alarms(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads)
	if err != nil {
		return err
	}
	head := []string{"time", "alarm", "over", "gate", "event", "ticket", "detail"}
	return table(c.out, client.AllAlarms(ctx), "no alarms", head, func(a ledger.AlarmReport) []cell {
		kind := cell{"! " + string(a.Kind), bad}
		if a.Over != "" {
			kind = text("  " + string(a.Kind))
		}
		return []cell{text(a.Time), kind, text(or(a.Over, "-")), text(or(a.Gate, a.Device)), text(or(a.Event, "-")), text(or(a.Ticket, "-")), text(a.Detail)}
	})
}
