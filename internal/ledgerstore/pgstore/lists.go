package pgstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Conflict is ledger.Tx.Conflict.
func (t *tx) Conflict(id string) (row ledger.ConflictRow, found bool, err error) {
	found, err = t.body("conflict", lockConflict, id, &row)
	return row, found, err
}

// PutConflict is ledger.Tx.PutConflict.
func (t *tx) PutConflict(r ledger.ConflictRow) error {
	body, err := encMode.Marshal(r)
	if err != nil {
		return wrap("encode conflict", err)
	}
	return t.write(`insert into conflict (id, at, event, state, body) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set event = $3, state = $4, body = $5`, r.ID, r.Announced, r.Unit.Event, string(r.State), body)
}

// Conflicts is ledger.Tx.Conflicts.
func (t *tx) Conflicts(after string, limit int) ([]ledger.ConflictRow, string, error) {
	return listed[ledger.ConflictRow](t, "conflict", after, limit)
}

// Alarm is ledger.Tx.Alarm.
func (t *tx) Alarm(id string) (a ledger.Alarm, found bool, err error) {
	found, err = t.body("alarm", lockAlarm, id, &a)
	return a, found, err
}

// PutAlarm is ledger.Tx.PutAlarm.
func (t *tx) PutAlarm(a ledger.Alarm) error {
	body, err := encMode.Marshal(a)
	if err != nil {
		return wrap("encode alarm", err)
	}
	return t.write(`insert into alarm (id, at, event, kind, body) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set event = $3, kind = $4, body = $5`, a.ID, a.At, a.Event, string(a.Kind), body)
}

// Alarms is ledger.Tx.Alarms.
func (t *tx) Alarms(after string, limit int) ([]ledger.Alarm, string, error) {
	return listed[ledger.Alarm](t, "alarm", after, limit)
}

// body reads the row of an id, locked until the commit.
func (t *tx) body(table string, kind byte, id string, into any) (found bool, err error) {
	var b pgx.Batch
	t.lock(&b, lockKey(kind, []byte(id)))
	var body []byte
	found, err = t.one(&b, "select body from "+table+" where id = $1", []any{id}, &body)
	if err == nil && found {
		err = decMode.Unmarshal(body, into)
	}
	return found && err == nil, wrap("read "+table, err)
}

// listed reads a page of a list by time. A cursor is the time and id of the last
// row given, as package ledgerstore has it: one that a caller holds stays good when
// a ledger moves to PostgreSQL.
func listed[T any](t *tx, table, after string, limit int) (rows []T, next string, err error) {
	type entry struct {
		at  int64
		id  string
		row T
	}
	from, id, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	entries, err := all(t, &pgx.Batch{}, func(r pgx.Row) (e entry, err error) {
		var body []byte
		if err = r.Scan(&e.at, &e.id, &body); err == nil {
			err = decMode.Unmarshal(body, &e.row)
		}
		return e, err
	}, "select at, id, body from "+table+" where $1 or (at, id) > ($2, $3) order by at, id limit $4", after == "", from, id, limit)
	if err != nil || len(entries) == 0 {
		return nil, after, wrap("list "+table, err)
	}
	for _, e := range entries {
		rows = append(rows, e.row)
	}
	last := entries[len(entries)-1]
	return rows, hex.EncodeToString(append(timeKey(last.at), last.id...)), nil
}

// timeKey gives a time as 8 bytes that order as it does.
func timeKey(at int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63) }

func parseCursor(after string) (at int64, id string, err error) {
	b, err := hex.DecodeString(after)
	if err != nil || after != "" && len(b) <= 8 {
		return 0, "", fmt.Errorf("cursor %q: %w", after, ledger.ErrInvalid)
	}
	if after == "" {
		return 0, "", nil
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63), string(b[8:]), nil
}

// Gate is ledger.Tx.Gate.
func (t *tx) Gate(d ticket.Source) (r ledger.GateRow, err error) {
	var place []byte
	_, err = t.one(&pgx.Batch{}, "select place, hello from gate where device = $1", []any{string(d)}, &place, &r.Hello)
	r.Place = string(place)
	return r, wrap("read gate", err)
}

// PutGate is ledger.Tx.PutGate.
func (t *tx) PutGate(d ticket.Source, r ledger.GateRow) error {
	return t.write(`insert into gate (device, place, hello) values ($1, $2, $3)
		on conflict (device) do update set place = $2, hello = $3`, string(d), []byte(r.Place), r.Hello)
}

// PutLate is ledger.Tx.PutLate.
func (t *tx) PutLate(event string, s ticket.Stream, pos uint64, raw []byte) error {
	return t.write(`insert into late (source, run, pos, event, raw) values ($1, $2, $3, $4, $5)
		on conflict (event, source, run, pos) do update set raw = $5`, streamArgs(s, num(pos), event, notNil(raw))...)
}

// Late is ledger.Tx.Late. A cursor is the event, source, run and position of the
// last row given.
func (t *tx) Late(after string, limit int) (rows []ledger.LateRow, next string, err error) {
	type entry struct {
		ledger.LateRow
		source string
		run    run
		pos    num
	}
	from, err := parseLateCursor(after)
	if err != nil {
		return nil, "", err
	}
	entries, err := all(t, &pgx.Batch{}, func(r pgx.Row) (e entry, err error) {
		err = r.Scan(&e.Event, &e.source, &e.run, &e.pos, &e.Raw)
		return e, err
	}, `select event, source, run, pos, raw from late
		where (event, source, run, pos) > ($1, $2, $3, $4) order by event, source, run, pos limit $5`, append(from, limit)...)
	if err != nil || len(entries) == 0 {
		return nil, after, wrap("list late records", err)
	}
	for _, e := range entries {
		rows = append(rows, e.LateRow)
	}
	last := entries[len(entries)-1]
	key := append(append([]byte(last.Event), 0), append([]byte(last.source), 0)...)
	key = binary.BigEndian.AppendUint64(key, uint64(last.run))
	return rows, hex.EncodeToString(binary.BigEndian.AppendUint64(key, uint64(last.pos))), nil
}

func parseLateCursor(after string) ([]any, error) {
	if after == "" {
		return []any{"", "", "", num(0)}, nil
	}
	b, err := hex.DecodeString(after)
	event, rest, ok1 := bytes.Cut(b, []byte{0})
	source, rest, ok2 := bytes.Cut(rest, []byte{0})
	if err != nil || !ok1 || !ok2 || len(rest) != 16 {
		return nil, fmt.Errorf("cursor %q: %w", after, ledger.ErrInvalid)
	}
	of := ticket.Run(binary.BigEndian.Uint64(rest))
	return []any{string(event), string(source), of.String(), num(binary.BigEndian.Uint64(rest[8:]))}, nil
}
