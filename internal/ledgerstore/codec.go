package ledgerstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return v
}

// put stores a row as CBOR.
func (t tx) put(bucket string, key []byte, row any) error {
	b, err := encMode.Marshal(row)
	if err != nil {
		return fmt.Errorf("encode row of %s: %w", bucket, err)
	}
	return t.kv.Put(bucket, key, b)
}

// get reads a row that put stored; found is false where there is none.
func (t tx) get(bucket string, key []byte, row any) (found bool, err error) {
	b, err := t.kv.Get(bucket, key)
	if err != nil || b == nil {
		return false, err
	}
	return true, parse(bucket, b, row)
}

func parse(bucket string, b []byte, row any) error {
	if err := decMode.Unmarshal(b, row); err != nil {
		return damaged(bucket, err)
	}
	return nil
}

func damaged(bucket string, why error) error {
	return fmt.Errorf("read row of %s: %w: %w", bucket, kv.ErrCorrupt, why)
}

func streamKey(s ticket.Stream) []byte {
	b := make([]byte, 0, len(s.Source)+17) // room for a position
	b = append(append(b, s.Source...), 0)
	return binary.BigEndian.AppendUint64(b, uint64(s.Run))
}

func recordKey(s ticket.Stream, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(streamKey(s), pos)
}

func splitStreamKey(k []byte) (ticket.Stream, error) {
	i := bytes.IndexByte(k, 0)
	if i < 1 || len(k) != i+9 {
		return ticket.Stream{}, damaged("stream", fmt.Errorf("key %x", k))
	}
	return ticket.Stream{Source: ticket.Source(k[:i]), Run: ticket.Run(binary.BigEndian.Uint64(k[i+1:]))}, nil
}

// timeKey gives a time as 8 bytes that order as it does.
func timeKey(at int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63)
}

func splitTime(k []byte) (at int64, rest []byte, err error) {
	if len(k) < 8 {
		return 0, nil, damaged("index", fmt.Errorf("key %x", k))
	}
	return int64(binary.BigEndian.Uint64(k) ^ 1<<63), k[8:], nil
}
