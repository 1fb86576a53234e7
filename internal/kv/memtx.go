package kv

import "bytes"

// memTx is a transaction of a Mem on a state of its own.
type memTx struct {
	state    state
	writable bool
	wrote    bool
	scans    int // running; no write meanwhile
	done     bool
}

func (t *memTx) end() { t.done = true }

// Get is Tx.Get.
func (t *memTx) Get(bucket string, key []byte) ([]byte, error) {
	if t.done {
		return nil, ErrTxDone
	}
	if err := CheckKey(bucket, key); err != nil {
		return nil, err
	}
	value, ok := t.state[bucket].get(key)
	if !ok {
		return nil, nil
	}
	return clone(value), nil
}

// Put is Tx.Put.
func (t *memTx) Put(bucket string, key, value []byte) error {
	if err := t.mayWrite(bucket, key); err != nil {
		return err
	}
	t.state[bucket] = t.state[bucket].put(clone(key), clone(value))
	t.wrote = true
	return nil
}

// Delete is Tx.Delete.
func (t *memTx) Delete(bucket string, key []byte) error {
	if err := t.mayWrite(bucket, key); err != nil {
		return err
	}
	if _, ok := t.state[bucket].get(key); ok {
		t.state[bucket] = t.state[bucket].remove(key)
		t.wrote = true
	}
	return nil
}

// Scan is Tx.Scan.
func (t *memTx) Scan(bucket string, prefix, from []byte, fn func(key, value []byte) (bool, error)) (err error) {
	if t.done {
		return ErrTxDone
	}
	if bucket == "" {
		return ErrKey
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	t.scans++
	defer func() { t.scans-- }()
	t.state[bucket].walk(from, func(key, value []byte) bool {
		if !bytes.HasPrefix(key, prefix) {
			return false
		}
		var more bool
		more, err = fn(clone(key), clone(value))
		return more && err == nil
	})
	return err
}

func (t *memTx) mayWrite(bucket string, key []byte) error {
	switch {
	case t.done:
		return ErrTxDone
	case !t.writable || t.scans > 0:
		return ErrReadOnly
	}
	return CheckKey(bucket, key)
}

// clone is bytes.Clone, but never nil: an empty value is not an absent one.
func clone(b []byte) []byte { return append([]byte{}, b...) }
