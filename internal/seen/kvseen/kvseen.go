// Package kvseen keeps the seen table in a kv transaction, so that a row and the
// work it stands for are one commit.
package kvseen

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"admitone/internal/kv"
	"admitone/internal/seen"
)

// Bind gives the table within tx. It takes the buckets "seen" and "seen.until",
// which nobody else may write.
func Bind(tx kv.Tx) seen.Tx { return table{tx} }

type table struct{ tx kv.Tx }

// Claim is seen.Tx.Claim. It returns an error where the policy is of another
// endpoint or does not say how to answer a repeat.
func (t table) Claim(p seen.Policy, r seen.Request) (seen.Answer, error) {
	if err := p.Check(r); err != nil {
		return seen.Answer{}, err
	}
	row, found, err := t.Get(r.Key)
	if err != nil {
		return seen.Answer{}, err
	}
	if found && !row.Due(r.At) {
		return p.Answer(row, r), nil
	}
	fresh := p.Row(r)
	if err := t.replace(row, found, fresh); err != nil {
		return seen.Answer{}, err
	}
	return seen.Answer{Outcome: seen.Won, Row: fresh}, nil
}

// Finish is seen.Tx.Finish.
func (t table) Finish(k seen.Key, holder string, result []byte) (bool, error) {
	row, found, err := t.Get(k)
	if err != nil || !found || row.Holder != holder {
		return false, err
	}
	done := row
	done.Done, done.Result = true, slices.Clone(result)
	return true, t.replace(row, true, done)
}

// Take is seen.Tx.Take, with the errors of Claim.
func (t table) Take(p seen.Policy, from string, r seen.Request) (bool, error) {
	if err := p.Check(r); err != nil {
		return false, err
	}
	row, found, err := t.Get(r.Key)
	if err != nil || !found || row.Holder != from {
		return false, err
	}
	return true, t.replace(row, true, p.Row(r))
}

// Drop is seen.Tx.Drop.
func (t table) Drop(k seen.Key, holder string) (bool, error) {
	row, found, err := t.Get(k)
	if err != nil || !found || row.Done || row.Holder != holder {
		return false, err
	}
	return true, t.remove(k, row.Until)
}

// Get is seen.Tx.Get. A row whose Until has passed is there until it is pruned or
// claimed anew.
func (t table) Get(k seen.Key) (seen.Row, bool, error) {
	key, err := rowKey(k)
	if err != nil {
		return seen.Row{}, false, err
	}
	value, err := t.tx.Get(rows, key)
	if err != nil {
		return seen.Row{}, false, fmt.Errorf("read row: %w", err)
	}
	if value == nil {
		return seen.Row{}, false, nil
	}
	row, err := decode(k, value)
	return row, err == nil, err
}

// Prune is seen.Tx.Prune. It finds the rows in the index by time and never reads
// them.
func (t table) Prune(endpoint string, now time.Time, limit int) (int, error) {
	type entry struct {
		key   seen.Key
		until time.Time
	}
	var gone []entry
	prefix, err := untilPrefix(endpoint)
	if err != nil || limit <= 0 {
		return 0, err
	}
	err = t.tx.Scan(untils, prefix, nil, func(key, _ []byte) (bool, error) {
		k, until, err := splitUntilKey(key)
		if err != nil || until.After(now) {
			return false, err
		}
		gone = append(gone, entry{k, until})
		return len(gone) < limit, nil
	})
	if err != nil {
		return 0, fmt.Errorf("find rows to forget: %w", err)
	}
	for i, e := range gone {
		if err := t.remove(e.key, e.until); err != nil {
			return i, err
		}
	}
	return len(gone), nil
}

// PruneScope is seen.Tx.PruneScope.
func (t table) PruneScope(endpoint, scope string, limit int) (int, error) {
	var gone []seen.Row
	suffix, err := endpointSuffix(endpoint)
	if err != nil || limit <= 0 {
		return 0, err
	}
	prefix, err := appendScope(nil, scope)
	if err != nil {
		return 0, err
	}
	err = t.tx.Scan(rows, prefix, nil, func(key, value []byte) (bool, error) {
		id, ours := bytes.CutSuffix(key[len(prefix):], suffix)
		if !ours {
			return true, nil
		}
		row, err := decode(seen.Key{Endpoint: endpoint, Scope: scope, ID: string(id)}, value)
		gone = append(gone, row)
		return len(gone) < limit, err
	})
	if err != nil {
		return 0, fmt.Errorf("find rows of the scope: %w", err)
	}
	for i, row := range gone {
		if err := t.remove(row.Key, row.Until); err != nil {
			return i, err
		}
	}
	return len(gone), nil
}

// replace writes a row, and its index entry if that moved.
func (t table) replace(old seen.Row, had bool, row seen.Row) error {
	if had && !old.Until.Equal(row.Until) {
		if err := t.removeUntil(old.Key, old.Until); err != nil {
			return err
		}
	}
	key, err := rowKey(row.Key)
	if err != nil {
		return err
	}
	if err := t.tx.Put(rows, key, encode(row)); err != nil {
		return fmt.Errorf("write row: %w", err)
	}
	if row.Until.IsZero() || had && old.Until.Equal(row.Until) {
		return nil
	}
	index, err := untilKey(row.Key, row.Until)
	if err != nil {
		return err
	}
	if err := t.tx.Put(untils, index, nil); err != nil {
		return fmt.Errorf("write index of rows: %w", err)
	}
	return nil
}

// remove deletes a row and its index entry, without reading either.
func (t table) remove(k seen.Key, until time.Time) error {
	key, err := rowKey(k)
	if err != nil {
		return err
	}
	if err := t.tx.Delete(rows, key); err != nil {
		return fmt.Errorf("delete row: %w", err)
	}
	return t.removeUntil(k, until)
}

func (t table) removeUntil(k seen.Key, until time.Time) error {
	if until.IsZero() {
		return nil
	}
	index, err := untilKey(k, until)
	if err != nil {
		return err
	}
	if err := t.tx.Delete(untils, index); err != nil {
		return fmt.Errorf("delete from index of rows: %w", err)
	}
	return nil
}
