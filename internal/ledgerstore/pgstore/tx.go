package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/ledger"
	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/seen/pgseen"
	"admitone/internal/ticket"
)

// mode is what a transaction may do.
type mode uint8

const (
	reading mode = iota + 1 // one state of the database, no write
	shared                  // beside others, kept apart by locks
	alone                   // nobody else
)

// Errors within transactions.
var (
	errAlone    = errors.New("this write needs the transaction to itself") // undone, to be run again alone
	errAgain    = errors.New("the connection was lost before the commit")  // undone, to be run again
	errReadOnly = errors.New("transaction is for reading")                 // returned by every write in a View
)

// tx is one transaction; it is ledger.Tx and office.Tx.
type tx struct {
	ctx  context.Context
	conn *pgxpool.Conn
	mode mode

	// careful has every insert decided by its constraint before it is counted on:
	// an earlier run failed.
	careful bool

	pending pgx.Batch // statements put off, BEGIN the first of them
	opening int       // how many of them begin the transaction
	begun   bool      // something was sent
	failed  error     // the first error of a statement; nothing is sent after it
	lonely  bool      // a write came that needs mode alone

	known   *cache
	version int64 // of the database's state, once begun

	held   map[int64]bool // locks
	tops   map[ticket.Stream]uint64
	events map[string]ledger.EventRow
	bumped bool // the state's version grows with the commit
	rows   seen.Tx
}

var (
	_ ledger.Tx     = (*tx)(nil)
	_ office.Tx     = (*tx)(nil)
	_ pgseen.Sender = (*tx)(nil)
)

// newTx gives a transaction that begins with its first statement.
func newTx(ctx context.Context, conn *pgxpool.Conn, known *cache, m mode) *tx {
	t := &tx{
		ctx: ctx, conn: conn, mode: m, known: known,
		held: map[int64]bool{}, tops: map[ticket.Stream]uint64{}, events: map[string]ledger.EventRow{},
	}
	t.rows = pgseen.Bind(t)
	switch m {
	case reading:
		t.pending.Queue("begin isolation level repeatable read read only")
	case shared:
		t.pending.Queue("begin isolation level read committed")
		t.pending.Queue("select pg_advisory_xact_lock_shared($1)", lockKey(lockFeeds))
	case alone:
		t.pending.Queue("begin isolation level read committed")
		t.pending.Queue("select pg_advisory_xact_lock($1)", lockKey(lockFeeds))
	}
	// A statement of its own, so that it looks after the lock is had.
	t.pending.Queue("select version from state").QueryRow(func(r pgx.Row) error { return r.Scan(&t.version) })
	t.opening = len(t.pending.QueuedQueries)
	return t
}

// Send is pgseen.Sender.Send.
func (t *tx) Send(b *pgx.Batch) error {
	if t.failed != nil {
		return t.failed
	}
	t.pending.QueuedQueries = append(t.pending.QueuedQueries, b.QueuedQueries...)
	all := t.pending
	t.pending, t.begun = pgx.Batch{}, true
	t.failed = t.conn.SendBatch(t.ctx, &all).Close()
	return t.failed
}

// Later is pgseen.Sender.Later.
func (t *tx) Later(b *pgx.Batch) error {
	if t.mode == reading {
		return errReadOnly
	}
	if t.failed != nil {
		return t.failed
	}
	t.pending.QueuedQueries = append(t.pending.QueuedQueries, b.QueuedQueries...)
	return nil
}

// write puts one statement off.
func (t *tx) write(sql string, args ...any) error {
	var b pgx.Batch
	b.Queue(sql, args...)
	return t.Later(&b)
}

// writeAlone puts one statement off, in a transaction that has nobody beside it.
func (t *tx) writeAlone(sql string, args ...any) error {
	switch t.mode {
	case reading:
		return errReadOnly
	case shared:
		t.lonely = true
		return errAlone
	}
	t.bumped = true
	return t.write(sql, args...)
}

// lock queues a lock in front of what is to be read under it, once.
func (t *tx) lock(b *pgx.Batch, key int64) {
	if t.mode != shared || t.held[key] {
		return
	}
	t.held[key] = true
	b.Queue("select pg_advisory_xact_lock($1)", key)
}

// one sends a query for at most one row, behind a lock where b has it, and reports
// whether there was one.
func (t *tx) one(b *pgx.Batch, sql string, args []any, into ...any) (found bool, err error) {
	b.Queue(sql, args...).QueryRow(func(r pgx.Row) error {
		err := r.Scan(into...)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	err = t.Send(b)
	return found, err
}

// all sends a query, behind a lock where b has it, and gives its rows.
func all[T any](t *tx, b *pgx.Batch, scan func(pgx.Row) (T, error), sql string, args ...any) (out []T, err error) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (T, error) { return scan(r) })
		return err
	})
	err = t.Send(b)
	return out, err
}

// page is how many rows a scan asks for at first, and later.
const (
	firstPage = 64
	nextPage  = 1024
)

// pages calls fn for rows that query gives in pages, until one is short or fn
// returns false. query is given the last row of the page before.
func pages[T any](query func(last *T, limit int) ([]T, error), fn func(T) bool) error {
	var last *T
	for limit := firstPage; ; limit = nextPage {
		rows, err := query(last, limit)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !fn(r) {
				return nil
			}
		}
		if len(rows) < limit {
			return nil
		}
		last = &rows[len(rows)-1]
	}
}

// Seen is ledger.Tx.Seen and office.Tx.Seen.
func (t *tx) Seen() seen.Tx { return t.rows }
