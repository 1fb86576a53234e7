package boltfile

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"admitone/internal/kv"
)

// txn is the kv.Tx of one function on a bbolt transaction, which it shares with
// the other functions of the commit. It writes down what it overwrites, so that
// its writes alone can be undone.
type txn struct {
	tx       *bbolt.Tx
	writable bool
	done     bool
	scans    int   // running; no write meanwhile
	undo     []was // oldest first
	grown    int   // bytes of keys and values put, less those removed
	broken   error // bbolt met a damaged page: this transaction must not be committed
}

// was is one stored value as it was before a write; nil: absent.
type was struct {
	bucket, key, stored []byte
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
	stored := t.stored(bucket, key)
	if stored == nil {
		return nil, nil
	}
	return unseal(bucket, key, stored)
}

// Put is kv.Tx.Put.
func (t *txn) Put(bucket string, key, value []byte) (err error) {
	if err := t.mayWrite(bucket, key); err != nil {
		return err
	}
	defer t.catch(&err)
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		if b, err = t.tx.CreateBucket([]byte(bucket)); err != nil {
			return fmt.Errorf("make bucket %s: %w", bucket, err)
		}
	}
	old, stored := b.Get(key), seal(bucket, key, value)
	if bytes.Equal(old, stored) {
		return nil
	}
	t.remember(bucket, key, old, len(key)+len(stored))
	if err := b.Put(key, stored); err != nil {
		return fmt.Errorf("put %s/%x: %w", bucket, key, err)
	}
	return nil
}

// Delete is kv.Tx.Delete.
func (t *txn) Delete(bucket string, key []byte) (err error) {
	if err := t.mayWrite(bucket, key); err != nil {
		return err
	}
	defer t.catch(&err)
	old := t.stored(bucket, key)
	if old == nil {
		return nil
	}
	t.remember(bucket, key, old, 0)
	if err := t.tx.Bucket([]byte(bucket)).Delete(key); err != nil {
		return fmt.Errorf("delete %s/%x: %w", bucket, key, err)
	}
	return nil
}

// Scan is kv.Tx.Scan.
func (t *txn) Scan(bucket string, prefix, from []byte, fn func(key, value []byte) (bool, error)) error {
	if err := t.mayRead(bucket); err != nil {
		return err
	}
	t.scans++
	defer func() { t.scans-- }()
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	c, err := t.cursor(bucket)
	if c == nil {
		return err
	}
	move := func() ([]byte, []byte) { return c.Seek(from) }
	for {
		key, value, err := t.read(bucket, prefix, move)
		if key == nil || err != nil {
			return err
		}
		if more, err := fn(key, value); err != nil || !more {
			return err
		}
		move = c.Next
	}
}

// read moves a cursor and gives a copy of what is there; no key: past the end. A
// fault in fn is fn's own, so only this part of a scan is watched for damage.
func (t *txn) read(bucket string, prefix []byte, move func() ([]byte, []byte)) (key, value []byte, err error) {
	defer t.catch(&err)
	k, stored := move()
	if k == nil || !bytes.HasPrefix(k, prefix) {
		return nil, nil, nil
	}
	value, err = unseal(bucket, k, stored)
	return bytes.Clone(k), value, err
}

func (t *txn) cursor(bucket string) (c *bbolt.Cursor, err error) {
	defer t.catch(&err)
	if b := t.tx.Bucket([]byte(bucket)); b != nil {
		return b.Cursor(), nil
	}
	return nil, nil
}

func (t *txn) stored(bucket string, key []byte) []byte {
	b := t.tx.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	return b.Get(key)
}

// remember writes down what is there before a write after which size bytes are.
func (t *txn) remember(bucket string, key, old []byte, size int) {
	if old != nil {
		size -= len(key) + len(old)
	}
	t.grown += size
	t.undo = append(t.undo, was{[]byte(bucket), bytes.Clone(key), bytes.Clone(old)})
}

// rollBack undoes the writes of this function, the latest first.
func (t *txn) rollBack() (err error) {
	defer t.catch(&err)
	for i := len(t.undo) - 1; i >= 0 && err == nil; i-- {
		w := t.undo[i]
		if b := t.tx.Bucket(w.bucket); w.stored == nil {
			err = b.Delete(w.key)
		} else {
			err = b.Put(w.key, w.stored)
		}
	}
	t.undo = nil
	if err != nil {
		t.broken = fmt.Errorf("undo: %w", err)
	}
	return err
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

// catch turns a panic of bbolt into damage. bbolt panics, or faults where the
// caller has set debug.SetPanicOnFault, on pages that make no sense, and on a
// mapped page that the disk cannot give.
func (t *txn) catch(err *error) {
	if r := recover(); r != nil {
		t.broken = fmt.Errorf("read page: %v: %w", r, kv.ErrCorrupt)
		*err = t.broken
	}
}
