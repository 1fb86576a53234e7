package boltfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

// batch is what the functions of one commit have read and written. The file is
// written to when all of them have run: so a row that several functions read is
// looked for once, one that they write is written once, an undo is to forget, and
// the functions of the next commit need not wait for the disk.
type batch struct {
	file   *File
	tx     *bbolt.Tx // for reading
	keep   bool      // rows that were read, too: not in a View, which may read any number
	tables map[string]*table
	broken error // bbolt met a damaged page: nothing of this may be committed
	full   bool  // functions may not grow the store
	fns    int   // functions that ran

	// changes are what the file has to take. They are listed when all functions
	// have run, by the flush or by the batch that inherits them, whichever is first.
	changes func() []change

	before *batch      // what this one has inherited from; nil: from none
	failed error       // of the flush, once it has ended
	ended  atomic.Bool // the flush has, and is in the file or has failed
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
	is      []byte // with room for the header, which only apply fills in; nil: absent
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

// change is a row that the file has to take.
type change struct {
	bucket string
	row    *row
}

// list gives the changes in the order of buckets and keys.
func (b *batch) list() []change {
	var out []change
	for _, name := range slices.Sorted(maps.Keys(b.tables)) {
		for _, r := range b.tables[name].rows {
			if r.changed() {
				out = append(out, change{name, r})
			}
		}
	}
	return out
}

// inherit takes the changes of a batch whose functions have all run as what the
// file holds.
func (b *batch) inherit(from *batch) (err error) {
	defer b.catch(&err)
	b.before = from
	for _, c := range from.changes() {
		t := b.table(c.bucket)
		t.rows = append(t.rows, &row{key: c.row.key, was: c.row.is, sound: true})
	}
	return nil
}

// apply writes changes to a transaction.
func apply(tx *bbolt.Tx, changes []change) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damage(r)
		}
	}()
	for _, c := range changes {
		b := tx.Bucket([]byte(c.bucket))
		if b == nil {
			if b, err = tx.CreateBucket([]byte(c.bucket)); err != nil {
				return fmt.Errorf("make bucket %s: %w", c.bucket, err)
			}
		}
		if c.row.is == nil {
			err = b.Delete(c.row.key)
		} else {
			sealIn(c.bucket, c.row.key, c.row.is)
			err = b.Put(c.row.key, c.row.is)
		}
		if err != nil {
			return fmt.Errorf("write %s/%x: %w", c.bucket, c.row.key, err)
		}
	}
	return nil
}

// catch turns a panic of bbolt into damage, and breaks the batch.
func (b *batch) catch(err *error) {
	if r := recover(); r != nil {
		b.broken = damage(r)
		*err = b.broken
	}
}

// damage is what a panic of bbolt means. It panics, or faults where the caller has
// set debug.SetPanicOnFault, on pages that make no sense, and on a mapped page that
// the disk cannot give.
func damage(r any) error { return fmt.Errorf("read page: %v: %w", r, kv.ErrCorrupt) }
