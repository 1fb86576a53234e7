package pgseen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"admitone/internal/seen"
)

// Sender is a transaction as the table uses it: statements go in batches, each one
// way to the server and back, and their callbacks run within the call.
type Sender interface {
	// Send sends statements now, behind those put off, and runs their callbacks.
	Send(b *pgx.Batch) error

	// Later puts statements off until the next Send, or the commit.
	Later(b *pgx.Batch) error
}

// On gives the table within a transaction of pgx.
func On(ctx context.Context, tx pgx.Tx) seen.Tx { return Bind(direct{ctx, tx}) }

type direct struct {
	ctx context.Context
	tx  pgx.Tx
}

func (d direct) Send(b *pgx.Batch) error  { return d.tx.SendBatch(d.ctx, b).Close() }
func (d direct) Later(b *pgx.Batch) error { return d.Send(b) }

// Bind gives the table within the transaction of s, for one goroutine at a time.
func Bind(s Sender) seen.Tx { return &table{tx: s, mine: map[seen.Key]seen.Row{}} }

type table struct {
	tx Sender

	// mine are the rows that this transaction wrote: nobody else can change them
	// before it ends, so they need not be read again.
	mine map[seen.Key]seen.Row
}

// tries is how often a claim looks again after a row came and went between its two
// statements.
const tries = 10

var errRestless = errors.New("the row came and went at every look")

// Claim is seen.Tx.Claim.
func (t *table) Claim(p seen.Policy, r seen.Request) (seen.Answer, error) {
	if err := errors.Join(p.Check(r), checkKey(r.Key)); err != nil {
		return seen.Answer{}, err
	}
	if row, ok := t.mine[r.Key]; ok && !row.Due(r.At) {
		return p.Answer(row, r), nil
	}
	fresh := p.Row(r)
	for range tries {
		won, row, found, err := t.insert(fresh)
		if err != nil {
			return seen.Answer{}, fmt.Errorf("claim key: %w", err)
		}
		if found && row.Due(r.At) {
			if won, err = t.renew(fresh, r.At); err != nil {
				return seen.Answer{}, fmt.Errorf("claim key anew: %w", err)
			}
			found = false
		}
		switch {
		case won:
			t.mine[r.Key] = fresh
			return seen.Answer{Outcome: seen.Won, Row: fresh}, nil
		case found:
			return p.Answer(row, r), nil
		}
	}
	return seen.Answer{}, fmt.Errorf("claim key: %w", errRestless)
}

const insertSQL = `insert into seen (endpoint, scope, id, first_seen, until, place, holder, fingerprint)
	values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`

const selectSQL = "select " + columns + " from seen s where s.endpoint = $1 and s.scope = $2 and s.id = $3"

// key gives the arguments of a key, and more.
func key(k seen.Key, more ...any) []any {
	return append([]any{k.Endpoint, []byte(k.Scope), []byte(k.ID)}, more...)
}

// values are the arguments of a row that is in progress.
func values(row seen.Row) []any {
	return key(row.Key, nanos(row.FirstSeen), nanos(row.Until), []byte(row.Place), []byte(row.Holder), row.Fingerprint)
}

// insert inserts a row where its key is absent, and otherwise gives the one there.
func (t *table) insert(fresh seen.Row) (won bool, row seen.Row, found bool, err error) {
	var b pgx.Batch
	b.Queue(insertSQL, values(fresh)...).Exec(func(c pgconn.CommandTag) error {
		won = c.RowsAffected() == 1
		return nil
	})
	look(&b, fresh.Key, &row, &found)
	err = t.tx.Send(&b)
	return won, row, found && !won, err
}

func look(b *pgx.Batch, k seen.Key, row *seen.Row, found *bool) {
	b.Queue(selectSQL, key(k)...).QueryRow(func(r pgx.Row) error {
		row.Key = k
		err := scanRow(r, row)
		if errors.Is(err, pgx.ErrNoRows) {
			*row = seen.Row{}
			return nil
		}
		*found = err == nil
		return err
	})
}

