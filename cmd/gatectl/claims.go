package main

import (
	"context"
	"flag"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func claimCommands() []command {
	return []command{{
		name: "revoke", args: "TICKET", about: "Revoke a ticket at the ledger and all gates, by its id or text", min: 1, max: 1, uses: writes, flags: revokeFlags,
	}, {
		name: "release", args: "CLAIM", about: "Free the ticket of a claim that still holds it, as a supervisor", min: 1, max: 1, uses: writes, flags: releaseFlags,
		help: "CLAIM is as verdicts and conflicts name it, GATE/RUN/POSITION. -note says why, for the records.",
	}}
}

func revokeFlags(fs *flag.FlagSet) action {
	undo := fs.Bool("undo", false, "take a revocation back")
	name := fs.String("format", "a1", "the ticket's `FORMAT`, a1 or code")
	return func(ctx context.Context, c *call) error {
		f, err := format(*name)
		if err != nil {
			return err
		}
		id, err := ticketID(c.args[0])
		if err != nil {
			return err
		}
		client, err := c.ledgerFor(writes)
		if err != nil {
			return err
		}
		if err := client.Revoke(ctx, f, id, !*undo); err != nil {
			return err
		}
		word := "✓ revoked"
		if *undo {
			word = "✓ no longer revoked"
		}
		return c.out.say(revokeReport{id.String(), f.String(), !*undo}, cell{word, good}, text(id.String()))
	}
}

// revokeReport is how a ticket stands after revoke.
type revokeReport struct {
	Ticket  string `json:"ticket"`
	Format  string `json:"format"`
	Revoked bool   `json:"revoked"`
}

// claimReport is what became of a claim.
type claimReport struct {
	Claim string `json:"claim"`
	Done  string `json:"done"` // annulled or released
}

func releaseFlags(fs *flag.FlagSet) action {
	note := fs.String("note", "", "why, a `TEXT`; needed")
	return func(ctx context.Context, c *call) error {
		if *note == "" {
			return hint(wrongUsage("-note is needed"), `say why, as in -note "gate 3 was replaced"`)
		}
		id, err := claimID(c.args[0])
		if err != nil {
			return err
		}
		client, err := c.ledgerFor(writes)
		if err != nil {
			return err
		}
		if err := client.Release(ctx, id, *note); err != nil {
			return err
		}
		return c.out.say(claimReport{Claim: id.String(), Done: "released"}, cell{"✓ released", good}, text(id.String()))
	}
}

// claimID reads a claim as verdicts name it.
func claimID(s string) (ticket.ClaimID, error) {
	id, err := ticket.ParseClaimID(s)
	if err != nil {
		return id, hint(&usage{err}, "verdicts and conflicts name it so")
	}
	return id, nil
}

func claimsFlags(fs *flag.FlagSet) action {
	name := fs.String("format", "a1", "the ticket's `FORMAT`, a1 or code")
	return func(ctx context.Context, c *call) error {
		f, err := format(*name)
		if err != nil {
			return err
		}
		id, err := ticketID(c.args[0])
		if err != nil {
			return err
		}
		client, err := c.ledgerFor(reads)
		if err != nil {
			return err
		}
		r, err := client.Ticket(ctx, f, id)
		if err != nil {
			return err
		}
		if c.out.json {
			return c.out.object(r)
		}
		if r.Revoked {
			c.out.line([]cell{{"✗ revoked", bad}}, nil)
		}
		return table(c.out, all(r.Claims, nil), "no claims", []string{"time", "gate", "state", "answer", "clock", "event", "claim"}, claimRow)
	}
}

func claimRow(t ledger.TicketClaim) []cell {
	state := text(t.State.String())
	if t.Released {
		state = cell{t.State.String() + ", released", amber}
	}
	return []cell{text(t.Time), text(t.Gate), state, text(or(string(t.Answer), "not asked")), text(t.Clock.String()), text(t.Event), text(t.Claim)}
}
