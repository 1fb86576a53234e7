package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"flag"
	"strings"

	"admitone/internal/ticket"
)

func ticketCommands() []command {
	return []command{{
		name: "ticket mint", about: "Make signed tickets: texts, QR codes or a sheet to print", flags: mintFlags,
		help: "Texts go to standard output unless -png, -sheet or -out is given. Event, session and\nzone or product have at most 24 characters together. No file is overwritten.",
	}, {
		name: "ticket show", args: "TEXT", about: "Say what a ticket's text says, and whether its signature is good", min: 1, max: 1, flags: showFlags,
		help: "-key verifies against one key; -programme against the event's keys of a programme\nfile, and gives the id that a code has at each event. The exit code is 1 where the\nsignature is not good.",
	}, {
		name: "ticket import", args: "FILE", about: "Push a list of codes that were sold elsewhere, one a line", min: 1, max: 1, uses: writes, flags: importFlags,
		help: "Only keyed hashes leave this machine, and they replace the event's list at the ledger,\nwhich pushes it to all gates. A line that is no code is told by its number and costs\nnothing else; the exit code is 1 then. FILE - is standard input.",
	}, {
		name: "ticket claims", args: "TICKET", about: "List what became of a ticket, by its id or text", min: 1, max: 1, uses: reads, flags: claimsFlags,
	}}
}

// showing is what ticket show was told.
type showing struct{ key, programme string }

func showFlags(fs *flag.FlagSet) action {
	s := showing{}
	fs.StringVar(&s.key, "key", "", "the signer's `PUBLIC` key: 64 hex digits, or a PEM file")
	fs.StringVar(&s.programme, "programme", "", "a programme `FILE`, TOML or JSON")
	return s.run
}

// The words on a signature.
const (
	sigGood      = "good"
	sigBad       = "bad"
	sigUnknown   = "unknown key"
	sigUnchecked = "not checked"
)

// ticketReport is what a text says.
type ticketReport struct {
	Format    string `json:"format"`
	ID        string `json:"id"`
	Event     string `json:"event"`
	Session   string `json:"session"`
	Zone      string `json:"zone"`
	Product   string `json:"product"`
	NotBefore string `json:"not_before"`
	Expires   string `json:"expires"`
	Test      bool   `json:"test"`
	Entry     uint32 `json:"entry"`
	Key       string `json:"key"`
	Signature string `json:"signature"` // good, bad, unknown key or not checked
}

func (s *showing) run(_ context.Context, c *call) error {
	var p ticket.Programme
	var err error
	if s.programme != "" {
		if p, err = readProgramme(s.programme); err != nil {
			return err
		}
	}
	u, err := ticket.Inspect(c.args[0])
	if err != nil {
		return showCode(c, p, err)
	}
	keys, asked, err := s.keys(p, u.Ticket.Event)
	if err != nil {
		return err
	}
	return c.showTicket(u, judge(u, keys, asked))
}

// keys gives what the signature is to be checked with, and whether it is at all.
func (s *showing) keys(p ticket.Programme, event string) (keys []ed25519.PublicKey, asked bool, err error) {
	if s.key != "" {
		pub, err := publicKey(s.key)
		return []ed25519.PublicKey{pub}, true, err
	}
	e, _ := p.Event(event)
	for _, k := range e.Keys {
		if pub, err := hex.DecodeString(k.Public); err == nil { // the programme was validated
			keys = append(keys, pub)
		}
	}
	return keys, s.programme != "", nil
}

// publicKey reads a key from the command line: hex digits, or a file's name.
func publicKey(s string) (ed25519.PublicKey, error) {
	if b, err := hex.DecodeString(s); err == nil && len(b) == ed25519.PublicKeySize {
		return b, nil
	}
	return readPublic(s)
}

func judge(u ticket.Unverified, keys []ed25519.PublicKey, asked bool) string {
	verdict := sigUnknown
	for _, k := range keys {
		switch {
		case u.SignedBy(k):
			return sigGood
		case ticket.KeyID(k) == u.KeyID:
			verdict = sigBad
		}
	}
	if !asked {
		return sigUnchecked
	}
	return verdict
}

func (c *call) showTicket(u ticket.Unverified, signature string) error {
	t := u.Ticket
	r := ticketReport{
		Format: t.Format.String(), ID: t.ID.String(), Event: t.Event, Session: t.Session, Zone: t.Zone, Product: t.Product,
		NotBefore: when(t.NotBefore), Expires: when(t.Expires), Test: t.Test, Entry: t.Entry, Key: u.KeyID, Signature: signature,
	}
	sign := cell{"✗ " + signature, bad}
	switch signature {
	case sigGood:
		sign = cell{"✓ " + signature, good}
	case sigUnchecked:
		sign = cell{"? " + signature + " (give -key or -programme)", amber}
	}
	kind := text("no")
	if t.Test {
		kind = cell{"yes: admits nobody", amber}
	}
	err := c.out.fields(r,
		field{"format", text(r.Format)}, field{"id", text(r.ID)}, field{"event", text(r.Event)},
		field{"session", text(or(r.Session, "any"))}, field{"zone", text(or(r.Zone, "any"))}, field{"product", text(or(r.Product, "any"))},
		field{"valid from", text(or(r.NotBefore, "always"))}, field{"valid until", text(or(r.Expires, "the event's end"))},
		field{"test ticket", kind}, field{"key", text(r.Key)}, field{"signature", sign},
	)
	if err == nil && (signature == sigBad || signature == sigUnknown) {
		return errTold
	}
	return err
}

// codeReport is the id that a text has at an event, if it is on its list.
type codeReport struct {
	Format string `json:"format"`
	ID     string `json:"id"`
	Event  string `json:"event"`
}

// showCode says what a text that is no a1 ticket would be as a code.
func showCode(c *call, p ticket.Programme, notA1 error) error {
	if err := ticket.CheckCode(c.args[0]); err != nil {
		return err
	}
	var list []codeReport
	for _, e := range p.Events {
		if key, err := hex.DecodeString(e.CodeKey); err == nil && e.CodeKey != "" {
			list = append(list, codeReport{ticket.FormatCode.String(), ticket.CodeHash(key, c.args[0]).String(), e.ID})
		}
	}
	if len(list) == 0 {
		return hint(notA1, "a code has an id at an event with the format code: give its programme with -programme")
	}
	return table(c.out, all(list, nil), "", []string{"format", "id", "event"}, func(r codeReport) []cell {
		return []cell{text(r.Format), text(r.ID), text(r.Event)}
	})
}

// ticketID reads a ticket as it is named on the command line: by its id, or by
// the text of an a1 ticket.
func ticketID(s string) (ticket.ID, error) {
	if u, err := ticket.Inspect(s); err == nil {
		return u.Ticket.ID, nil
	}
	id, err := ticket.ParseID(s)
	if err != nil {
		return id, hint(&usage{errors.New("no ticket's id: want 32 hex digits, or the text of an a1 ticket")},
			"verdicts and orders name it; `gatectl ticket show` gives it for a text")
	}
	return id, nil
}

// format reads a ticket format's name.
func format(name string) (ticket.Format, error) {
	for _, f := range []ticket.Format{ticket.FormatA1, ticket.FormatCode} {
		if f.String() == strings.ToLower(name) {
			return f, nil
		}
	}
	return 0, wrongUsage("-format %q: want a1 or code", name)
}
