package pgstore

import (
	"bytes"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// feeds begins the sources of the ledgers' own feeds, which only a transaction that
// runs alone writes: every other may read them without a lock.
const feeds = "ledger/"

func isFeed(s ticket.Stream) bool { return strings.HasPrefix(string(s.Source), feeds) }

// writeRun puts a statement off that changes a run.
func (t *tx) writeRun(s ticket.Stream, sql string, args ...any) error {
	if isFeed(s) {
		return t.writeAlone(sql, args...)
	}
	return t.write(sql, args...)
}

func streamArgs(s ticket.Stream, more ...any) []any {
	return append([]any{string(s.Source), s.Run.String()}, more...)
}

// Stream is ledger.Tx.Stream.
func (t *tx) Stream(s ticket.Stream) (ledger.StreamRow, error) {
	var b pgx.Batch
	if !isFeed(s) {
		t.lock(&b, runLock(s))
	}
	var high, top, head, base, lost, aside num
	_, err := t.one(&b, "select high, top, head, base, lost, aside from stream where source = $1 and run = $2", streamArgs(s),
		&high, &top, &head, &base, &lost, &aside)
	if err != nil {
		return ledger.StreamRow{}, wrap("read run", err)
	}
	t.tops[s] = uint64(top)
	return streamRow(high, top, head, base, lost, aside), nil
}

func streamRow(high, top, head, base, lost, aside num) ledger.StreamRow {
	return ledger.StreamRow{
		High: uint64(high), Top: uint64(top), Head: uint64(head), Base: uint64(base), Lost: uint64(lost), Aside: uint64(aside),
	}
}

// PutStream is ledger.Tx.PutStream.
func (t *tx) PutStream(s ticket.Stream, r ledger.StreamRow) error {
	return t.writeRun(s, `insert into stream (source, run, high, top, head, base, lost, aside) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (source, run) do update set high = $3, top = $4, head = $5, base = $6, lost = $7, aside = $8`,
		streamArgs(s, num(r.High), num(r.Top), num(r.Head), num(r.Base), num(r.Lost), num(r.Aside))...)
}

type streamEntry struct {
	s ticket.Stream
	r ledger.StreamRow
}

// Streams is ledger.Tx.Streams.
func (t *tx) Streams(source ticket.Source, fn func(ticket.Stream, ledger.StreamRow) bool) error {
	rows, err := all(t, &pgx.Batch{}, func(r pgx.Row) (e streamEntry, err error) {
		var source string
		var of run
		var high, top, head, base, lost, aside num
		err = r.Scan(&source, &of, &high, &top, &head, &base, &lost, &aside)
		e.s = ticket.Stream{Source: ticket.Source(source), Run: ticket.Run(of)}
		e.r = streamRow(high, top, head, base, lost, aside)
		return e, err
	}, `select source, run, high, top, head, base, lost, aside from stream
		where $1 = '' or source = $1 order by source, run`, string(source))
	if err != nil {
		return wrap("list runs", err)
	}
	for _, e := range rows {
		if !fn(e.s, e.r) {
			break
		}
	}
	return nil
}

// PutRecord is ledger.Tx.PutRecord. Above all that is stored of a run that this
// transaction has locked, a position is empty for certain, and the insert can wait;
// its constraint still holds, and has the transaction run again where it fails.
func (t *tx) PutRecord(s ticket.Stream, pos uint64, k ledger.Kept) (ledger.Put, error) {
	const insert = "insert into record (source, run, pos, aside, raw) values ($1, $2, $3, $4, $5)"
	args := streamArgs(s, num(pos), k.Aside, notNil(k.Raw))
	if t.mode == reading || isFeed(s) && t.mode != alone {
		return 0, t.writeRun(s, insert, args...)
	}
	if top, read := t.tops[s]; read && pos > top && !t.careful {
		t.tops[s] = pos
		return ledger.PutNew, t.write(insert, args...)
	}
	var b pgx.Batch
	inserted := false
	b.Queue(insert+" on conflict do nothing", args...).Exec(func(c pgconn.CommandTag) error {
		inserted = c.RowsAffected() == 1
		return nil
	})
	was, _, err := t.record(&b, s, pos)
	switch {
	case err != nil:
		return 0, wrap("store record", err)
	case inserted:
		return ledger.PutNew, nil
	case was.Aside == k.Aside && bytes.Equal(was.Raw, k.Raw):
		return ledger.PutDuplicate, nil
	}
	return ledger.PutForked, nil
}

// notNil keeps an empty value apart from none.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// SetRecord is ledger.Tx.SetRecord.
func (t *tx) SetRecord(s ticket.Stream, pos uint64, k ledger.Kept) error {
	return t.writeRun(s, `insert into record (source, run, pos, aside, raw) values ($1, $2, $3, $4, $5)
		on conflict (source, run, pos) do update set aside = $4, raw = $5`, streamArgs(s, num(pos), k.Aside, notNil(k.Raw))...)
}

// Record is ledger.Tx.Record.
func (t *tx) Record(s ticket.Stream, pos uint64) (ledger.Kept, bool, error) {
	k, found, err := t.record(&pgx.Batch{}, s, pos)
	return k, found, wrap("read record", err)
}

func (t *tx) record(b *pgx.Batch, s ticket.Stream, pos uint64) (k ledger.Kept, found bool, err error) {
	found, err = t.one(b, "select aside, raw from record where source = $1 and run = $2 and pos = $3", streamArgs(s, num(pos)),
		&k.Aside, &k.Raw)
	return k, found, err
}

type keptAt struct {
	pos num
	k   ledger.Kept
}

// Records is ledger.Tx.Records.
func (t *tx) Records(s ticket.Stream, after uint64, fn func(uint64, ledger.Kept) bool) error {
	err := pages(func(last *keptAt, limit int) ([]keptAt, error) {
		from := num(after)
		if last != nil {
			from = last.pos
		}
		return all(t, &pgx.Batch{}, func(r pgx.Row) (e keptAt, err error) {
			err = r.Scan(&e.pos, &e.k.Aside, &e.k.Raw)
			return e, err
		}, `select pos, aside, raw from record where source = $1 and run = $2 and pos > $3 order by pos limit $4`,
			streamArgs(s, from, limit)...)
	}, func(e keptAt) bool { return fn(uint64(e.pos), e.k) })
	return wrap("read records", err)
}

// DropRecord is ledger.Tx.DropRecord.
func (t *tx) DropRecord(s ticket.Stream, pos uint64) error {
	return t.writeRun(s, "delete from record where source = $1 and run = $2 and pos = $3", streamArgs(s, num(pos))...)
}
