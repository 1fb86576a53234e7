package boltfile

import (
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// Verify reads the whole file: bbolt's own check, then the checksum of each value.
// It is for a process that does nothing else, as VerifyInChild starts it: a damaged
// file can end it with a fault or keep it busy for ever, and the process is not
// allowed much memory, nor processor time without end, from then on. An error that is no *DamagedError is for
// ExitUnsure.
func Verify(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	if err := confine(2*info.Size()+1<<30, checkTime(info.Size())); err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	if info.Size() < 2*pageSize {
		return &DamagedError{path, fmt.Sprintf("it has %d bytes", info.Size())}
	}
	db, err := openBolt(path, &bbolt.Options{ReadOnly: true, Timeout: lockPatience, FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	if err := check(db, info.Size()); err != nil {
		return &DamagedError{path, err.Error()} // and nothing is closed: see checkPages
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	return nil
}

// check looks at the length first: what is mapped past the end of the file faults.
func check(db *bbolt.DB, size int64) error {
	tx, err := db.Begin(false)
	if err != nil {
		return fmt.Errorf("begin check: %w", err)
	}
	if tx.Size() > size {
		return fmt.Errorf("its pages take %d bytes, the file has %d", tx.Size(), size)
	}
	if err := checkPages(tx); err != nil {
		return err
	}
	if err := checkValues(tx); err != nil {
		return err
	}
	return tx.Rollback()
}

// checkPages is bbolt's own check, up to its first finding: round a cycle of pages
// there are findings without end, each longer to tell than the one before. The
// check's goroutine is left behind then, so the file must stay mapped.
func checkPages(tx *bbolt.Tx) error {
	for err := range tx.Check() {
		return err
	}
	return nil
}

// checkValues reads the description and each value's checksum. Another program's
// file has none; Open will refuse it.
func checkValues(tx *bbolt.Tx) error {
	_, ours, err := readMeta(tx)
	if !ours || err != nil {
		return err
	}
	return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
		return b.ForEach(func(key, stored []byte) error {
			_, err := unseal(string(bucket), key, stored)
			return err
		})
	})
}
