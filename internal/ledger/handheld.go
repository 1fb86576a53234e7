package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// The rows of the policy table for hand-held scanners (spec, section 7). The
// client's claim id is the key of the first, within its caller; both live until
// the event is forgotten and its grace is over. The ticket's own row is the one
// that gates' asks have.
var (
	claimPolicy = seen.Policy{Endpoint: "claim", OnRepeat: seen.Echo}
	annulPolicy = seen.Policy{Endpoint: "annul", OnRepeat: seen.Echo}
)

// Numbers of hand-held claims.
const (
	handAnnul = 15 * time.Minute // how long staff may take an admission back, as at a gate
	handLease = time.Second      // a record must have one; nothing of these is ever pending
)

// Errors of hand-held claims.
var (
	ErrOther = errors.New("this claim id stands with another ticket")  // returned when a claim id comes again with another ticket
	ErrLate  = errors.New("the admission is too old to be taken back") // returned when an annul comes after 15 minutes
)

// Handheld is one ticket shown to a hand-held scanner.
type Handheld struct {
	Caller string // who has the scanner; its records' source is "http/CALLER"
	Place  string // where the caller stands
	Claim  string // the client's id: the same one again is a retry
	Token  string // the ticket's text
}

// Handled is what a hand-held claim or annul came to.
type Handled struct {
	// Reason is OK where the claim was admitted; InProgress where another claim on
	// the ticket is being decided, so that it is worth coming again; otherwise why
	// the ticket was refused. A refusal leaves nothing behind.
	Reason ticket.Reason
	First  *First // AlreadyUsed and InProgress: the claim that has the ticket

	Body     []byte // OK: an Admission in JSON, byte for byte what the first request got
	Replayed bool   // OK: the request was a retry
}

// Admission is a hand-held claim as its caller is told it.
type Admission struct {
	Claim  string         `json:"claim"` // the client's id
	State  ticket.State   `json:"state"` // admitted, or annulled
	Ticket ticket.ID      `json:"ticket"`
	Format string         `json:"format"`
	Event  string         `json:"event"`
	Gate   string         `json:"gate"`   // the caller's place
	Time   string         `json:"time"`   // when this state began, ticket.TimeFormat
	Record ticket.ClaimID `json:"record"` // the claim's name among gates, as in conflicts
}

// refused undoes a transaction and carries what it came to.
type refused struct{ Handled }

// Error gives the reason.
func (r refused) Error() string { return string(r.Reason) }

// Admit claims a ticket for a hand-held scanner. There is no turnstile that could
// stay closed: the claim that is first is admitted at once, in one transaction
// with the answer that a retry gets again. Test tickets are refused; a hand-held
// has no modes. It returns ErrOther where the claim id stands with another ticket.
func (l *Ledger) Admit(ctx context.Context, h Handheld) (out Handled, err error) {
	err = l.update(ctx, func(t *txn) (err error) {
		out, err = t.admit(h)
		return err
	})
	if no := (refused{}); errors.As(err, &no) {
		return no.Handled, nil
	}
	if err != nil {
		return Handled{}, fmt.Errorf("claim %q of %s: %w", h.Claim, h.Caller, err)
	}
	return out, nil
}

func (t *txn) admit(h Handheld) (Handled, error) {
	tk, reason, err := t.judge(h)
	if err != nil {
		return Handled{}, err
	}
	sum := sha256.Sum256([]byte(h.Token)) // not the unit: a retry is echoed whatever the programme says by then
	k := seen.Key{Endpoint: claimPolicy.Endpoint, Scope: h.Caller, ID: h.Claim}
	until, err := t.remember(tk.Event)
	if err != nil {
		return Handled{}, err
	}
	got, err := t.Seen().Claim(claimPolicy, seen.Request{
		Key: k, At: t.now, Place: h.Place, Holder: h.Caller, Fingerprint: sum[:], Until: until,
	})
	switch {
	case err != nil:
		return Handled{}, fmt.Errorf("claim id: %w", err)
	case got.Outcome == seen.Mismatch:
		return Handled{}, ErrOther
	case got.Outcome == seen.Echoed:
		return Handled{Reason: ticket.OK, Body: got.Row.Result, Replayed: true}, nil
	case got.Outcome != seen.Won:
		return Handled{}, fmt.Errorf("claim id: outcome %d of a row that is never left in progress", got.Outcome)
	case reason != ticket.OK:
		return Handled{}, refused{Handled{Reason: reason}}
	}
	c, err := t.first(h, tk)
	if err != nil {
		return Handled{}, err
	}
	return t.finish(k, h.Caller, admission(h.Claim, c, t.now))
}

// finish stores what a request came to as the answer to its retries.
func (t *txn) finish(k seen.Key, holder string, a Admission) (Handled, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return Handled{}, fmt.Errorf("store answer: %w", err)
	}
	_, err = t.Seen().Finish(k, holder, body)
	return Handled{Reason: ticket.OK, Body: body}, wrap("store answer", err)
}

func admission(id string, c ticket.Claim, at time.Time) Admission {
	return Admission{
		Claim: id, State: c.State, Ticket: c.Unit.Ticket, Format: c.Unit.Format.String(), Event: c.Unit.Event,
		Gate: c.Place, Time: at.UTC().Format(ticket.TimeFormat), Record: c.ID,
	}
}

