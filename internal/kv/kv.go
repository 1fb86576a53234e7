// Package kv is the small ordered key-value transaction that the gate's and the
// ledger's stores are written on: on a bbolt file (package boltfile), or in
// memory with crashes on demand (Mem) for the simulation. Both pass the suite in
// package kvtest.
package kv

import (
	"context"
	"errors"
)

// Tx is one transaction. Keys are ordered bytewise within a bucket. Slices given
// to fn or returned are the caller's to keep: no implementation hands out memory
// that ends with the transaction.
type Tx interface {
	// Get gives the value, or nil where the key is absent. It returns
	// ErrCorrupt, wrapped with bucket and key, when the value's check fails.
	Get(bucket string, key []byte) ([]byte, error)

	// Put sets the value; an empty value is allowed. Buckets need no creation.
	Put(bucket string, key, value []byte) error

	// Delete removes the key; an absent key is no error.
	Delete(bucket string, key []byte) error

	// Scan calls fn for each key that has the prefix and is not below from
	// (nil: from the start), in ascending order, until fn returns false or an
	// error. fn must not write.
	Scan(bucket string, prefix, from []byte, fn func(key, value []byte) (more bool, err error)) error
}

// Store runs transactions.
type Store interface {
	// View runs fn in a read transaction. fn must be short and do no I/O.
	View(fn func(Tx) error) error

	// Update runs fn in a write transaction and returns after it is durable.
	// Several concurrent calls may share one commit; where one fn returns an
	// error, its writes alone are undone and the error is returned to its
	// caller. fn runs exactly once. When the commit itself failed, Update returns
	// an error for which errors.Is(err, ErrUnknown) holds, and so does every later
	// call: whether the writes are durable cannot be known, and the process must
	// stop and reopen the store.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for the commit under way and closes the store.
	Close() error
}

// Errors of a store.
var (
	ErrCorrupt = errors.New("value is damaged")                      // returned when a value's check fails
	ErrUnknown = errors.New("commit failed, its outcome is unknown") // returned when a commit failed, and ever after
	ErrClosed  = errors.New("store is closed")                       // returned after Close
	ErrFull    = errors.New("store is full")                         // returned when the size limit is reached; nothing was written
)
