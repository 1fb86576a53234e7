package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"admitone/internal/ticket"
)

// MaxCodes is how many codes an event's list may have.
const MaxCodes = 1_000_000

// Revoke revokes a ticket of any event, or takes that back. What is so already
// stays as it is.
func (w *Within) Revoke(f ticket.Format, id ticket.ID, revoked bool, by string) error {
	t, subject := w.t, ticket.RevokeSubject(f, id)
	was, err := t.feedOf(subject)
	if err != nil {
		return wrap("revoke ticket", err)
	}
	if stands := was != nil && was.Revoke != nil && was.Revoke.Revoked; stands == revoked {
		return nil
	}
	t.say(func() {
		t.l.log.Info("ticket revoked", "format", f.String(), "ticket", id.String(), "revoked", revoked, "by", by)
	})
	_, err = t.feed(ticket.Feed{Subject: subject, Revoke: &ticket.FeedRevoke{Format: f, Ticket: id, Revoked: revoked}})
	return wrap("revoke ticket", err)
}

// Release is a supervisor's word that a claim, as it stands now, no longer holds
// its unit. It returns ErrNotFound where the claim is not known, and ErrDone where
// it does not hold.
func (w *Within) Release(id ticket.ClaimID, by, note string) error {
	return wrap("release claim "+id.String(), w.t.release(id, by, note))
}

func (t *txn) release(id ticket.ClaimID, by, note string) error {
	unit, ok, err := t.ClaimUnit(id)
	if err != nil || !ok {
		return orMissing(err)
	}
	u, err := t.unit(unit)
	if err != nil {
		return err
	}
	v, err := t.look(u)
	if err != nil {
		return err
	}
	k, ok := v.Find(id)
	if !ok || !k.Holds() {
		return ErrDone
	}
	t.say(func() {
		t.l.log.Info("claim released", "claim", id.String(), "rev", k.Claim.Rev, "by", by, "note", note)
	})
	_, err = t.feed(ticket.Feed{
		Subject: ticket.ReleaseSubject(id),
		Release: &ticket.FeedRelease{Claim: id, Rev: k.Claim.Rev, Unit: unit},
	})
	return err
}

// PushProgramme signs a programme and sends it to all gates. Version 0 takes the
// next one; any other must be higher than the one that holds (ErrTaken). A
// programme with problems is refused with all of them (ErrInvalid).
func (w *Within) PushProgramme(p ticket.Programme) (version uint64, err error) {
	t := w.t
	was, _, err := t.Subject(ticket.ProgrammeSubject)
	if err != nil {
		return 0, wrap("push programme", err)
	}
	if p.Version == 0 {
		p.Version = was.Version + 1
	}
	if p.Version <= was.Version {
		return 0, fmt.Errorf("push programme: version %d, want more than %d: %w", p.Version, was.Version, ErrTaken)
	}
	p.Events = withKey(p.Events, t.l.opt.TicketKey)
	t.say(func() { t.l.log.Info("programme pushed", "version", p.Version, "events", len(p.Events)) })
	return p.Version, wrap("push programme", t.signProgramme(p))
}

// withKey adds the key of the tickets minted here to each event that takes them.
func withKey(events []ticket.ProgrammeEvent, k ticket.ProgrammeKey) []ticket.ProgrammeEvent {
	if k.ID == "" {
		return events
	}
	events = slices.Clone(events)
	for i, e := range events {
		has := slices.ContainsFunc(e.Keys, func(o ticket.ProgrammeKey) bool { return o.ID == k.ID })
		if !has && slices.Contains(e.Formats, ticket.FormatA1.String()) {
			events[i].Keys = append(slices.Clone(e.Keys), k)
		}
	}
	return events
}

func (t *txn) signProgramme(p ticket.Programme) error {
	key := t.l.opt.ProgrammeKey
	if len(key) != ed25519.PrivateKeySize {
		return fmt.Errorf("no programme key: %w", ErrInvalid)
	}
	if err := p.Validate(); err != nil {
		return errors.Join(ErrInvalid, err)
	}
	signed, err := ticket.SignProgramme(p, key)
	if err != nil {
		return errors.Join(ErrInvalid, err)
	}
	_, err = t.feed(ticket.Feed{
		Subject: ticket.ProgrammeSubject, Version: p.Version, Programme: &ticket.FeedProgramme{Signed: signed},
	})
	return err
}

func (l *Ledger) openProgramme(signed []byte) (ticket.Programme, error) {
	if len(l.opt.ProgrammeKey) != ed25519.PrivateKeySize {
		return ticket.Programme{}, errors.New("no programme key")
	}
	return ticket.OpenProgramme(signed, l.opt.ProgrammeKey.Public().(ed25519.PublicKey))
}

// Programme gives the programme that holds, or ErrNotFound.
func (l *Ledger) Programme(ctx context.Context) (out ticket.Programme, err error) {
	err = l.view(ctx, func(t *txn) error {
		p, err := t.programme()
		if err != nil {
			return err
		}
		if out = p.prog; out.Version == 0 {
			return ErrNotFound
		}
		return nil
	})
	return out, wrap("read programme", err)
}

// CloseEvent ends an event for good: its rows may go once everybody's records are
// in. Closing it again changes nothing.
func (w *Within) CloseEvent(event string) error {
	return wrap("close event "+event, w.t.closeEvent(event))
}

