package boltfile

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

// txn is the kv.Tx of one function on a batch, which it shares with the other
// functions of the commit. It writes down what it overwrites there, so that its
// writes alone can be undone.
type txn struct {
	*batch
	writable bool
	done     bool
	scans    int   // running; no write meanwhile
	undo     []was // oldest first
	grown    int   // bytes of keys and values put, less those removed
}

// was is a row of the batch as it was before a write.
type was struct {
	row     *row
	is      []byte
	written bool
}

// Get is kv.Tx.Get.
func (t *txn) Get(bucket string, key []byte) (value []byte, err error) {
	if err := t.mayRead(bucket); err != nil {
		return nil, err
	}
	if err := kv.CheckKey(bucket, key); err != nil {
		return nil, err
	}
	defer t.catch(&err)
	tb := t.table(bucket)
	return tb.row(key, t.keep && len(tb.rows) < maxKept && t.scans == 0).value(bucket)
}

// Put is kv.Tx.Put.
func (t *txn) Put(bucket string, key, value []byte) (err error) {
	if len(value) > bbolt.MaxValueSize-header {
		return fmt.Errorf("put %s/%x: value of %d bytes", bucket, key, len(value))
	}
	return t.write(bucket, key, append(make([]byte, header, header+len(value)), value...))
}

// Delete is kv.Tx.Delete.
func (t *txn) Delete(bucket string, key []byte) (err error) { return t.write(bucket, key, nil) }

// write leaves a value in the batch, with room for its header; nil: none.
func (t *txn) write(bucket string, key, is []byte) (err error) {
	if err := t.mayWrite(bucket, key); err != nil {
		return err
	}
	defer t.catch(&err)
	r := t.table(bucket).row(key, true)
	t.grown += r.size(is) - r.size(r.stored())
	t.undo = append(t.undo, was{r, r.is, r.written})
	r.is, r.written = is, true
	return nil
}

// size is the bytes that the row takes where it holds a stored value.
func (r *row) size(stored []byte) int {
	if stored == nil {
		return 0
	}
	return len(r.key) + len(stored)
}

// rollBack undoes the writes of this function, the latest first.
func (t *txn) rollBack() {
	for _, w := range slices.Backward(t.undo) {
		w.row.is, w.row.written = w.is, w.written
	}
	t.undo = nil
}

// Scan is kv.Tx.Scan. It walks the file and the rows of the batch side by side.
func (t *txn) Scan(bucket string, prefix, from []byte, fn func(key, value []byte) (bool, error)) error {
	if err := t.mayRead(bucket); err != nil {
		return err
	}
	t.scans++ // also keeps the rows of the batch in their places
	defer func() { t.scans-- }()
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	s, err := t.scan(bucket, from)
	for err == nil {
		var key, value []byte
		if key, value, err = s.next(prefix); key == nil || err != nil {
			break
		}
		if more, err := fn(key, value); err != nil || !more {
			return err
		}
	}
	return err
}

// scan is a walk over a table.
type scan struct {
	*table
	batch       *batch
	at          *bbolt.Cursor // nil: the bucket is not in the file
	key, stored []byte        // where the cursor is; no key: at the end
	rest        []*row        // of the batch, not passed yet
}

func (t *txn) scan(bucket string, from []byte) (s *scan, err error) {
	defer t.catch(&err)
	tb := t.table(bucket)
	i, _ := tb.find(from)
	s = &scan{table: tb, batch: t.batch, rest: tb.rows[i:]}
	if tb.bucket != nil {
		s.at = tb.bucket.Cursor()
		s.key, s.stored = s.at.Seek(from)
	}
	return s, nil
}

// next gives copies of the next key and value; no key: past the end. A fault in the
// function of a scan is its own, so only this part is watched for damage.
func (s *scan) next(prefix []byte) (key, value []byte, err error) {
	defer s.batch.catch(&err)
	for {
		r := s.step()
		if r == nil || !bytes.HasPrefix(r.key, prefix) {
			return nil, nil, nil
		}
		if r.stored() != nil {
			value, err = r.value(s.name)
			return bytes.Clone(r.key), value, err
		}
	}
}

// step gives the lower of the two next rows, and moves on behind it. A row of the
// batch stands for the same one of the file.
func (s *scan) step() (r *row) {
	order := -1
	if len(s.rest) > 0 {
		r, order = s.rest[0], 1
		if s.key != nil {
			order = bytes.Compare(s.key, r.key)
		}
	} else if s.key == nil {
		return nil
	}
	if order < 0 {
		r = &row{key: s.key, was: s.stored}
	} else {
		s.rest = s.rest[1:]
	}
	if order <= 0 {
		s.key, s.stored = s.at.Next()
	}
	return r
}

func (t *txn) mayRead(bucket string) error {
	switch {
	case t.done:
		return kv.ErrTxDone
	case t.broken != nil:
		return t.broken
	case bucket == "" || bucket == metaBucket:
		return fmt.Errorf("bucket %q: %w", bucket, kv.ErrKey)
	}
	return nil
}

func (t *txn) mayWrite(bucket string, key []byte) error {
	if err := t.mayRead(bucket); err != nil {
		return err
	}
	if !t.writable || t.scans > 0 {
		return kv.ErrReadOnly
	}
	return kv.CheckKey(bucket, key)
}
