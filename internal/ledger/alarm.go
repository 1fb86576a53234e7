package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"admitone/internal/ticket"
)

// AlarmKind says what an alarm is about.
type AlarmKind string

// The kinds of alarms (spec, section 4). None of them is a conflict.
const (
	AlarmRevoked  AlarmKind = "revoked_admitted" // admitted although revoked centrally before
	AlarmOverdue  AlarmKind = "overdue"          // a claim that holds its unit was never completed
	AlarmDistrust AlarmKind = "replaced_box"     // admitted by a device that had been replaced or revoked
	AlarmSkew     AlarmKind = "clock_skew"       // a device's clock is more than 60 s off
	AlarmSensor   AlarmKind = "sensor"           // a gate's passage sensor became suspect, or works again: the detail says which
	AlarmForked   AlarmKind = "forked"           // one position or revision came with two contents: a store was lost
	AlarmMismatch AlarmKind = "mismatch"         // one claim id came with two units
	AlarmRestored AlarmKind = "restored"         // the ledger was put back to an earlier state
)

// Alarm is something people should look into. It is raised once: its id is a
// function of its kind and what it is about.
type Alarm struct {
	ID     string        `cbor:"1,keyasint"`
	Kind   AlarmKind     `cbor:"2,keyasint"`
	At     int64         `cbor:"3,keyasint"`           // when it was raised, Unix nanoseconds
	Over   int64         `cbor:"4,keyasint,omitempty"` // when its cause ended; 0: it stands, or has no end
	Event  string        `cbor:"5,keyasint,omitempty"`
	Device ticket.Source `cbor:"6,keyasint,omitempty"`
	Place  string        `cbor:"7,keyasint,omitempty"`
	Claim  string        `cbor:"8,keyasint,omitempty"`
	Ticket string        `cbor:"9,keyasint,omitempty"`
	Detail string        `cbor:"10,keyasint,omitempty"`
}

// AlarmReport is an alarm as the API shows it. Times are ticket.TimeFormat, Over
// is empty while the alarm stands.
type AlarmReport struct {
	ID     string    `json:"id"`
	Kind   AlarmKind `json:"kind"`
	Time   string    `json:"time"`
	Over   string    `json:"over"`
	Event  string    `json:"event"`
	Gate   string    `json:"gate"`
	Device string    `json:"device"`
	Claim  string    `json:"claim"`
	Ticket string    `json:"ticket"`
	Detail string    `json:"detail"`
}

// Report gives the alarm as the API shows it.
func (a Alarm) Report() AlarmReport {
	r := AlarmReport{
		ID: a.ID, Kind: a.Kind, Time: unix(a.At).Format(ticket.TimeFormat), Event: a.Event, Gate: a.Place,
		Device: string(a.Device), Claim: a.Claim, Ticket: a.Ticket, Detail: a.Detail,
	}
	if a.Over != 0 {
		r.Over = unix(a.Over).Format(ticket.TimeFormat)
	}
	return r
}

