package boltfile

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// Verify reads the whole file: bbolt's own check, then the checksum of each value.
// It is for a process that does nothing else, as VerifyInChild starts it: a damaged
// file can end it with a fault or keep it busy for ever, and the process is not
// allowed much memory from then on.
func Verify(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	if err := confine(2*info.Size() + 1<<30); err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	if info.Size() < 2*pageSize {
		return &DamagedError{path, fmt.Sprintf("it has %d bytes", info.Size())}
	}
	db, err := openBolt(path, &bbolt.Options{ReadOnly: true, Timeout: lockPatience, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	err = db.View(func(tx *bbolt.Tx) error { return check(tx, info.Size()) })
	if err = errors.Join(err, db.Close()); err != nil {
		return &DamagedError{path, err.Error()}
	}
	return nil
}

// check looks at the length first: what is mapped past the end of the file faults.
func check(tx *bbolt.Tx, size int64) error {
	if tx.Size() > size {
		return fmt.Errorf("its pages take %d bytes, the file has %d", tx.Size(), size)
	}
	var first error
	for err := range tx.Check() { // to its end, or its goroutine stays behind
		if first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	_, ours, err := readMeta(tx)
	if !ours || err != nil {
		return err // another program's file has no checksums; Open will refuse it
	}
	return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
		return b.ForEach(func(key, stored []byte) error {
			_, err := unseal(string(bucket), key, stored)
			return err
		})
	})
}