const replaceSQL = `update seen s set first_seen = $4, until = $5, place = $6, holder = $7, fingerprint = $8, result = null, done = false
	where s.endpoint = $1 and s.scope = $2 and s.id = $3 and `

// renew puts a new intent in the place of a row whose time is over at now, if it
// still is.
func (t *table) renew(fresh seen.Row, now time.Time) (bool, error) {
	return t.change(replaceSQL+"s.until <= $9", append(values(fresh), nanos(now))...)
}

// change runs a statement that changes one row or none.
func (t *table) change(sql string, args ...any) (changed bool, err error) {
	var b pgx.Batch
	b.Queue(sql, args...).Exec(func(c pgconn.CommandTag) error {
		changed = c.RowsAffected() == 1
		return nil
	})
	err = t.tx.Send(&b)
	return changed, err
}

const finishSQL = `update seen s set result = $4, done = true
	where s.endpoint = $1 and s.scope = $2 and s.id = $3 and s.holder = $5`

// Finish is seen.Tx.Finish.
func (t *table) Finish(k seen.Key, holder string, result []byte) (bool, error) {
	args := key(k, result, []byte(holder))
	row, ok := t.mine[k]
	if !ok {
		done, err := t.change(finishSQL, args...)
		return done, wrap("finish row", err)
	}
	if row.Holder != holder {
		return false, nil
	}
	row.Done, row.Result = true, orNil(append([]byte(nil), result...))
	t.mine[k] = row
	var b pgx.Batch
	b.Queue(finishSQL, args...)
	return true, wrap("finish row", t.tx.Later(&b))
}

// Take is seen.Tx.Take.
func (t *table) Take(p seen.Policy, from string, r seen.Request) (bool, error) {
	if err := errors.Join(p.Check(r), checkKey(r.Key)); err != nil {
		return false, err
	}
	fresh := p.Row(r)
	took, err := t.change(replaceSQL+"s.holder = $9", append(values(fresh), []byte(from))...)
	if took {
		t.mine[r.Key] = fresh
	}
	return took, wrap("take row over", err)
}

// Drop is seen.Tx.Drop.
func (t *table) Drop(k seen.Key, holder string) (bool, error) {
	gone, err := t.change(`delete from seen s
		where s.endpoint = $1 and s.scope = $2 and s.id = $3 and s.holder = $4 and not s.done`, key(k, []byte(holder))...)
	if gone {
		delete(t.mine, k)
	}
	return gone, wrap("drop row", err)
}

// Get is seen.Tx.Get. A row whose Until has passed is there until it is pruned or
// claimed anew.
func (t *table) Get(k seen.Key) (row seen.Row, found bool, err error) {
	if row, ok := t.mine[k]; ok {
		return row, true, nil
	}
	var b pgx.Batch
	look(&b, k, &row, &found)
	err = t.tx.Send(&b)
	return row, found, wrap("read row", err)
}

// Prune is seen.Tx.Prune. Rows that somebody is just changing are left for the
// next time, so it waits for nobody and two of it do not meet.
func (t *table) Prune(endpoint string, now time.Time, limit int) (int, error) {
	return t.prune(`s.endpoint = $1 and s.until <= $2 order by s.until`, limit, endpoint, nanos(now))
}

// PruneScope is seen.Tx.PruneScope.
func (t *table) PruneScope(endpoint, scope string, limit int) (int, error) {
	return t.prune(`s.endpoint = $1 and s.scope = $2`, limit, endpoint, []byte(scope))
}

func (t *table) prune(where string, limit int, args ...any) (n int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	var b pgx.Batch
	b.Queue(`delete from seen where ctid = any(array(
		select s.ctid from seen s where `+where+` limit $3 for update skip locked))`, append(args, limit)...).
		Exec(func(c pgconn.CommandTag) error { n = int(c.RowsAffected()); return nil })
	err = t.tx.Send(&b)
	clear(t.mine)
	return n, wrap("forget rows", err)
}

// wrap says what was being done when err came, nil where none did.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
