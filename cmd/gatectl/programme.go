package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"

	"admitone/internal/config"
	"admitone/internal/ticket"
)

func programmeCommands() []command {
	return []command{{
		name: "programme push", args: "FILE", about: "Send what is on to the ledger, which signs it and sends it to all gates", min: 1, max: 1, uses: writes, flags: noFlags(pushProgramme),
		help: "FILE is TOML, or JSON with the same keys. Every problem is told at once, and nothing is\nsent then. Without a version it takes the next one.",
	}, {
		name: "programme check", args: "FILE", about: "Tell every problem of a programme file, and send nothing", min: 1, max: 1, flags: noFlags(checkProgramme),
	}, {
		name: "programme show", about: "Print the programme that holds", uses: reads, flags: noFlags(showProgramme),
	}, {
		name: "programme close", args: "EVENT", about: "End an event for good: its records may go once everybody's are in", min: 1, max: 1, uses: writes, flags: noFlags(closeEvent),
	}}
}

// readProgramme reads a programme file, and gives every problem at once. Version
// 0, the ledger's next, is none; nor is an event of signed tickets without a key,
// to which a ledger that signs tickets adds its own: whether it does is its to
// tell.
func readProgramme(file string) (p ticket.Programme, err error) {
	err = config.LoadDocument(file, &p, func() error {
		whole := p
		whole.Version = max(1, p.Version)
		whole.Events = slices.Clone(p.Events)
		for i, e := range whole.Events {
			if len(e.Keys) == 0 && slices.Contains(e.Formats, ticket.FormatA1.String()) {
				whole.Events[i].Keys = []ticket.ProgrammeKey{ticket.ProgrammeKeyOf(make(ed25519.PublicKey, ed25519.PublicKeySize), false)}
			}
		}
		return whole.Validate()
	})
	return p, err
}

// programmeReport is a programme after it was pushed or checked.
type programmeReport struct {
	Version uint64 `json:"version"` // 0: the next one
	Events  int    `json:"events"`
}

func pushProgramme(ctx context.Context, c *call) error {
	p, err := readProgramme(c.args[0])
	if err != nil {
		return err
	}
	client, err := c.ledgerFor(writes)
	if err != nil {
		return err
	}
	v, err := client.PushProgramme(ctx, p)
	if err != nil {
		return err
	}
	r := programmeReport{v, len(p.Events)}
	return c.out.say(r, cell{"✓ pushed", good}, text(fmt.Sprintf("version %d with %s", v, count(r.Events, "event"))))
}

func checkProgramme(_ context.Context, c *call) error {
	p, err := readProgramme(c.args[0])
	if err != nil {
		return err
	}
	return c.out.say(programmeReport{p.Version, len(p.Events)}, cell{"✓ no problems", good}, text(count(len(p.Events), "event")))
}

func showProgramme(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads)
	if err != nil {
		return err
	}
	p, err := client.Programme(ctx)
	if err != nil {
		return err
	}
	if c.out.json {
		return c.out.object(p)
	}
	c.out.line([]cell{{fmt.Sprintf("version %d", p.Version), strong}}, nil)
	now := c.env.now()
	head := []string{"event", "now", "open", "close", "forget", "formats", "name"}
	return table(c.out, all(p.Events, nil), "no events", head, func(e ticket.ProgrammeEvent) []cell {
		return []cell{text(e.ID), phase(e, now), text(when(e.Open)), text(when(e.Close)), text(when(e.Forget)), text(strings.Join(e.Formats, ", ")), text(e.Name)}
	})
}

// phase says where an event stands by this machine's clock.
func phase(e ticket.ProgrammeEvent, now time.Time) cell {
	switch {
	case now.Before(e.Open):
		return text("to come")
	case now.Before(e.Close):
		return cell{"✓ open", good}
	case now.Before(e.Forget):
		return text("over")
	}
	return cell{"forgotten", faint}
}

// closeReport is the event that was closed.
type closeReport struct {
	Event string `json:"event"`
}

func closeEvent(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(writes)
	if err != nil {
		return err
	}
	if err := client.CloseEvent(ctx, c.args[0]); err != nil {
		return err
	}
	return c.out.say(closeReport{c.args[0]}, cell{"✓ closed", good}, text(c.args[0]))
}
