// Package kv is the small ordered key-value transaction that the gate's and the
// ledger's stores are written on: on a bbolt file (package boltfile), or in
// memory with crashes on demand (Mem) for the simulation. Both pass the suite in
// package kvtest.
package kv

import (
	"context"
	"errors"
	"fmt"
)

// MaxKey is the longest key in bytes: bbolt's limit, which every implementation
// keeps to.
const MaxKey = 32768

// Tx is one transaction. Keys are ordered bytewise within a bucket; a key has 1 to
// MaxKey bytes, a bucket's name is not empty. Slices given to fn or returned are
// the caller's to keep: no implementation hands out memory that ends with the
// transaction. A Tx belongs to its fn: it is not for other goroutines, nor for
// later.
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
	// View runs fn in a read transaction, which shows durable commits only: what
	// it read may leave the process. So it may wait for the commit under way. fn
	// must be short, do no I/O and not call the store.
	View(fn func(Tx) error) error

	// Update runs fn in a write transaction and returns after it is durable.
	// Several concurrent calls may share one commit; where one fn returns an
	// error, its writes alone are undone and the error is returned to its
	// caller. fn runs exactly once, unless ctx ends before its turn came: then
	// not at all, and the error is ctx's. Once fn has begun, its outcome is waited
	// for whatever ctx does. fn must not call the store; where it panics, its writes are
	// undone and the error is a *PanicError. Where no fn wrote, nothing is flushed.
	//
	// When the commit itself failed, Update returns an error for which
	// errors.Is(err, ErrUnknown) holds, and so does every later call of Update and
	// View: whether the writes are durable cannot be known, and the process must
	// stop and reopen the store.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for the commit under way and closes the store.
	Close() error
}

// Errors of a store.
var (
	ErrCorrupt  = errors.New("value is damaged")                      // returned when a value's check fails
	ErrUnknown  = errors.New("commit failed, its outcome is unknown") // returned when a commit failed, and ever after
	ErrClosed   = errors.New("store is closed")                       // returned after Close
	ErrFull     = errors.New("store is full")                         // returned when the size limit is reached; nothing was written
	ErrReadOnly = errors.New("transaction is for reading")            // returned by Put and Delete in a View, and while a Scan runs
	ErrTxDone   = errors.New("transaction has ended")                 // returned by a Tx that outlived its fn
	ErrKey      = errors.New("bucket or key is empty or too long")    // returned for a bucket or key outside the limits
)

// PanicError is what Update returns where fn panicked.
type PanicError struct {
	Value any    // what fn panicked with
	Stack []byte // of the goroutine, at the panic
}

// Error gives the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("transaction function panicked: %v", e.Value) }

// CheckKey returns ErrKey where the bucket or the key is outside the limits.
func CheckKey(bucket string, key []byte) error {
	if bucket == "" || len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("bucket %q, key of %d bytes: %w", bucket, len(key), ErrKey)
	}
	return nil
}