func (t *txn) closeEvent(event string) error {
	ev, err := t.event(event)
	if err != nil {
		return err
	}
	if ev.row == (EventRow{}) {
		return ErrNotFound // it never was on a programme
	}
	if ev.row.Closed != 0 {
		return nil
	}
	t.say(func() { t.l.log.Info("event closed", "event", event) })
	_, err = t.feed(ticket.Feed{Subject: ticket.ClosedSubject(event), Closed: &ticket.FeedClosed{Event: event}})
	return err
}

// closeDue closes the events whose forgetting time has passed, also those that the
// programme does not list any more.
func (l *Ledger) closeDue(ctx context.Context) error {
	var due []string
	err := l.view(ctx, func(t *txn) error {
		due = nil
		return t.Events(func(id string, r EventRow) bool {
			if r.Closed == 0 && r.Forget != 0 && t.now.UnixNano() >= r.Forget {
				due = append(due, id)
			}
			return true
		})
	})
	for _, id := range due {
		if err == nil {
			err = l.CloseEvent(ctx, id)
		}
	}
	return wrap("close events", err)
}

// PutCodes replaces an event's list of code hashes and sends it to all gates, in
// chunks below 512 KB. The event must be on the programme with the format code.
func (w *Within) PutCodes(event string, list ticket.CodeList) (version uint64, err error) {
	version, err = w.t.putCodes(event, list)
	return version, wrap("put codes", err)
}

func (t *txn) putCodes(event string, list ticket.CodeList) (version uint64, err error) {
	if list.Len() > MaxCodes {
		return 0, fmt.Errorf("%d, want at most %d: %w", list.Len(), MaxCodes, ErrInvalid)
	}
	p, err := t.programme()
	if err != nil {
		return 0, err
	}
	if e, ok := p.events[event]; !ok || e.CodeKey == "" {
		return 0, fmt.Errorf("event %q is not on the programme with the format code: %w", event, ErrNotFound)
	}
	chunks := list.Chunks(event)
	for i := range chunks { // the first chunk gets the next version, the others the same
		rec, err := t.feed(ticket.Feed{Subject: ticket.CodesSubject(event, i), Version: version, Codes: &chunks[i]})
		if err != nil {
			return 0, err
		}
		version = rec.Feed.Version
	}
	t.say(func() { t.l.log.Info("code list pushed", "event", event, "codes", list.Len(), "version", version) })
	return version, nil
}

// TicketClaim is one claim of a ticket as the API shows it.
type TicketClaim struct {
	Claim    string        `json:"claim"`
	Event    string        `json:"event"`
	Entry    uint32        `json:"entry"`
	Gate     string        `json:"gate"` // the place
	Lane     string        `json:"lane"`
	Time     string        `json:"time"` // ticket.TimeFormat
	Clock    ticket.Class  `json:"clock"`
	State    ticket.State  `json:"state"`
	Reason   ticket.Reason `json:"reason"`
	Answer   ticket.Answer `json:"answer"` // of the ledger, empty where it was not asked
	Released bool          `json:"released"`
}

// TicketReport is what is known of a ticket.
type TicketReport struct {
	Format  string        `json:"format"`
	Ticket  string        `json:"ticket"`
	Revoked bool          `json:"revoked"`
	Claims  []TicketClaim `json:"claims"`
}

// Ticket gives all that is known of a ticket, over all events.
func (l *Ledger) Ticket(ctx context.Context, f ticket.Format, id ticket.ID) (out TicketReport, err error) {
	err = l.view(ctx, func(t *txn) error {
		out = TicketReport{Format: f.String(), Ticket: id.String(), Claims: []TicketClaim{}}
		rev, err := t.feedOf(ticket.RevokeSubject(f, id))
		if err != nil {
			return err
		}
		out.Revoked = rev != nil && rev.Revoke != nil && rev.Revoke.Revoked
		events, err := t.eventIDs()
		if err != nil {
			return err
		}
		for _, ev := range events {
			rows, err := t.TicketClaims(ev, f, id)
			if err != nil {
				return err
			}
			for _, r := range rows {
				c, err := t.ticketClaim(r)
				if err != nil {
					return err
				}
				out.Claims = append(out.Claims, c)
			}
		}
		return nil
	})
	return out, wrap("read ticket", err)
}

func (t *txn) ticketClaim(r ClaimRow) (TicketClaim, error) {
	released, err := t.released(r.Claim)
	c := r.Claim
	return TicketClaim{
		Claim: c.ID.String(), Event: c.Unit.Event, Entry: c.Unit.Entry, Gate: c.Place, Lane: c.Lane,
		Time: c.Claimed.Time().Format(ticket.TimeFormat), Clock: c.Claimed.Class,
		State: c.State, Reason: c.Reason, Answer: r.Answer, Released: released,
	}, err
}

// eventIDs lists the events of the programme and those of which something is here.
func (t *txn) eventIDs() ([]string, error) {
	p, err := t.programme()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range p.prog.Events {
		out = append(out, e.ID)
	}
	err = t.Events(func(id string, _ EventRow) bool {
		if _, listed := p.events[id]; !listed && id != noEvent {
			out = append(out, id)
		}
		return true
	})
	return out, err
}
