package boltfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

// batch is what the functions on one bbolt transaction have read and written. The
// transaction itself is written to at the end, by apply: so a row that several
// functions read is looked for once, one that they write is written once, and an
// undo is to forget.
type batch struct {
	tx     *bbolt.Tx
	keep   bool // rows that were read, too: in write transactions, whose functions share them
	tables map[string]*table
	broken error // bbolt met a damaged page: this transaction must not be committed
}

func newBatch(tx *bbolt.Tx, keep bool) *batch {
	return &batch{tx: tx, keep: keep, tables: make(map[string]*table)}
}

// table is the part of a batch that is in one bucket.
type table struct {
	name   string
	bucket *bbolt.Bucket // nil: there is none
	cursor *bbolt.Cursor // for looking up single keys
	rows   []*row        // by key
}

// maxKept bounds the rows of a table that are kept for having been read: each one
// kept moves those behind it.
const maxKept = 1024

// row is one key of a table, as it is stored and as the functions left it.
type row struct {
	key     []byte
	was     []byte // as stored in the file, in its memory; nil: absent
	sound   bool   // was has been checked
	is      []byte // with room for the header, which apply fills in; nil: absent
	written bool   // is counts, not was
}

// table gives the part of a bucket.
func (b *batch) table(bucket string) *table {
	t := b.tables[bucket]
	if t == nil {
		t = &table{name: bucket, bucket: b.tx.Bucket([]byte(bucket))}
		if t.bucket != nil {
			t.cursor = t.bucket.Cursor()
		}
		b.tables[bucket] = t
	}
	return t
}

// find gives the place of the first row that is not below key, and whether it is
// the key's.
func (t *table) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(t.rows, key, func(r *row, key []byte) int { return bytes.Compare(r.key, key) })
}

// row gives the row of a key, which is looked up in the file once where it is
// kept. The key is the caller's unless it is kept.
func (t *table) row(key []byte, keep bool) *row {
	i, ok := t.find(key)
	if ok {
		return t.rows[i]
	}
	r := &row{key: key, was: t.stored(key)}
	if keep {
		r.key = bytes.Clone(key)
		t.rows = slices.Insert(t.rows, i, r)
	}
	return r
}

func (t *table) stored(key []byte) []byte {
	if t.bucket == nil {
		return nil
	}
	if k, v := t.cursor.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

// stored gives what the row holds now, with its header; nil: nothing.
func (r *row) stored() []byte {
	if r.written {
		return r.is
	}
	return r.was
}

// value gives a copy of the row's value, nil where it is absent.
func (r *row) value(bucket string) ([]byte, error) {
	switch {
	case r.stored() == nil:
		return nil, nil
	case r.written || r.sound:
		return append([]byte{}, r.stored()[header:]...), nil
	}
	v, err := unseal(bucket, r.key, r.was)
	r.sound = err == nil
	return v, err
}

// changed reports whether the file has to change.
func (r *row) changed() bool {
	if !r.written || r.is == nil && r.was == nil {
		return false
	}
	return r.is == nil || len(r.was) != len(r.is) || !bytes.Equal(r.was[header:], r.is[header:])
}

// apply writes all that the functions changed to the transaction, in the order of
// the keys. It reports whether that was anything.
func (b *batch) apply() (dirty bool, err error) {
	defer b.catch(&err)
	for _, name := range slices.Sorted(maps.Keys(b.tables)) {
		t := b.tables[name]
		for _, r := range t.rows {
			if !r.changed() {
				continue
			}
			dirty = true
			if err := t.put(b.tx, r); err != nil {
				return dirty, err
			}
		}
	}
	return dirty, nil
}

func (t *table) put(tx *bbolt.Tx, r *row) (err error) {
	if t.bucket == nil {
		if t.bucket, err = tx.CreateBucket([]byte(t.name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", t.name, err)
		}
	}
	if r.is == nil {
		err = t.bucket.Delete(r.key)
	} else {
		sealIn(t.name, r.key, r.is)
		err = t.bucket.Put(r.key, r.is)
	}
	if err != nil {
		return fmt.Errorf("write %s/%x: %w", t.name, r.key, err)
	}
	return nil
}

// catch turns a panic of bbolt into damage. bbolt panics, or faults where the
// caller has set debug.SetPanicOnFault, on pages that make no sense, and on a
// mapped page that the disk cannot give.
func (b *batch) catch(err *error) {
	if r := recover(); r != nil {
		b.broken = fmt.Errorf("read page: %v: %w", r, kv.ErrCorrupt)
		*err = b.broken
	}
}
