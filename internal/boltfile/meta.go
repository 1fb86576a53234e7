package boltfile

import (
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// metaBucket describes the file, in sealed values like all others:
//
//	kind | Options.Name       version | decimal       created | RFC 3339
//
// Functions cannot reach it.
const metaBucket = "_file"

// meta is the description of a file.
type meta struct {
	kind    string
	version int
	created time.Time
}

func (m meta) write(tx *bbolt.Tx) error {
	b, err := tx.CreateBucket([]byte(metaBucket))
	if err != nil {
		return fmt.Errorf("describe file: %w", err)
	}
	for _, f := range [][2]string{
		{"kind", m.kind},
		{"version", strconv.Itoa(m.version)},
		{"created", m.created.UTC().Format(time.RFC3339)},
	} {
		if err := b.Put([]byte(f[0]), seal(metaBucket, []byte(f[0]), []byte(f[1]))); err != nil {
			return fmt.Errorf("describe file: %w", err)
		}
	}
	return nil
}

// readMeta gives the description; ours is false for a file that has none.
func readMeta(tx *bbolt.Tx) (m meta, ours bool, err error) {
	b := tx.Bucket([]byte(metaBucket))
	if b == nil {
		return meta{}, false, nil
	}
	field := func(key string) string {
		v, ferr := unseal(metaBucket, []byte(key), b.Get([]byte(key)))
		if err == nil {
			err = ferr
		}
		return string(v)
	}
	kind, version, created := field("kind"), field("version"), field("created")
	if err != nil {
		return meta{}, true, err
	}
	m.kind = kind
	if m.version, err = strconv.Atoi(version); err != nil {
		return meta{}, true, fmt.Errorf("read version of file: %w", err)
	}
	if m.created, err = time.Parse(time.RFC3339, created); err != nil {
		return meta{}, true, fmt.Errorf("read age of file: %w", err)
	}
	return m, true, nil
}
