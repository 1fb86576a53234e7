package boltfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"admitone/internal/kv"
)

// A stored value is
//
//	u8 form (1) | u32 CRC32C, big-endian | value
//
// where the checksum is over the form, u32 len, bucket, u32 len, key, value: a value
// that a damaged page shows under another key is damage, too.
const (
	form   = 1
	header = 5
	sumAt  = 1
)

func checksum(bucket string, key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the standard library's own, made once
	head := make([]byte, 0, 9+len(bucket)+len(key))
	head = append(head, form)
	head = append(binary.BigEndian.AppendUint32(head, uint32(len(bucket))), bucket...)
	head = append(binary.BigEndian.AppendUint32(head, uint32(len(key))), key...)
	return crc32.Update(crc32.Checksum(head, table), table, value)
}

// seal gives what is stored for a value, in memory of its own.
func seal(bucket string, key, value []byte) []byte {
	b := append(make([]byte, header, header+len(value)), value...)
	sealIn(bucket, key, b)
	return b
}

// sealIn fills in the header of what is stored for the value behind it.
func sealIn(bucket string, key, stored []byte) {
	stored[0] = form
	binary.BigEndian.PutUint32(stored[sumAt:], checksum(bucket, key, stored[header:]))
}

// unseal gives the value in what is stored, in memory of its own and never nil, or
// kv.ErrCorrupt.
func unseal(bucket string, key, stored []byte) ([]byte, error) {
	if len(stored) < header {
		return nil, fmt.Errorf("read %s/%x: %d bytes stored: %w", bucket, key, len(stored), kv.ErrCorrupt)
	}
	if stored[0] != form {
		return nil, fmt.Errorf("read %s/%x: form %d: %w", bucket, key, stored[0], kv.ErrCorrupt)
	}
	if binary.BigEndian.Uint32(stored[sumAt:]) != checksum(bucket, key, stored[header:]) {
		return nil, fmt.Errorf("read %s/%x: wrong checksum: %w", bucket, key, kv.ErrCorrupt)
	}
	return append([]byte{}, stored[header:]...), nil
}
