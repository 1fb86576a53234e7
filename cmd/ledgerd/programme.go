package main

import (
	"context"
	"crypto/ed25519"
	"slices"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// centre is the ledger as the API sees it: the key that this ledger signs tickets
// with enters every programme that is pushed.
type centre struct {
	*ledger.Ledger
	ticketKey ed25519.PublicKey // nil: it signs none
	demo      bool              // the key is marked so
}

// PushProgramme adds the ledger's own ticket key to the events that take signed
// tickets, so that nobody has to copy it by hand.
func (c centre) PushProgramme(ctx context.Context, p ticket.Programme) (uint64, error) {
	if c.ticketKey != nil {
		p.Events = slices.Clone(p.Events)
		for i, e := range p.Events {
			own := ticket.ProgrammeKeyOf(c.ticketKey, c.demo)
			has := slices.ContainsFunc(e.Keys, func(k ticket.ProgrammeKey) bool { return k.ID == own.ID })
			if !has && slices.Contains(e.Formats, ticket.FormatA1.String()) {
				p.Events[i].Keys = append(slices.Clone(e.Keys), own)
			}
		}
	}
	return c.Ledger.PushProgramme(ctx, p)
}
