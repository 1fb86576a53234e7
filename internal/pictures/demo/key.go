// Package demo holds what a demonstration shows: the public demo key, the tickets
// that it signed, the programme that they are for, and the pictures of them in
// testdata/frames.
package demo

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"time"

	"admitone/internal/ticket"
)

// Key is the demo key: the Ed25519 key of the seed SHA-256("admitone public demo
// key"), also in testdata/demo-key.pem. It is public: anybody can sign with it, so
// it is marked demo in the programme, and a gate takes it only where its
// configuration says demo = true.
func Key() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("admitone public demo key"))
	return ed25519.NewKeyFromSeed(seed[:])
}

// The events of the demo programme.
const (
	Event      = "demo"  // is on
	OtherEvent = "other" // has its own doors, at another time
)

// Programme is what is on in the demonstration, at every place: Event, from 2020
// to 2100, and OtherEvent after that.
func Programme() ticket.Programme {
	key := ticket.ProgrammeKeyOf(Key().Public().(ed25519.PublicKey), true)
	event := func(id, name string, open, end int) ticket.ProgrammeEvent {
		return ticket.ProgrammeEvent{
			ID: id, Name: name, Open: year(open), Close: year(end), Forget: year(end + 1),
			Formats: []string{"a1"}, Keys: []ticket.ProgrammeKey{key},
		}
	}
	return ticket.Programme{Version: 1, Events: []ticket.ProgrammeEvent{
		event(Event, "The demonstration", 2020, 2100),
		event(OtherEvent, "Another evening", 2100, 2101),
	}}
}

func year(y int) time.Time { return time.Date(y, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Ticket is the demo's n-th ticket. Its id is the first 16 bytes of
// SHA-256("admitone demo ticket N"); it is valid from 2020 to 2100.
func Ticket(n int) ticket.Ticket {
	hash := sha256.Sum256(fmt.Appendf(nil, "admitone demo ticket %d", n))
	return ticket.Ticket{
		Format: ticket.FormatA1, ID: ticket.ID(hash[:16]), Event: Event,
		NotBefore: year(2020), Expires: year(2100),
	}
}

// expired is the n-th ticket with an end that has passed.
func expired(n int) ticket.Ticket {
	t := Ticket(n)
	t.Expires = year(2021)
	return t
}

// otherEvent is the n-th ticket for the event that is not on.
func otherEvent(n int) ticket.Ticket {
	t := Ticket(n)
	t.Event = OtherEvent
	return t
}