// Alarms lists alarms by time, after a cursor ("": from the start); next is the
// cursor to go on with.
func (l *Ledger) Alarms(ctx context.Context, after string, limit int) (out []AlarmReport, next string, err error) {
	out = []AlarmReport{}
	err = l.view(ctx, func(t *txn) error {
		rows, n, err := t.Alarms(after, limit)
		for _, r := range rows {
			out = append(out, r.Report())
		}
		next = n
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list alarms: %w", err)
	}
	return out, next, nil
}

// noEvent is the row of events that counts the alarms which belong to none; no
// event has such a name.
const noEvent = "*"

func alarmID(kind AlarmKind, about string) string {
	h := sha256.Sum256([]byte("alarm\x00" + string(kind) + "\x00" + about))
	return hex.EncodeToString(h[:8])
}

// alarm raises an alarm about something, once.
func (t *txn) alarm(a Alarm, about string) error {
	a.ID, a.At = alarmID(a.Kind, about), t.now.UnixNano()
	_, known, err := t.Alarm(a.ID)
	if err != nil || known {
		return err
	}
	if err := t.PutAlarm(a); err != nil {
		return fmt.Errorf("store alarm: %w", err)
	}
	if err := t.tell(AlarmRaised, a.Report()); err != nil {
		return err
	}
	ev, err := t.event(cmp.Or(a.Event, noEvent))
	if err != nil {
		return err
	}
	ev.row.Alarms++
	ev.dirty = true
	t.say(func() {
		t.l.log.Warn("alarm", "alarm", a.ID, "kind", a.Kind, "event", a.Event, "place", a.Place,
			"device", a.Device, "claim", a.Claim, "detail", a.Detail)
	})
	return nil
}

func claimAlarm(kind AlarmKind, c ticket.Claim, detail string) Alarm {
	return Alarm{
		Kind: kind, Event: c.Unit.Event, Device: c.ID.Gate, Place: c.Place,
		Claim: c.ID.String(), Ticket: c.Unit.Ticket.String(), Detail: detail,
	}
}

// unitAlarms raises what the claims of a unit give cause for.
func (t *txn) unitAlarms(u *unitState, v ticket.View) error {
	for _, r := range u.rows {
		if !entered(r.Claim) {
			continue
		}
		if v.Revoked {
			f, err := t.feedOf(ticket.RevokeSubject(u.id.Format, u.id.Ticket))
			if err != nil {
				return err
			}
			if after(r, f.At) {
				err = t.alarm(claimAlarm(AlarmRevoked, r.Claim, "revoked "+unix(f.At).Format(ticket.TimeFormat)), r.Claim.ID.String())
			}
			if err != nil {
				return err
			}
		}
		f, err := t.feedOf(ticket.DistrustSubject(r.Claim.ID.Gate))
		if err != nil {
			return err
		}
		if f != nil && f.Distrust != nil && after(r, f.Distrust.Since) {
			err = t.alarm(claimAlarm(AlarmDistrust, r.Claim, f.Distrust.Reason), r.Claim.ID.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// after reports whether a claim was made after a moment of the ledger's: by its
// own stamp where that is trusted, by its arrival here otherwise.
func after(r ClaimRow, moment int64) bool {
	if r.Claim.Claimed.Class == ticket.Trusted {
		return r.Claim.Claimed.Wall > moment
	}
	return r.Since > moment
}

func (t *txn) alarmForked(a arrival) error {
	return t.alarm(Alarm{Kind: AlarmForked, Device: a.stream.Source,
		Detail: fmt.Sprintf("position %d of run %s came with two contents", a.pos, a.stream.Run),
	}, fmt.Sprintf("%s/%s/%d", a.stream.Source, a.stream.Run, a.pos))
}

func (t *txn) alarmForkedClaim(c ticket.Claim) error {
	return t.alarm(claimAlarm(AlarmForked, c, fmt.Sprintf("revision %d came with two contents", c.Rev)),
		fmt.Sprintf("%s@%d", c.ID, c.Rev))
}

func (t *txn) alarmMismatch(id ticket.ClaimID, stands, came ticket.Unit) error {
	return t.alarm(Alarm{
		Kind: AlarmMismatch, Event: stands.Event, Device: id.Gate, Claim: id.String(), Ticket: stands.Ticket.String(),
		Detail: fmt.Sprintf("came with ticket %s of event %q", came.Ticket, came.Event),
	}, id.String()+"\x00"+string(came.Key()))
}

func (t *txn) alarmRestored(lost []ticket.StreamPos) error {
	for _, p := range lost {
		err := t.alarm(Alarm{Kind: AlarmRestored, Device: p.Source,
			Detail: fmt.Sprintf("run %s ends here at %d; gates have more of it", p.Run, p.Pos),
		}, string(p.Source)+"/"+p.Run.String())
		if err != nil {
			return err
		}
	}
	return nil
}

// applyEvent raises the alarm that a gate's event is worth.
func (t *txn) applyEvent(rec ticket.Record) error {
	if rec.Event.Type != ticket.EventSensor {
		return nil
	}
	return t.alarm(Alarm{Kind: AlarmSensor, Device: rec.Source, Place: rec.Event.Place, Detail: rec.Event.Detail},
		fmt.Sprintf("%s/%s/%d", rec.Source, rec.Run, rec.Pos))
}

// raiseOverdue raises an alarm for each claim that holds its unit beyond its
// lease. The claim goes on holding: only a record frees.
func (l *Ledger) raiseOverdue(ctx context.Context) error {
	const batch = 100
	for {
		var due []DueRow
		err := l.view(ctx, func(t *txn) (err error) {
			due, err = t.Due(t.now.UnixNano(), batch)
			return err
		})
		if err != nil || len(due) == 0 {
			return wrap("find overdue claims", err)
		}
		err = l.update(ctx, func(t *txn) error {
			for _, d := range due {
				if err := t.overdue(d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(due) < batch {
			return wrap("raise overdue claims", err)
		}
	}
}

func (t *txn) overdue(d DueRow) error {
	if err := t.DropDue(d.At, d.Claim); err != nil {
		return err
	}
	u, err := t.unit(d.Unit)
	if err != nil {
		return err
	}
	v, err := t.look(u)
	if err != nil {
		return err
	}
	k, ok := v.Find(d.Claim)
	if !ok || k.Claim.State != ticket.Pending || !k.Holds() {
		return nil
	}
	return t.alarm(claimAlarm(AlarmOverdue, k.Claim, "lease "+k.Claim.Lease.String()), d.Claim.String())
}

// endOverdue marks the alarm about a claim that was completed late.
func (t *txn) endOverdue(c ticket.Claim, due int64) error {
	if t.now.UnixNano() <= due {
		return nil
	}
	a, ok, err := t.Alarm(alarmID(AlarmOverdue, c.ID.String()))
	if err != nil || !ok || a.Over != 0 {
		return err
	}
	a.Over = t.now.UnixNano()
	if err := t.PutAlarm(a); err != nil {
		return err
	}
	return t.tell(AlarmOver, a.Report())
}

// askSkew compares the clock of a claim that was made just now with the ledger's.
func (t *txn) askSkew(c ticket.Claim) error {
	return t.skew(c.ID.Gate, c.ID.Run, c.Place, time.Duration(c.At-t.now.UnixNano()))
}

// skew raises an alarm where a device's clock is off, once per run.
func (t *txn) skew(d ticket.Source, run ticket.Run, place string, off time.Duration) error {
	if off.Abs() <= maxSkew {
		return nil
	}
	return t.alarm(Alarm{Kind: AlarmSkew, Device: d, Place: place,
		Detail: fmt.Sprintf("clock is %s off", off.Round(time.Second)),
	}, string(d)+"/"+run.String())
}

// wrap says what was being done when err came, nil where none did.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
