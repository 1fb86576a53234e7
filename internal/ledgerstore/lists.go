package ledgerstore

import (
	"encoding/hex"
	"fmt"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

type subjectRow struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Source  ticket.Source
	Run     ticket.Run
	Pos     uint64
}

func (r subjectRow) row() ledger.SubjectRow {
	return ledger.SubjectRow{Version: r.Version, Source: r.Source, Run: r.Run, Pos: r.Pos}
}

// Subject is ledger.Tx.Subject.
func (t tx) Subject(name string) (ledger.SubjectRow, bool, error) {
	var r subjectRow
	found, err := t.get("subject", []byte(name), &r)
	return r.row(), found, err
}

// PutSubject is ledger.Tx.PutSubject.
func (t tx) PutSubject(name string, r ledger.SubjectRow) error {
	return t.put("subject", []byte(name), subjectRow{Version: r.Version, Source: r.Source, Run: r.Run, Pos: r.Pos})
}

// Subjects is ledger.Tx.Subjects.
func (t tx) Subjects(prefix string, fn func(string, ledger.SubjectRow) bool) error {
	return t.kv.Scan("subject", []byte(prefix), nil, func(k, v []byte) (bool, error) {
		var r subjectRow
		if err := parse("subject", v, &r); err != nil {
			return false, err
		}
		return fn(string(k), r.row()), nil
	})
}

// Conflict is ledger.Tx.Conflict.
func (t tx) Conflict(id string) (row ledger.ConflictRow, found bool, err error) {
	if id == "" {
		return row, false, nil
	}
	found, err = t.get("conflict", []byte(id), &row)
	return row, found, err
}

// PutConflict is ledger.Tx.PutConflict.
func (t tx) PutConflict(r ledger.ConflictRow) error {
	return t.putListed("conflict", r.ID, r.Announced, r)
}

// Conflicts is ledger.Tx.Conflicts.
func (t tx) Conflicts(after string, limit int) ([]ledger.ConflictRow, string, error) {
	return listed[ledger.ConflictRow](t, "conflict", after, limit)
}

// Alarm is ledger.Tx.Alarm.
func (t tx) Alarm(id string) (a ledger.Alarm, found bool, err error) {
	found, err = t.get("alarm", []byte(id), &a)
	return a, found, err
}

// PutAlarm is ledger.Tx.PutAlarm.
func (t tx) PutAlarm(a ledger.Alarm) error { return t.putListed("alarm", a.ID, a.At, a) }

// Alarms is ledger.Tx.Alarms.
func (t tx) Alarms(after string, limit int) ([]ledger.Alarm, string, error) {
	return listed[ledger.Alarm](t, "alarm", after, limit)
}

// putListed stores a row and its entry in the list by time, which never moves.
func (t tx) putListed(bucket, id string, at int64, row any) error {
	key := append(timeKey(at), id...)
	was, err := t.kv.Get(bucket+".at", key)
	if err != nil {
		return err
	}
	if was == nil {
		if err := t.kv.Put(bucket+".at", key, nil); err != nil {
			return err
		}
	}
	return t.put(bucket, []byte(id), row)
}

// listed reads a page of a list by time. A cursor is the key of the last row given.
func listed[T any](t tx, bucket, after string, limit int) (rows []T, next string, err error) {
	keys, next, err := t.page(bucket+".at", after, limit)
	if err != nil {
		return nil, "", err
	}
	for _, k := range keys {
		_, id, err := splitTime(k)
		if err != nil {
			return nil, "", err
		}
		var row T
		if _, err := t.get(bucket, id, &row); err != nil {
			return nil, "", err
		}
		rows = append(rows, row)
	}
	return rows, next, nil
}

// page gives up to limit keys of a bucket after a cursor, and the cursor of the
// last one (of none: the same again).
func (t tx) page(bucket, after string, limit int) (keys [][]byte, next string, err error) {
	from, err := hex.DecodeString(after)
	if err != nil {
		return nil, "", fmt.Errorf("cursor %q: %w", after, ledger.ErrInvalid)
	}
	if len(from) > 0 {
		from = append(from, 0) // the first key after the last one given
	}
	err = t.kv.Scan(bucket, nil, from, func(k, _ []byte) (bool, error) {
		if len(keys) >= limit {
			return false, nil
		}
		keys = append(keys, k)
		return true, nil
	})
	if err != nil || len(keys) == 0 {
		return nil, after, err
	}
	return keys, hex.EncodeToString(keys[len(keys)-1]), nil
}

// Late is ledger.Tx.Late.
func (t tx) Late(after string, limit int) (rows []ledger.LateRow, next string, err error) {
	keys, next, err := t.page("late", after, limit)
	for _, k := range keys {
		raw, err := t.kv.Get("late", k)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, ledger.LateRow{Event: eventOf(k), Raw: raw})
	}
	return rows, next, err
}

type eventRow struct {
	_                                 struct{} `cbor:",toarray"`
	Admitted, Conflicts, Alarms, Late uint64
	Forget, Closed                    int64
	Pruned, Swept                     bool
}

func (r eventRow) row() ledger.EventRow {
	return ledger.EventRow{
		Admitted: r.Admitted, Conflicts: r.Conflicts, Alarms: r.Alarms, Late: r.Late,
		Forget: r.Forget, Closed: r.Closed, Pruned: r.Pruned, Swept: r.Swept,
	}
}

// Event is ledger.Tx.Event.
func (t tx) Event(id string) (ledger.EventRow, error) {
	if id == "" {
		return ledger.EventRow{}, nil
	}
	var r eventRow
	_, err := t.get("event", []byte(id), &r)
	return r.row(), err
}

// PutEvent is ledger.Tx.PutEvent.
func (t tx) PutEvent(id string, r ledger.EventRow) error {
	return t.put("event", []byte(id), eventRow{
		Admitted: r.Admitted, Conflicts: r.Conflicts, Alarms: r.Alarms, Late: r.Late,
		Forget: r.Forget, Closed: r.Closed, Pruned: r.Pruned, Swept: r.Swept,
	})
}

// Events is ledger.Tx.Events.
func (t tx) Events(fn func(string, ledger.EventRow) bool) error {
	return t.kv.Scan("event", nil, nil, func(k, v []byte) (bool, error) {
		var r eventRow
		if err := parse("event", v, &r); err != nil {
			return false, err
		}
		return fn(string(k), r.row()), nil
	})
}

type gateRow struct {
	_     struct{} `cbor:",toarray"`
	Place string
	Hello int64
}

// Gate is ledger.Tx.Gate.
func (t tx) Gate(d ticket.Source) (ledger.GateRow, error) {
	var r gateRow
	_, err := t.get("gate", []byte(d), &r)
	return ledger.GateRow{Place: r.Place, Hello: r.Hello}, err
}

// PutGate is ledger.Tx.PutGate.
func (t tx) PutGate(d ticket.Source, r ledger.GateRow) error {
	return t.put("gate", []byte(d), gateRow{Place: r.Place, Hello: r.Hello})
}
