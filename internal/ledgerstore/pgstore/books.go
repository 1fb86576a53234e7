package pgstore

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"admitone/internal/office"
)

// Books gives the office's books in this store. Every transaction of the ledger on
// this store is an office.Tx, too, so that work on both is one transaction.
func (s *Store) Books() office.Books { return books{s} }

type books struct{ s *Store }

// View is office.Books.View.
func (b books) View(ctx context.Context, fn func(office.Tx) error) error {
	return b.s.view(ctx, func(t *tx) error { return fn(t) })
}

// Update is office.Books.Update.
func (b books) Update(ctx context.Context, fn func(office.Tx) error) error {
	return b.s.update(ctx, func(t *tx) error { return fn(t) })
}

// Limits of office.Row, in bytes.
const (
	maxTable = 32
	maxRowID = 512
)

func checkRow(t office.Table, id, list string) error {
	if t == "" || len(t) > maxTable || id == "" || len(id) > maxRowID || len(list) > maxRowID {
		return fmt.Errorf("row of table %q: id of %d and list of %d bytes, want 1 to %d and at most %d", t, len(id), len(list), maxRowID, maxRowID)
	}
	return nil
}

// lockRow has a row to this transaction until the commit, there or not.
func (t *tx) lockRow(b *pgx.Batch, table office.Table, id string) {
	t.lock(b, lockKey(lockRow, []byte(table), []byte(id)))
}

const insertRow = "insert into office (kind, id, list, at, body) values ($1, $2, $3, $4, $5) on conflict (kind, id) do "

func rowArgs(r office.Row) []any {
	return []any{string(r.Table), []byte(r.ID), []byte(r.List), r.At, notNil(r.Body)}
}

// Add is office.Tx.Add.
func (t *tx) Add(r office.Row) (added bool, err error) {
	if err := checkRow(r.Table, r.ID, r.List); err != nil {
		return false, err
	}
	if t.mode == reading {
		return false, errReadOnly
	}
	var b pgx.Batch
	t.lockRow(&b, r.Table, r.ID)
	b.Queue(insertRow+"nothing", rowArgs(r)...).Exec(func(c pgconn.CommandTag) error {
		added = c.RowsAffected() == 1
		return nil
	})
	err = t.Send(&b)
	return added, wrap("add row", err)
}

// Put is office.Tx.Put.
func (t *tx) Put(r office.Row) error {
	if err := checkRow(r.Table, r.ID, r.List); err != nil {
		return err
	}
	var b pgx.Batch
	t.lockRow(&b, r.Table, r.ID)
	b.Queue(insertRow+"update set list = $3, at = $4, body = $5", rowArgs(r)...)
	return t.Later(&b)
}

// Get is office.Tx.Get.
func (t *tx) Get(table office.Table, id string) (office.Row, bool, error) {
	if err := checkRow(table, id, ""); err != nil {
		return office.Row{}, false, err
	}
	var b pgx.Batch
	t.lockRow(&b, table, id)
	var list []byte
	r := office.Row{Table: table, ID: id}
	found, err := t.one(&b, "select list, at, body from office where kind = $1 and id = $2", []any{string(table), []byte(id)},
		&list, &r.At, &r.Body)
	if err != nil || !found {
		return office.Row{}, false, wrap("read row", err)
	}
	r.List = string(list)
	return r, true, nil
}

// Drop is office.Tx.Drop.
func (t *tx) Drop(table office.Table, id string) error {
	if err := checkRow(table, id, ""); err != nil {
		return err
	}
	var b pgx.Batch
	t.lockRow(&b, table, id)
	b.Queue("delete from office where kind = $1 and id = $2", string(table), []byte(id))
	return t.Later(&b)
}

// Page is office.Tx.Page. A cursor is the time and id of the last row given.
func (t *tx) Page(table office.Table, list, after string, limit int) (rows []office.Row, next string, err error) {
	if err := checkRow(table, "-", list); err != nil {
		return nil, "", err
	}
	from, id, err := parseCursor(after)
	if err != nil {
		return nil, "", fmt.Errorf("page of %s after %q: %w", table, after, office.ErrCursor)
	}
	rows, err = all(t, &pgx.Batch{}, func(row pgx.Row) (office.Row, error) {
		r := office.Row{Table: table, List: list}
		var id []byte
		err := row.Scan(&id, &r.At, &r.Body)
		r.ID = string(id)
		return r, err
	}, `select id, at, body from office where kind = $1 and list = $2 and list <> '' and ($3 or (at, id) > ($4, $5))
		order by at, id limit $6`, string(table), []byte(list), after == "", from, []byte(id), limit)
	if err != nil || len(rows) == 0 {
		return nil, after, wrap("page of rows", err)
	}
	last := rows[len(rows)-1]
	return rows, hex.EncodeToString(append(timeKey(last.At), last.ID...)), nil
}
