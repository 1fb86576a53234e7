package ledgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/office"
)

// Books gives the office's books in this store. Every transaction of the ledger on
// this store is an office.Tx, too, so that work on both is one transaction.
func (s *Store) Books() office.Books { return books{s} }

var _ office.Tx = tx{}

type books struct{ s *Store }

// View is office.Books.View.
func (b books) View(ctx context.Context, fn func(office.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return known(b.s.kv.View(func(t kv.Tx) error { return fn(tx{t}) }))
}

// Update is office.Books.Update.
func (b books) Update(ctx context.Context, fn func(office.Tx) error) error {
	return known(b.s.kv.Update(ctx, func(t kv.Tx) error { return fn(tx{t}) }))
}

// The two buckets of the office's rows. Lengths are one and two bytes, big-endian,
// and the id runs to the end, so that no two rows have one key and the rows of a
// list lie together.
const (
	rowBucket  = "row"
	listBucket = "row.list"
)

func tableKey(t office.Table) ([]byte, error) {
	if t == "" || len(t) > 32 {
		return nil, fmt.Errorf("row of table %q: a name has 1 to 32 bytes: %w", t, kv.ErrKey)
	}
	return append([]byte{byte(len(t))}, t...), nil
}

func rowKey(t office.Table, id string) ([]byte, error) {
	b, err := tableKey(t)
	if err == nil && (id == "" || len(id) > maxRowID) {
		err = fmt.Errorf("row of %s: id of %d bytes, want 1 to %d: %w", t, len(id), maxRowID, kv.ErrKey)
	}
	return append(b, id...), err
}

// maxRowID bounds ids and names of lists (office.Row).
const maxRowID = 512

func listKey(t office.Table, list string) ([]byte, error) {
	b, err := tableKey(t)
	if err == nil && len(list) > maxRowID {
		err = fmt.Errorf("list of %s: name of %d bytes, want at most %d: %w", t, len(list), maxRowID, kv.ErrKey)
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(list))), list...), err
}

// entryKey is the row's key in the index of lists.
func entryKey(r office.Row) ([]byte, error) {
	b, err := listKey(r.Table, r.List)
	return append(append(b, timeKey(r.At)...), r.ID...), err
}

// rowForm is the first byte of a stored row, for a later form to differ in. Behind
// it: At as a key of times, u16 length and name of the list, and the body.
const rowForm = 1

func rowValue(r office.Row) []byte {
	b := append([]byte{rowForm}, timeKey(r.At)...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.List)))
	return append(append(b, r.List...), r.Body...)
}

func parseRow(t office.Table, id string, v []byte) (office.Row, error) {
	const head = 1 + 8 + 2
	if len(v) < head || v[0] != rowForm || len(v) < head+int(binary.BigEndian.Uint16(v[9:])) {
		return office.Row{}, damaged(rowBucket, fmt.Errorf("%d bytes of no known form", len(v)))
	}
	at, rest, err := splitTime(v[1:])
	n := int(binary.BigEndian.Uint16(rest))
	return office.Row{Table: t, ID: id, List: string(rest[2 : 2+n]), At: at, Body: rest[2+n:]}, err
}

// Add is office.Tx.Add.
func (t tx) Add(r office.Row) (bool, error) {
	if _, found, err := t.Get(r.Table, r.ID); found || err != nil {
		return false, err
	}
	return true, t.putRow(r)
}

// Put is office.Tx.Put.
func (t tx) Put(r office.Row) error {
	was, found, err := t.Get(r.Table, r.ID)
	if err != nil {
		return err
	}
	if found && (was.List != r.List || was.At != r.At) {
		if err := t.unlist(was); err != nil {
			return err
		}
	}
	return t.putRow(r)
}

func (t tx) putRow(r office.Row) error {
	key, err := rowKey(r.Table, r.ID)
	if err != nil {
		return err
	}
	if err := t.kv.Put(rowBucket, key, rowValue(r)); err != nil || r.List == "" {
		return err
	}
	entry, err := entryKey(r)
	if err != nil {
		return err
	}
	return t.kv.Put(listBucket, entry, nil)
}

func (t tx) unlist(r office.Row) error {
	if r.List == "" {
		return nil
	}
	entry, err := entryKey(r)
	if err != nil {
		return err
	}
	return t.kv.Delete(listBucket, entry)
}

// Get is office.Tx.Get.
func (t tx) Get(table office.Table, id string) (office.Row, bool, error) {
	key, err := rowKey(table, id)
	if err != nil {
		return office.Row{}, false, err
	}
	v, err := t.kv.Get(rowBucket, key)
	if err != nil || v == nil {
		return office.Row{}, false, err
	}
	r, err := parseRow(table, id, v)
	return r, err == nil, err
}

// Drop is office.Tx.Drop.
func (t tx) Drop(table office.Table, id string) error {
	r, found, err := t.Get(table, id)
	if err != nil || !found {
		return err
	}
	if err := t.unlist(r); err != nil {
		return err
	}
	key, err := rowKey(table, id)
	if err != nil {
		return err
	}
	return t.kv.Delete(rowBucket, key)
}

// Page is office.Tx.Page. A cursor is the part of the last row's key behind the
// list's, in hex.
func (t tx) Page(table office.Table, list, after string, limit int) ([]office.Row, string, error) {
	prefix, err := listKey(table, list)
	if err != nil {
		return nil, "", err
	}
	var from []byte
	if after != "" {
		last, err := hex.DecodeString(after)
		if err != nil || len(last) <= 8 {
			return nil, "", fmt.Errorf("page of %s after %q: %w", table, after, office.ErrCursor)
		}
		from = append(append(bytes.Clone(prefix), last...), 0) // the first key after it
	}
	var keys [][]byte
	if err := t.kv.Scan(listBucket, prefix, from, func(k, _ []byte) (bool, error) {
		if len(keys) < limit {
			keys = append(keys, k[len(prefix):])
		}
		return len(keys) < limit, nil
	}); err != nil || len(keys) == 0 {
		return nil, after, err
	}
	rows := make([]office.Row, len(keys))
	for i, k := range keys {
		r, found, err := t.Get(table, string(k[8:]))
		if err != nil {
			return nil, "", err
		}
		if !found {
			return nil, "", damaged(listBucket, fmt.Errorf("a list of %s names %q, which is no row", table, k[8:]))
		}
		rows[i] = r
	}
	return rows, hex.EncodeToString(keys[len(keys)-1]), nil
}
