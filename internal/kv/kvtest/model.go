package kvtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"admitone/internal/kv"
)

// model is what a store must behave like: "bucket/key" to value.
type model map[string]string

var errUndo = errors.New("undo")

// testModel runs random transactions, some of which fail, and random crashes,
// against a plain map.
func testModel(t *testing.T, open func(t *testing.T) kv.Store, reopen func(t *testing.T, s kv.Store) kv.Store) {
	rapid.Check(t, func(r *rapid.T) {
		s, m := open(t), model{}
		defer func() { _ = s.Close() }()
		r.Repeat(map[string]func(*rapid.T){
			"update": func(r *rapid.T) { m = m.update(r, s) },
			"reopen": func(r *rapid.T) {
				if rapid.IntRange(0, 9).Draw(r, "reopen") == 0 {
					s = reopen(t, s)
				}
			},
			"": func(r *rapid.T) { m.compare(r, s) },
		})
	})
}

// update does a random transaction on the store and on a copy of the model, and
// gives the copy if it was kept.
func (m model) update(r *rapid.T, s kv.Store) model {
	next := maps.Clone(m)
	fail := rapid.IntRange(0, 3).Draw(r, "fail") == 0
	steps := rapid.IntRange(0, 6).Draw(r, "steps")
	err := s.Update(context.Background(), func(tx kv.Tx) error {
		for range steps {
			if err := next.step(r, tx); err != nil {
				return err
			}
		}
		if fail {
			return errUndo
		}
		return nil
	})
	switch {
	case fail && errors.Is(err, errUndo):
		return m
	case err != nil:
		r.Fatalf("update: %v", err)
	}
	return next
}

func (m model) step(r *rapid.T, tx kv.Tx) error {
	bucket := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "bucket")
	key := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 1, 3, -1).Draw(r, "key")
	switch rapid.IntRange(0, 4).Draw(r, "op") {
	case 4:
		return m.scan(r, tx, bucket)
	case 0:
		delete(m, bucket+"/"+key)
		return tx.Delete(bucket, []byte(key))
	case 1:
		got, err := tx.Get(bucket, []byte(key))
		if v, ok := m[bucket+"/"+key]; ok != (got != nil) || v != string(got) {
			return fmt.Errorf("get %s/%q: %q, the model has %q", bucket, key, got, v)
		}
		return err
	}
	value := rapid.SampledFrom([]string{"", "v", strings.Repeat("long", 300)}).Draw(r, "value")
	m[bucket+"/"+key] = value
	return tx.Put(bucket, []byte(key), []byte(value))
}

// compare scans each bucket in a View.
func (m model) compare(r *rapid.T, s kv.Store) {
	for _, bucket := range []string{"a", "b"} {
		if err := s.View(func(tx kv.Tx) error { return m.scan(r, tx, bucket) }); err != nil {
			r.Fatal(err)
		}
	}
}

// scan scans with a random prefix and start, and looks for the same in the model.
// Gets between the steps, of keys that nobody read before, must not disturb it.
func (m model) scan(r *rapid.T, tx kv.Tx, bucket string) error {
	prefix := rapid.SampledFrom([]string{"", "a", "b", "a\x00"}).Draw(r, "prefix")
	from := rapid.SampledFrom([]string{"", "a", "ab", "b\x00"}).Draw(r, "from")
	var want []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if key, ok := strings.CutPrefix(k, bucket+"/"); ok && strings.HasPrefix(key, prefix) && key >= from {
			want = append(want, key+"="+m[k])
		}
	}
	var got []string
	err := tx.Scan(bucket, []byte(prefix), []byte(from), func(k, v []byte) (bool, error) {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		_, err := tx.Get(bucket, append([]byte("A"), k...))
		return true, err
	})
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("scan %s: %q; the model has %q", bucket, got, want)
	}
	return err
}
