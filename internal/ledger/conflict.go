package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// Errors of admin calls.
var (
	ErrNotFound = errors.New("not found")                            // returned when what is named is not there
	ErrTaken    = errors.New("taken")                                // returned when a place, device or version is in use
	ErrInvalid  = errors.New("not valid")                            // returned when the input is wrong; the text says what
	ErrDone     = errors.New("it does not hold its ticket any more") // returned when a claim does not hold, so that there is nothing to release
)

// ConflictState is where a conflict stands.
type ConflictState string

// The states of a conflict.
const (
	ConflictOpen         ConflictState = "open"
	ConflictAcknowledged ConflictState = "acknowledged" // with all its present claims
	ConflictWithdrawn    ConflictState = "withdrawn"    // no longer derived: a claim was annulled or released
)

// ConflictRow is a unit's conflict: what was derived last, and what people made
// of it.
type ConflictRow struct {
	ID        string           `cbor:"1,keyasint"`
	Unit      ticket.Unit      `cbor:"2,keyasint"`
	Sides     []Side           `cbor:"3,keyasint"` // first first
	Certain   bool             `cbor:"4,keyasint"` // false: a side is presumed
	Ordered   bool             `cbor:"5,keyasint"` // false: which was first is not certain
	State     ConflictState    `cbor:"6,keyasint"`
	Announced int64            `cbor:"7,keyasint"`           // Unix nanoseconds, once
	Note      string           `cbor:"8,keyasint,omitempty"` // of the last acknowledgement
	By        string           `cbor:"9,keyasint,omitempty"`
	Acked     []ticket.ClaimID `cbor:"10,keyasint,omitempty"` // the claims that were acknowledged
}

// Side is one claim of a conflict.
type Side struct {
	_     struct{} `cbor:",toarray"`
	Claim ticket.ClaimID
	Place string
	Time  int64 // Unix nanoseconds
	Class ticket.Class
	State ticket.State
	Heard int64 // when the claim first arrived here, Unix nanoseconds
}

// settleConflict derives the unit's conflict anew and stores what changed. It is
// announced once, with one log line; after that it is amended silently, whatever
// the order in which records came.
func (t *txn) settleConflict(u *unitState, v ticket.View) error {
	if len(v.Claims) < 2 {
		return nil
	}
	found, derived := ticket.DeriveConflict(v)
	id := ticket.ConflictID(v.Unit)
	was, known, err := t.Conflict(id)
	if err != nil {
		return fmt.Errorf("read conflict: %w", err)
	}
	if !known && !derived {
		return nil
	}
	now := was
	if !known {
		now = ConflictRow{ID: id, Unit: v.Unit, Announced: t.now.UnixNano()}
		t.say(func() { t.l.announce(now) })
	}
	if derived {
		now.Sides, now.Certain, now.Ordered = u.sides(found.Claims), found.Certain, found.Ordered
	}
	now.State = standing(now, derived)
	if known && sameConflict(was, now) {
		return nil
	}
	if err := t.PutConflict(now); err != nil {
		return fmt.Errorf("store conflict: %w", err)
	}
	if err := t.tellConflict(known, now); err != nil {
		return err
	}
	return t.countConflict(was.State, now.State, v.Unit.Event)
}

// standing is a function of what is derived and what was acknowledged alone.
func standing(c ConflictRow, derived bool) ConflictState {
	if !derived {
		return ConflictWithdrawn
	}
	for _, s := range c.Sides {
		if !slices.Contains(c.Acked, s.Claim) {
			return ConflictOpen
		}
	}
	return ConflictAcknowledged
}

func sameConflict(a, b ConflictRow) bool {
	return a.State == b.State && a.Certain == b.Certain && a.Ordered == b.Ordered && slices.Equal(a.Sides, b.Sides)
}

func (u *unitState) sides(claims []ticket.Claim) []Side {
	out := make([]Side, len(claims))
	for i, c := range claims {
		out[i] = Side{
			Claim: c.ID, Place: c.Place, Time: c.Claimed.Wall, Class: c.Claimed.Class, State: c.State, Heard: u.find(c.ID).Since,
		}
	}
	return out
}