// judge reads a ticket's text as a gate at the caller's place would.
func (t *txn) judge(h Handheld) (ticket.Ticket, ticket.Reason, error) {
	v, err := t.verifier()
	if err != nil || v == nil {
		return ticket.Ticket{}, ticket.NotReady, err
	}
	at := ticket.Where{Place: h.Place, Now: t.now, Clock: t.clock(), UntrustedAdmit: true}
	tk, reason := v.Check(h.Token, at)
	if reason == ticket.OK && tk.Test {
		reason = ticket.TestTicket
	}
	if reason != ticket.OK {
		return tk, reason, nil
	}
	ev, err := t.event(tk.Event)
	if err == nil && ev.row.Closed != 0 {
		reason = ticket.Closed
	}
	return tk, reason, err
}

func (t *txn) clock() ticket.Class {
	if t.l.opt.ClockTrusted() {
		return ticket.Trusted
	}
	return ticket.Untrusted
}

// remember gives until when the rows of a claim on a ticket of an event must stay.
func (t *txn) remember(event string) (time.Time, error) {
	ev, err := t.event(event)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, max(t.now.UnixNano(), ev.row.Forget)).Add(t.l.opt.Grace), nil
}

// first writes the claim, if no other has its ticket. The ledger's clock is what
// others are held against, so the stamp has no error bound.
func (t *txn) first(h Handheld, tk ticket.Ticket) (ticket.Claim, error) {
	source := ticket.Source(handSource + h.Caller)
	own, pos, err := t.next(source)
	if err != nil {
		return ticket.Claim{}, err
	}
	now := t.now.UnixNano()
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: source, Run: own.Run, Pos: pos}, Unit: tk.Unit(), State: ticket.Admitted,
		Claimed: ticket.Stamp{Wall: now, Class: t.clock()}, At: now, Place: h.Place, Lease: handLease,
	}
	u, err := t.unit(c.Unit)
	if err != nil {
		return c, err
	}
	ans, v, err := t.decide(u, c)
	if err != nil {
		return c, err
	}
	if ans.Answer != ticket.AnswerFirst {
		return c, refused{Handled{Reason: reasonOf(ans.Answer), First: ans.First}}
	}
	c.After = v.Freed()
	if _, err := t.write(source, ticket.Record{Claim: &c}); err != nil {
		return c, err
	}
	u.find(c.ID).Answer = ans.Answer
	t.say(func() { t.l.counts.hands.Add(1) })
	return c, nil
}

// reasonOf is what the holder is told of an answer that is not first.
func reasonOf(a ticket.Answer) ticket.Reason {
	switch a {
	case ticket.AnswerSeen:
		return ticket.AlreadyUsed
	case ticket.AnswerInProgress:
		return ticket.InProgress
	case ticket.AnswerRevoked:
		return ticket.Revoked
	}
	return ticket.Unknown
}

// Annul takes an admission back on the word of staff: only the caller that made it
// may, within 15 minutes (ErrLate). The same annul again is echoed. It returns
// ErrNotFound where this caller made no such claim.
func (l *Ledger) Annul(ctx context.Context, caller, claim string) (out Handled, err error) {
	err = l.update(ctx, func(t *txn) (err error) {
		out, err = t.annul(caller, claim)
		return err
	})
	return out, wrap(fmt.Sprintf("annul claim %q of %s", claim, caller), err)
}

func (t *txn) annul(caller, claim string) (Handled, error) {
	made, ok, err := t.Seen().Get(seen.Key{Endpoint: claimPolicy.Endpoint, Scope: caller, ID: claim})
	if err != nil || !ok {
		return Handled{}, orMissing(err)
	}
	k := seen.Key{Endpoint: annulPolicy.Endpoint, Scope: caller, ID: claim}
	got, err := t.Seen().Claim(annulPolicy, seen.Request{Key: k, At: t.now, Place: made.Place, Holder: caller, Until: made.Until})
	if err != nil {
		return Handled{}, fmt.Errorf("annul: %w", err)
	}
	if got.Outcome == seen.Echoed {
		return Handled{Reason: ticket.OK, Body: got.Row.Result, Replayed: true}, nil
	}
	if t.now.Sub(made.FirstSeen) > handAnnul {
		return Handled{}, fmt.Errorf("%w: at most %s; a supervisor can release it", ErrLate, handAnnul)
	}
	var a Admission
	if err := json.Unmarshal(made.Result, &a); err != nil {
		return Handled{}, fmt.Errorf("read stored answer: %w", err)
	}
	c, err := t.takeBack(a.Record)
	if err != nil {
		return Handled{}, err
	}
	return t.finish(k, caller, admission(claim, c, t.now))
}

// takeBack writes the revision of a hand-held's claim that frees its ticket.
func (t *txn) takeBack(id ticket.ClaimID) (ticket.Claim, error) {
	unit, ok, err := t.ClaimUnit(id)
	if err != nil || !ok {
		return ticket.Claim{}, orMissing(err)
	}
	u, err := t.unit(unit)
	if err != nil {
		return ticket.Claim{}, err
	}
	c := u.find(id).Claim
	if c.State == ticket.Annulled { // as another ledger knew, before this one was put back from a backup
		return c, nil
	}
	c.Rev++
	c.State, c.At = ticket.Annulled, t.now.UnixNano()
	_, err = t.write(c.ID.Gate, ticket.Record{Claim: &c})
	return c, err
}
