package kvseen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"admitone/internal/kv"
	"admitone/internal/seen"
)

// The two buckets. Lengths are big-endian, and the identifier is what is between
// the others, so that no two keys have one spelling. The rows of a scope lie
// together, and of those whose identifiers begin alike, whatever their endpoints:
// what is claimed together is one page to read and to write.
//
//	seen        | u16 len, scope | id | endpoint, u8 len          -> row (encode)
//	seen.until  | u8 len, endpoint | time | u16 len, scope | id   -> empty
//
// time is 12 bytes, i64 Unix seconds with the sign bit flipped and u32 nanoseconds,
// so that bytes order as time does. Rows that are remembered for ever (Until zero)
// have no entry in seen.until.
const (
	rows   = "seen"
	untils = "seen.until"
)

const timeLen = 12

var errForm = errors.New("row is not of a known form")

func untilPrefix(endpoint string) ([]byte, error) {
	if endpoint == "" || len(endpoint) > 0xff {
		return nil, fmt.Errorf("seen key: endpoint of %d bytes, want 1 to 255", len(endpoint))
	}
	return append([]byte{byte(len(endpoint))}, endpoint...), nil
}

func appendScope(b []byte, scope string) ([]byte, error) {
	if len(scope) > 0xffff {
		return nil, fmt.Errorf("seen key: scope of %d bytes, want at most 65535", len(scope))
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(scope))), scope...), nil
}

// endpointSuffix ends the keys of an endpoint's rows.
func endpointSuffix(endpoint string) ([]byte, error) {
	b, err := untilPrefix(endpoint)
	if err != nil {
		return nil, err
	}
	return append(b[1:], b[0]), nil
}

// rowKey also leaves room for the key of the index, which is longer by the time.
func rowKey(k seen.Key) ([]byte, error) {
	suffix, err := endpointSuffix(k.Endpoint)
	if err != nil {
		return nil, err
	}
	b, err := appendScope(make([]byte, 0, 2+len(k.Scope)+len(k.ID)+len(suffix)), k.Scope)
	if err != nil {
		return nil, err
	}
	if b = append(append(b, k.ID...), suffix...); len(b) > kv.MaxKey-timeLen {
		return nil, fmt.Errorf("seen key: %d bytes, want at most %d: %w", len(b), kv.MaxKey-timeLen, kv.ErrKey)
	}
	return b, nil
}

func untilKey(k seen.Key, until time.Time) ([]byte, error) {
	b, err := untilPrefix(k.Endpoint)
	if err != nil {
		return nil, err
	}
	if b, err = appendScope(appendTime(b, until), k.Scope); err != nil {
		return nil, err
	}
	return append(b, k.ID...), nil
}

func splitUntilKey(b []byte) (seen.Key, time.Time, error) {
	r := reader{b: b}
	k := seen.Key{Endpoint: string(r.take(int(r.uint(1))))}
	until := r.time()
	k.Scope = string(r.take(int(r.uint(2))))
	k.ID = string(r.b)
	return k, until, r.err
}

// form is the first byte of a stored row, for a later form to differ in.
const form = 1

const flagDone = 1

// encode writes a row without its key: form, flags, first seen, until (zero time:
// for ever), then place, holder, fingerprint and result, each after its length as
// u32.
func encode(row seen.Row) []byte {
	b := []byte{form, 0}
	if row.Done {
		b[1] |= flagDone
	}
	b = appendTime(appendTime(b, row.FirstSeen), row.Until)
	for _, field := range []string{row.Place, row.Holder, string(row.Fingerprint), string(row.Result)} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	return b
}

// decode is strict: what is not exactly what encode writes is an error.
func decode(k seen.Key, b []byte) (seen.Row, error) {
	r := reader{b: b}
	f, flags := r.uint(1), r.uint(1)
	if f != form || flags&^flagDone != 0 {
		return seen.Row{}, fmt.Errorf("read row: form %d, flags %#x: %w", f, flags, errForm)
	}
	row := seen.Row{Key: k, Done: flags&flagDone != 0, FirstSeen: r.time(), Until: r.time()}
	row.Place, row.Holder = string(r.field()), string(r.field())
	row.Fingerprint, row.Result = r.field(), r.field()
	if r.err == nil && len(r.b) > 0 {
		r.err = errForm
	}
	if r.err != nil {
		return seen.Row{}, fmt.Errorf("read row: %w", r.err)
	}
	return row, nil
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// reader takes a value apart; after the first error everything it gives is empty.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.err, r.b = errForm, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// uint reads a big-endian number of n bytes.
func (r *reader) uint(n int) (v uint64) {
	for _, c := range r.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *reader) time() time.Time {
	sec, nano := r.uint(8), r.uint(4)
	return time.Unix(int64(sec^1<<63), int64(nano)).UTC()
}

// field gives nil for an empty one.
func (r *reader) field() []byte {
	f := r.take(int(r.uint(4)))
	if len(f) == 0 {
		return nil
	}
	return f
}
