package kvseen

import (
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/seen"
)

// Each calls row for every row of the table, and guest for every guest among them
// with its identifier and value, in no order that means anything, until one of them
// returns an error.
func Each(tx kv.Tx, row func(seen.Row) error, guest func(id, value []byte) error) error {
	return tx.Scan(rows, nil, nil, func(key, value []byte) (bool, error) {
		if id, is := GuestID(key); is {
			err := guest(id, value)
			return err == nil, err
		}
		k, err := splitRowKey(key)
		if err != nil {
			return false, err
		}
		r, err := decode(k, value)
		if err == nil {
			err = row(r)
		}
		return err == nil, err
	})
}

// splitRowKey takes a row's key apart: u16 len, scope | id | endpoint, u8 len.
func splitRowKey(b []byte) (seen.Key, error) {
	r := reader{b: b}
	scope := string(r.take(int(r.uint(2))))
	n := 0
	if len(r.b) > 0 {
		n = int(r.b[len(r.b)-1])
	}
	if r.err != nil || n == 0 || len(r.b) < n+1 {
		return seen.Key{}, fmt.Errorf("read row: key %x: %w", b, errForm)
	}
	end := len(r.b) - 1 - n
	return seen.Key{Endpoint: string(r.b[end : len(r.b)-1]), Scope: scope, ID: string(r.b[:end])}, nil
}
