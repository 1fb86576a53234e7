package kvseen_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/seen/seentest"
)

func bind(s kv.Store) seentest.Store {
	return seentest.Func(func(ctx context.Context, fn func(seen.Tx) error) error {
		return s.Update(ctx, func(tx kv.Tx) error { return fn(kvseen.Bind(tx)) })
	})
}

func TestMem(t *testing.T) {
	seentest.Run(t, func(*testing.T) seentest.Store { return bind(kv.NewMem()) })
}

// counting counts what a transaction reads, by bucket.
type counting struct {
	kv.Tx
	gets, scanned map[string]int
}

func (c counting) Get(bucket string, key []byte) ([]byte, error) {
	c.gets[bucket]++
	return c.Tx.Get(bucket, key)
}

func (c counting) Scan(bucket string, prefix, from []byte, fn func(k, v []byte) (bool, error)) error {
	return c.Tx.Scan(bucket, prefix, from, func(k, v []byte) (bool, error) {
		c.scanned[bucket]++
		return fn(k, v)
	})
}

// TestPruneReads: forgetting 3 of 1,000 rows looks at the index of those 3 and of
// the next, and at no row at all.
func TestPruneReads(t *testing.T) {
	s := kv.NewMem()
	p := seen.Policy{Endpoint: "e", OnRepeat: seen.Echo, Remember: time.Hour}
	at := time.Unix(1e9, 0)
	run := func(fn func(c counting, tx seen.Tx) error) {
		err := s.Update(t.Context(), func(tx kv.Tx) error {
			c := counting{tx, map[string]int{}, map[string]int{}}
			return fn(c, kvseen.Bind(c))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run(func(_ counting, tx seen.Tx) error {
		for i := range 1000 {
			r := seen.Request{Key: seen.Key{Endpoint: "e", Scope: fmt.Sprint(i % 10), ID: fmt.Sprint(i)}, At: at.Add(time.Duration(i) * time.Second)}
			if _, err := tx.Claim(p, r); err != nil {
				return err
			}
		}
		return nil
	})
	run(func(c counting, tx seen.Tx) error {
		n, err := tx.Prune("e", at.Add(time.Hour+2*time.Second), 100)
		if n != 3 || c.scanned["seen.until"] > 4 || c.scanned["seen"]+c.gets["seen"] > 0 {
			t.Errorf("pruned %d: scanned %v, read %v", n, c.scanned, c.gets)
		}
		return err
	})
	run(func(c counting, tx seen.Tx) error {
		n, err := tx.PruneScope("e", "7", 1000)
		if n != 100 || c.scanned["seen"] > 101 || c.gets["seen"]+c.scanned["seen.until"] > 0 {
			t.Errorf("pruned %d of the scope: scanned %v, read %v", n, c.scanned, c.gets)
		}
		return err
	})
}

// TestNothingLeft: when every row is gone, so is every key of the index.
func TestNothingLeft(t *testing.T) {
	s := kv.NewMem()
	p := seen.Policy{Endpoint: "e", OnRepeat: seen.Refuse, Remember: time.Hour}
	k := func(id string) seen.Key { return seen.Key{Endpoint: "e", ID: id} }
	at := time.Unix(1e9, 0)
	left := 0
	err := s.Update(t.Context(), func(tx kv.Tx) error {
		table := kvseen.Bind(tx)
		for i, id := range []string{"dropped", "taken", "claimed again", "pruned"} {
			if _, err := table.Claim(p, seen.Request{Key: k(id), At: at, Holder: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		_, err1 := table.Drop(k("dropped"), "0")
		_, err2 := table.Take(p, "1", seen.Request{Key: k("taken"), At: at.Add(time.Minute), Holder: "9"})
		_, err3 := table.Claim(p, seen.Request{Key: k("claimed again"), At: at.Add(time.Hour), Holder: "9"})
		_, err4 := table.Prune("e", at.Add(3*time.Hour), 99)
		count := func(_, _ []byte) (bool, error) { left++; return true, nil }
		return errors.Join(err1, err2, err3, err4, tx.Scan("seen", nil, nil, count), tx.Scan("seen.until", nil, nil, count))
	})
	if err != nil || left != 0 {
		t.Errorf("%d keys left, %v", left, err)
	}
}

// TestKeys: what does not fit is an error, and what just fits is a row.
func TestKeys(t *testing.T) {
	s := kv.NewMem()
	for name, c := range map[string]struct {
		k  seen.Key
		ok bool
	}{
		"no endpoint":   {seen.Key{ID: "a"}, false},
		"long endpoint": {seen.Key{Endpoint: strings.Repeat("e", 256)}, false},
		"long scope":    {seen.Key{Endpoint: "e", Scope: strings.Repeat("s", 65536)}, false},
		"too long":      {seen.Key{Endpoint: "e", ID: strings.Repeat("i", kv.MaxKey-15)}, false},
		"just fits":     {seen.Key{Endpoint: "e", ID: strings.Repeat("i", kv.MaxKey-16)}, true},
	} {
		err := bind(s).Update(t.Context(), func(tx seen.Tx) error {
			p := seen.Policy{Endpoint: c.k.Endpoint, OnRepeat: seen.Echo, Remember: time.Hour}
			_, err := tx.Claim(p, seen.Request{Key: c.k, At: time.Unix(1e9, 0)})
			return err
		})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedRow: bytes that encode did not write are an error, never a row.
func TestDamagedRow(t *testing.T) {
	s := kv.NewMem()
	k := seen.Key{Endpoint: "e", Scope: "s", ID: "i"}
	p := seen.Policy{Endpoint: "e", OnRepeat: seen.Echo}
	key := []byte("\x00\x01sie\x01")
	var good []byte
	err := s.Update(t.Context(), func(tx kv.Tx) error {
		_, err := kvseen.Bind(tx).Claim(p, seen.Request{Key: k, Holder: "h", Place: "p"})
		if err == nil {
			good, err = tx.Get("seen", key)
		}
		return err
	})
	if err != nil || good == nil {
		t.Fatalf("row: %x, %v", good, err)
	}
	bad := [][]byte{{}, append(good, 0), append([]byte{2}, good[1:]...), append([]byte{1, 2}, good[2:]...)}
	for n := range good {
		bad = append(bad, good[:n:n])
	}
	for _, b := range bad {
		err := s.Update(t.Context(), func(tx kv.Tx) error {
			if err := tx.Put("seen", key, b); err != nil {
				return err
			}
			_, _, err := kvseen.Bind(tx).Get(k)
			return err
		})
		if err == nil {
			t.Errorf("%x is taken for a row", b)
		}
	}
}
