package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// A meta page is a header of 16 bytes and the file's description, which ends in the
// FNV-64a of what comes before (bbolt's internal/common/meta.go).
const (
	metaAt  = 16
	metaSum = metaAt + 56
)

// halfMeta says whether exactly one of the two meta pages is what was written.
func halfMeta(path string) (half bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("read meta pages: %w", err)
	}
	sound := 0
	for page := range int64(2) {
		b := make([]byte, metaSum+8)
		if _, rerr := f.ReadAt(b, page*pageSize); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		sum := fnv.New64a()
		sum.Write(b[metaAt:metaSum])
		if sum.Sum64() == binary.LittleEndian.Uint64(b[metaSum:]) {
			sound++
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("read meta pages: %w", err)
	}
	return sound == 1, nil
}
