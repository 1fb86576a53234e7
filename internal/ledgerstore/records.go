package ledgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

type streamRow struct {
	_                                  struct{} `cbor:",toarray"`
	High, Top, Head, Base, Lost, Aside uint64
}

// Stream is ledger.Tx.Stream.
func (t tx) Stream(s ticket.Stream) (ledger.StreamRow, error) {
	var r streamRow
	_, err := t.get("stream", streamKey(s), &r)
	return r.row(), err
}

func (r streamRow) row() ledger.StreamRow {
	return ledger.StreamRow{High: r.High, Top: r.Top, Head: r.Head, Base: r.Base, Lost: r.Lost, Aside: r.Aside}
}

// PutStream is ledger.Tx.PutStream.
func (t tx) PutStream(s ticket.Stream, r ledger.StreamRow) error {
	return t.put("stream", streamKey(s),
		streamRow{High: r.High, Top: r.Top, Head: r.Head, Base: r.Base, Lost: r.Lost, Aside: r.Aside})
}

// Streams is ledger.Tx.Streams.
func (t tx) Streams(source ticket.Source, fn func(ticket.Stream, ledger.StreamRow) bool) error {
	var prefix []byte
	if source != "" {
		prefix = append([]byte(source), 0)
	}
	return t.kv.Scan("stream", prefix, nil, func(k, v []byte) (bool, error) {
		s, err := splitStreamKey(k)
		if err != nil {
			return false, err
		}
		var r streamRow
		if err := parse("stream", v, &r); err != nil {
			return false, err
		}
		return fn(s, r.row()), nil
	})
}

// The kinds of what is kept at a position: the first byte of its value.
const (
	kindRecord = 0
	kindAside  = 1
)

func keptValue(k ledger.Kept) []byte {
	kind := byte(kindRecord)
	if k.Aside {
		kind = kindAside
	}
	return append([]byte{kind}, k.Raw...)
}

func parseKept(v []byte) (ledger.Kept, error) {
	if len(v) == 0 || v[0] > kindAside {
		return ledger.Kept{}, damaged("record", errors.New("unknown kind"))
	}
	return ledger.Kept{Raw: v[1:], Aside: v[0] == kindAside}, nil
}

// PutRecord is ledger.Tx.PutRecord.
func (t tx) PutRecord(s ticket.Stream, pos uint64, k ledger.Kept) (ledger.Put, error) {
	key, value := recordKey(s, pos), keptValue(k)
	was, err := t.kv.Get("record", key)
	switch {
	case err != nil:
		return 0, err
	case was == nil:
		return ledger.PutNew, t.kv.Put("record", key, value)
	case bytes.Equal(was, value):
		return ledger.PutDuplicate, nil
	}
	return ledger.PutForked, nil
}

// SetRecord is ledger.Tx.SetRecord.
func (t tx) SetRecord(s ticket.Stream, pos uint64, k ledger.Kept) error {
	return t.kv.Put("record", recordKey(s, pos), keptValue(k))
}

// Record is ledger.Tx.Record.
func (t tx) Record(s ticket.Stream, pos uint64) (ledger.Kept, bool, error) {
	v, err := t.kv.Get("record", recordKey(s, pos))
	if err != nil || v == nil {
		return ledger.Kept{}, false, err
	}
	k, err := parseKept(v)
	return k, err == nil, err
}

// Records is ledger.Tx.Records.
func (t tx) Records(s ticket.Stream, after uint64, fn func(uint64, ledger.Kept) bool) error {
	if after+1 == 0 {
		return nil
	}
	prefix := streamKey(s)
	return t.kv.Scan("record", prefix, recordKey(s, after+1), func(k, v []byte) (bool, error) {
		kept, err := parseKept(v)
		if err != nil {
			return false, err
		}
		return fn(binary.BigEndian.Uint64(k[len(prefix):]), kept), nil
	})
}

// DropRecord is ledger.Tx.DropRecord.
func (t tx) DropRecord(s ticket.Stream, pos uint64) error {
	return t.kv.Delete("record", recordKey(s, pos))
}

// PutLate is ledger.Tx.PutLate.
func (t tx) PutLate(event string, s ticket.Stream, pos uint64, raw []byte) error {
	return t.kv.Put("late", append(ticket.EventPrefix(event), recordKey(s, pos)...), raw)
}
