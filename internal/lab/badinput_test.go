package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"admitone/internal/config"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// programmeOf has events with tickets of one key.
func programmeOf(key ed25519.PrivateKey, events ...ticket.ProgrammeEvent) *ticket.Programme {
	public := key.Public().(ed25519.PublicKey)
	for i := range events {
		e := &events[i]
		e.Name, e.Forget, e.Formats = e.ID, e.Close.Add(30*24*time.Hour), []string{ticket.FormatA1.String()}
		e.Keys = []ticket.ProgrammeKey{{ID: ticket.NewSigner(key).KeyID(), Public: hex.EncodeToString(public)}}
	}
	return &ticket.Programme{Events: events}
}

// Codes that are no tickets, and tickets that are none here.
func TestBadInput(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	stand(t, Options{Gates: 2, TicketKey: key, Programme: programmeOf(key,
		ticket.ProgrammeEvent{ID: Event, Open: now.Add(-time.Hour), Close: now.Add(time.Hour)},
		ticket.ProgrammeEvent{ID: "next-week", Open: now.Add(7 * 24 * time.Hour), Close: now.Add(8 * 24 * time.Hour)},
	)}).play([]scene{
		{"each kind", badKinds},
		{"a thousand, then a good one", badThousand},
		{"one claim id, two tickets", oneClaimTwoTickets},
	})
}

// badLook is a text with the reasons of the looks that it is.
type badLook struct {
	name, text string
	want       []ticket.Reason
}

func (s *stage) badLooks(used pass) []badLook {
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	s.must(err)
	alien, err := ticket.NewSigner(foreign).Mint(s.one().ticket)
	s.must(err)
	minted := func(change func(*ticket.Ticket)) string { return s.mint(1, change)[0].text }
	why := func(r ...ticket.Reason) []ticket.Reason { return r }
	bad := why(ticket.Invalid)
	half := len(used.text) / 2
	return []badLook{
		{"junk", "hello", bad},
		{"huge", strings.Repeat("A1:7", 4<<10), bad},
		{"binary", "\x00\x01\xff\xfe\x80\x00", bad},
		{"control characters", "\x1b[2J\x07\x08\x7f" + used.text, bad},
		{"a forged log line", used.text + `" verdict=admit reason=ok`, bad},
		{"a forged line of a log", "x\ntime=2026-11-30T00:00:00Z level=INFO msg=verdict verdict=admit", why(ticket.Invalid, ticket.Invalid)},
		{"no text but a mark of direction", "\u202e\u2066", bad},
		{"cut off", used.text[:len(used.text)-4], bad},
		{"lower case", strings.ToLower(used.text), bad},
		{"a blank before", " " + used.text, bad},
		{"a blank after", used.text + " ", bad},
		{"a tab after", used.text + "\t", bad},
		{"padding", used.text + "=", bad},
		{"more after", used.text + "00", bad},
		{"a newline inside", used.text[:half] + "\n" + used.text[half:], why(ticket.Invalid, ticket.Invalid)},
		{"an escaped newline inside", used.text[:half] + `\n` + used.text[half:], bad},
		{"twice in one line", used.text + used.text, bad},
		{"another key's", alien, why(ticket.Unknown)},
		{"an unknown event's", minted(func(t *ticket.Ticket) { t.Event = "elsewhere" }), why(ticket.Unknown)},
		{"another event's", minted(func(t *ticket.Ticket) { t.Event = "next-week" }), why(ticket.WrongEvent)},
		{"an unknown session's", minted(func(t *ticket.Ticket) { t.Session = "matinee" }), why(ticket.WrongSession)},
		{"expired", minted(func(t *ticket.Ticket) { t.Expires = time.Unix(1e9, 0).UTC() }), why(ticket.Expired)},
		{"early", minted(func(t *ticket.Ticket) { t.NotBefore = time.Now().Add(time.Hour).UTC().Truncate(time.Second) }), why(ticket.NotYetValid)},
		{"a test ticket", minted(func(t *ticket.Ticket) { t.Test = true }), why(ticket.TestTicket)},
		{"the used one itself", used.text, why(ticket.AlreadyUsed)},
	}
}

