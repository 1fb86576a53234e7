package main

import (
	"crypto/ed25519"

	"admitone/internal/config"
	"admitone/internal/ticket"
)

// ticketKey is what a programme must say of the key that tickets are minted with
// here; the zero value where there is none.
func ticketKey(c config.Ledger) (ticket.ProgrammeKey, error) {
	if c.TicketKey == "" {
		return ticket.ProgrammeKey{}, nil
	}
	key, err := config.ReadKey(c.TicketKey)
	if err != nil {
		return ticket.ProgrammeKey{}, err
	}
	return ticket.ProgrammeKeyOf(key.Public().(ed25519.PublicKey), c.Demo), nil
}