func (t *txn) countConflict(was, now ConflictState, event string) error {
	counts := func(s ConflictState) bool { return s == ConflictOpen || s == ConflictAcknowledged }
	if counts(was) == counts(now) {
		return nil
	}
	ev, err := t.event(event)
	if err != nil {
		return err
	}
	ev.dirty = true
	if counts(now) {
		ev.row.Conflicts++
	} else {
		ev.row.Conflicts--
	}
	return nil
}

func (l *Ledger) announce(c ConflictRow) {
	first := c.Sides[0]
	l.log.Warn("conflict", "conflict", c.ID, "ticket", c.Unit.Ticket.String(), "event", c.Unit.Event,
		"first_gate", first.Place, "first_seen", unix(first.Time).Format(ticket.TimeFormat), "claims", len(c.Sides))
}

// Conflict is a conflict as the API shows it (spec, section 10).
type Conflict struct {
	ID        string         `json:"id"`
	Ticket    string         `json:"ticket"`
	Event     string         `json:"event"`
	First     ConflictSide   `json:"first"`
	Others    []ConflictSide `json:"others"`
	State     ConflictState  `json:"state"`
	Announced string         `json:"announced"` // ticket.TimeFormat
	Certain   bool           `json:"certain"`
	Ordered   bool           `json:"ordered"`
	Note      string         `json:"note"`

	// Outage groups the conflicts that one outage allowed: it is when the first
	// claim of the outage was made that came late (ticket.TimeFormat); empty where
	// no claim of the conflict came late.
	Outage string `json:"outage"`
}

// ConflictSide is one admission of a conflict.
type ConflictSide struct {
	Gate  string       `json:"gate"` // the place
	Time  string       `json:"time"` // ticket.TimeFormat
	Claim string       `json:"claim"`
	Clock ticket.Class `json:"clock"`
}

// Report gives the row as the API shows it.
func (c ConflictRow) Report() Conflict {
	out := Conflict{
		ID: c.ID, Ticket: c.Unit.Ticket.String(), Event: c.Unit.Event, Others: []ConflictSide{},
		State: c.State, Announced: unix(c.Announced).Format(ticket.TimeFormat),
		Certain: c.Certain, Ordered: c.Ordered, Note: c.Note,
	}
	for i, s := range c.Sides {
		side := ConflictSide{Gate: s.Place, Time: unix(s.Time).Format(ticket.TimeFormat), Claim: s.Claim.String(), Clock: s.Class}
		if i == 0 {
			out.First = side
		} else {
			out.Others = append(out.Others, side)
		}
	}
	return out
}

// Conflicts lists conflicts by the time of their announcement, after a cursor
// ("": from the start); next is the cursor to go on with.
func (l *Ledger) Conflicts(ctx context.Context, after string, limit int) (out []Conflict, next string, err error) {
	out = []Conflict{}
	err = l.view(ctx, func(t *txn) error {
		rows, n, err := t.Conflicts(after, limit)
		if err != nil || len(rows) == 0 {
			return err
		}
		began, err := t.outages()
		if err != nil {
			return err
		}
		for _, r := range rows {
			c := r.Report()
			c.Outage = began[r.ID]
			out = append(out, c)
		}
		next = n
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list conflicts: %w", err)
	}
	return out, next, nil
}

// Conflict gives one conflict, or ErrNotFound.
func (l *Ledger) Conflict(ctx context.Context, id string) (out Conflict, err error) {
	err = l.view(ctx, func(t *txn) error {
		row, ok, err := t.Conflict(id)
		if err == nil && !ok {
			err = ErrNotFound
		}
		out = row.Report()
		return err
	})
	if err != nil {
		return Conflict{}, fmt.Errorf("read conflict %q: %w", id, err)
	}
	return out, nil
}

func unix(ns int64) time.Time { return time.Unix(0, ns).UTC() }