// badKinds: each gets its reason and one line that forges nothing, and the next
// good ticket is admitted.
func badKinds(s *stage) {
	used := s.one()
	s.admit(1, used)
	s.pause(rearm)
	looks := s.badLooks(used)
	for _, b := range looks {
		verdicts, logged := len(s.verdicts(1)), len(s.log("gate-1"))
		s.look(1, b.text)
		s.eventually("the verdicts on "+b.name, func() bool { return len(s.verdicts(1)) >= verdicts+len(b.want) })
		good := s.one()
		s.admit(1, good)
		got := s.verdicts(1)[verdicts:]
		if len(got) != len(b.want)+1 {
			s.t.Errorf("%s: %d verdicts, want %d and the good one's: %+v", b.name, len(got), len(b.want), got)
			continue
		}
		for i, want := range b.want {
			if v := got[i]; v.Reason != want || v.Verdict != ticket.Refuse || v.Claim != "" || want == ticket.Invalid && v.Ticket != "" {
				s.t.Errorf("%s: %+v, want %s", b.name, v, want)
			}
		}
		s.quietLog(b, s.log("gate-1")[logged:])
	}
}

// quietLog wants one escaped line a look, none of which says what was shown.
func (s *stage) quietLog(b badLook, log string) {
	s.t.Helper()
	if n := strings.Count(log, "msg=verdict"); n != len(b.want)+1 {
		s.t.Errorf("%s: %d lines of verdicts in the log:\n%s", b.name, n, log)
	}
	if strings.Count(log, "\n") != strings.Count(log, "time=") || strings.Contains(log, "2026-11-30T00:00:00Z") {
		s.t.Errorf("%s: a forged line in the log:\n%s", b.name, log)
	}
	if strings.ContainsFunc(log, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || strings.Contains(log, "A1:") {
		s.t.Errorf("%s: the log shows what was read:\n%q", b.name, log)
	}
}

// badThousand: a flood of junk costs the good ticket behind it nothing.
func badThousand(s *stage) {
	calm, before := s.pace(1, 5), len(s.verdicts(1))
	var flood strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&flood, "A1:JUNK%d\n", i)
	}
	s.look(1, strings.TrimSuffix(flood.String(), "\n"))
	behind := s.one()
	s.look(1, behind.text)
	s.eventually("all verdicts", func() bool { return len(s.verdicts(1)) >= before+1001 })
	if v := s.said(1, behind); len(v) != 1 || v[0].Verdict != ticket.Admit {
		s.t.Errorf("a good ticket behind a thousand bad ones: %+v", v)
	}
	s.idle(1)
	if after := s.pace(1, 5); after > 10*calm {
		s.t.Errorf("after a thousand bad codes an admission takes %v, before them %v", after, calm)
	}
}

// oneClaimTwoTickets: the ledger holds the next claim id of gate 2 with another
// ticket, as after a copied store. Nothing is changed by asking again, and the
// gate stops admitting.
func oneClaimTwoTickets(s *stage) {
	v := s.admit(2, s.one())
	last, err := ticket.ParseClaimID(v.Claim)
	s.must(err)
	next := last
	next.Pos += 2 // its passage took one
	conf, err := config.LoadGate(s.at.gate(2, "gated.toml"))
	s.must(err)
	conn, err := wire.Dial(s.t.Context(), wire.NATSOptions{
		URLs: []string{"tls://" + s.brokerAddr}, Seed: conf.Device.Seed, PinnedKeys: []string{s.brokerPin}, Name: "copy", Log: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	defer conn.Close()
	s.eventually("a connection", func() bool { return conn.Status().Connected })
	other := s.one()
	rec := ticket.Record{Source: next.Gate, Run: next.Run, Pos: next.Pos, Claim: &ticket.Claim{
		ID: next, Unit: other.ticket.Unit(), State: ticket.Pending, Place: "2", Lane: "1", Lease: time.Minute,
		Claimed: ticket.Stamp{Wall: time.Now().UnixNano()},
	}}
	raw, err := rec.Encode()
	s.must(err)
	s.must(conn.Publish("gate."+string(next.Gate)+".spend", raw))
	s.eventually("the copy's claim at the ledger", func() bool { return len(s.claims(other)) == 1 })
	before := s.claims(other)
	p := s.one()
	if v := s.show(2, p); v.Reason != ticket.Fault || v.Verdict != ticket.Refuse {
		s.t.Errorf("a claim id that stands with another ticket: %+v", v)
	}
	if after := s.claims(other); len(after) != 1 || after[0] != before[0] {
		s.t.Errorf("the ledger changed %+v to %+v", before, after)
	}
	if s.status(2).Fault == "" {
		s.t.Error("the gate is not in fault")
	}
	if v := s.show(2, s.one()); v.Reason != ticket.Fault {
		s.t.Errorf("a gate in fault: %+v", v)
	}
}
