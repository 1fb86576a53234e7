package pgstore

import (
	"errors"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Subject is ledger.Tx.Subject.
func (t *tx) Subject(name string) (ledger.SubjectRow, bool, error) {
	if k, ok := t.remembered(name); ok {
		return k.row, k.found, nil
	}
	var b pgx.Batch
	var k kept
	t.look(&b, name, &k)
	err := t.Send(&b)
	return k.row, k.found, wrap("read subject", err)
}

// remembered gives what is known of a subject without asking.
func (t *tx) remembered(name string) (kept, bool) {
	if !t.begun || t.mode == alone {
		return kept{}, false
	}
	return t.known.get(t.version, name)
}

// ahead reads a subject together with what b reads, for whoever asks for it next.
func (t *tx) ahead(b *pgx.Batch, name string) {
	if _, ok := t.remembered(name); !ok && t.mode != alone {
		t.look(b, name, new(kept))
	}
}

func (t *tx) look(b *pgx.Batch, name string, k *kept) {
	b.Queue("select name, version, source, run, pos from subject where name = $1", name).QueryRow(func(r pgx.Row) error {
		var e subjectEntry
		err := r.Scan(e.into()...)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if *k = (kept{}); err == nil {
			*k = kept{e.row(), true}
		}
		if t.mode != alone {
			t.known.put(t.version, name, *k)
		}
		return nil
	})
}

// subjectEntry receives a subject.
type subjectEntry struct {
	name    string
	version num
	source  string
	run     run
	pos     num
}

func (e *subjectEntry) into() []any { return []any{&e.name, &e.version, &e.source, &e.run, &e.pos} }

func (e *subjectEntry) row() ledger.SubjectRow {
	return ledger.SubjectRow{Version: uint64(e.version), Source: ticket.Source(e.source), Run: ticket.Run(e.run), Pos: uint64(e.pos)}
}

// PutSubject is ledger.Tx.PutSubject.
func (t *tx) PutSubject(name string, r ledger.SubjectRow) error {
	return t.writeAlone(`insert into subject (name, version, source, run, pos) values ($1, $2, $3, $4, $5)
		on conflict (name) do update set version = $2, source = $3, run = $4, pos = $5`,
		name, num(r.Version), string(r.Source), r.Run.String(), num(r.Pos))
}

// Subjects is ledger.Tx.Subjects.
func (t *tx) Subjects(prefix string, fn func(string, ledger.SubjectRow) bool) error {
	err := pages(func(last *subjectEntry, limit int) ([]subjectEntry, error) {
		after := ""
		if last != nil {
			after = last.name
		}
		// chr(1114111) is the last character there is: an end for the index to stop at.
		return all(t, &pgx.Batch{}, func(r pgx.Row) (e subjectEntry, err error) {
			err = r.Scan(e.into()...)
			return e, err
		}, `select name, version, source, run, pos from subject
			where name >= $1 and name < $1 || chr(1114111) and starts_with(name, $1) and name > $2 order by name limit $3`,
			prefix, after, limit)
	}, func(e subjectEntry) bool { return fn(e.name, e.row()) })
	return wrap("list subjects", err)
}

// parts is over how many rows the counts of an event are spread.
const parts = 16

const eventSQL = `select e.id, e.forget, e.closed, e.pruned, e.swept,
		coalesce(sum(c.admitted), 0)::bigint, coalesce(sum(c.conflicts), 0)::bigint,
		coalesce(sum(c.alarms), 0)::bigint, coalesce(sum(c.late), 0)::bigint
	from event e left join event_count c on c.id = e.id `

func scanEvent(row pgx.Row) (e eventEntry, err error) {
	var admitted, conflicts, alarms, late int64
	err = row.Scan(&e.id, &e.row.Forget, &e.row.Closed, &e.row.Pruned, &e.row.Swept, &admitted, &conflicts, &alarms, &late)
	e.row.Admitted, e.row.Conflicts, e.row.Alarms, e.row.Late = uint64(admitted), uint64(conflicts), uint64(alarms), uint64(late)
	return e, err
}

type eventEntry struct {
	id  string
	row ledger.EventRow
}

// Event is ledger.Tx.Event.
func (t *tx) Event(id string) (ledger.EventRow, error) {
	if id == "" {
		return ledger.EventRow{}, nil
	}
	rows, err := all(t, &pgx.Batch{}, scanEvent, eventSQL+"where e.id = $1 group by e.id", id)
	if err != nil {
		return ledger.EventRow{}, wrap("read event", err)
	}
	row := ledger.EventRow{}
	if len(rows) > 0 {
		row = rows[0].row
	}
	t.events[id] = row
	return row, nil
}

// PutEvent is ledger.Tx.PutEvent. Counts are added to; flags change alone.
func (t *tx) PutEvent(id string, r ledger.EventRow) error {
	was, read := t.events[id]
	if !read {
		var err error
		if was, err = t.Event(id); err != nil {
			return err
		}
	}
	if was.Forget != r.Forget || was.Closed != r.Closed || was.Pruned != r.Pruned || was.Swept != r.Swept {
		err := t.writeAlone(`insert into event (id, forget, closed, pruned, swept) values ($1, $2, $3, $4, $5)
			on conflict (id) do update set forget = $2, closed = $3, pruned = $4, swept = $5`, id, r.Forget, r.Closed, r.Pruned, r.Swept)
		if err != nil {
			return err
		}
	} else if err := t.write("insert into event (id, forget, closed, pruned, swept) values ($1, 0, 0, false, false) on conflict do nothing", id); err != nil {
		return err
	}
	t.events[id] = r
	more := []any{id, rand.IntN(parts), int64(r.Admitted - was.Admitted), int64(r.Conflicts - was.Conflicts),
		int64(r.Alarms - was.Alarms), int64(r.Late - was.Late)}
	return t.write(`insert into event_count as c (id, part, admitted, conflicts, alarms, late) values ($1, $2, $3, $4, $5, $6)
		on conflict (id, part) do update set admitted = c.admitted + $3, conflicts = c.conflicts + $4,
			alarms = c.alarms + $5, late = c.late + $6`, more...)
}

// Events is ledger.Tx.Events.
func (t *tx) Events(fn func(string, ledger.EventRow) bool) error {
	rows, err := all(t, &pgx.Batch{}, scanEvent, eventSQL+"group by e.id order by e.id")
	if err != nil {
		return wrap("list events", err)
	}
	for _, e := range rows {
		if !fn(e.id, e.row) {
			break
		}
	}
	return nil
}
