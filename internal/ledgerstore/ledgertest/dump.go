package ledgertest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"admitone/internal/kv"
)

// buckets are all that a ledger's store on a kv.Store writes.
var buckets = []string{
	"stream", "record", "claim.unit", "due", "subject", "conflict", "conflict.at",
	"alarm", "alarm.at", "event", "gate", "late", "row", "row.list", "seen", "seen.until",
}

// Dump gives the content of a ledger's key-value store, by "bucket/key" in hex.
func Dump(t testing.TB, s kv.Store) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := s.View(func(tx kv.Tx) error {
		for _, b := range buckets {
			err := tx.Scan(b, nil, nil, func(k, v []byte) (bool, error) {
				out[b+"/"+string(k)] = v
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("dump store: %v", err)
	}
	return out
}

// Load writes a dump into an empty store: the restore from a backup.
func Load(t testing.TB, s kv.Store, dump map[string][]byte) {
	t.Helper()
	err := s.Update(context.Background(), func(tx kv.Tx) error {
		for k, v := range dump {
			bucket, key, _ := strings.Cut(k, "/")
			if err := tx.Put(bucket, []byte(key), v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("load store: %v", err)
	}
}

// Diff names the keys at which two dumps differ, sorted.
func Diff(a, b map[string][]byte) []string {
	var out []string
	for k, v := range a {
		if w, ok := b[k]; !ok || !bytes.Equal(v, w) {
			out = append(out, fmt.Sprintf("%q", k))
		}
	}
	for k := range maps.Keys(b) {
		if _, ok := a[k]; !ok {
			out = append(out, fmt.Sprintf("%q", k))
		}
	}
	slices.Sort(out)
	return out
}
