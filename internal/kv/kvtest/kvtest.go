// Package kvtest is the suite that every kv.Store passes: what a transaction
// reads, what an undo leaves, what callers who share a commit may and may not
// notice of each other, and what is there after the store was opened again.
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"admitone/internal/kv"
)

// Run runs the suite. open gives an empty store; reopen ends a store it is given
// the hard way the implementation knows (a crash, else Close) and opens it again.
// The suite closes what it got.
func Run(t *testing.T, open func(t *testing.T) kv.Store, reopen func(t *testing.T, s kv.Store) kv.Store) {
	for name, test := range map[string]func(*testing.T, kv.Store){
		"Values":     testValues,
		"Limits":     testLimits,
		"Scan":       testScan,
		"Slices":     testSlices,
		"ReadOnly":   testReadOnly,
		"Snapshot":   testSnapshot,
		"Undo":       testUndo,
		"Panic":      testPanic,
		"Cancelled":  testCancelled,
		"Counter":    testCounter,
		"Neighbours": testNeighbours,
		"Closed":     testClosed,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			test(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	t.Run("Reopen", func(t *testing.T) { testReopen(t, open(t), reopen) })
	t.Run("Model", func(t *testing.T) { testModel(t, open, reopen) })
}

func update(t *testing.T, s kv.Store, fn func(tx kv.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func view(t *testing.T, s kv.Store, fn func(tx kv.Tx) error) {
	t.Helper()
	if err := s.View(fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// want checks one value; nil stands for absent.
func want(t *testing.T, tx kv.Tx, bucket, key string, value []byte) {
	t.Helper()
	got, err := tx.Get(bucket, []byte(key))
	if err != nil || (got == nil) != (value == nil) || string(got) != string(value) {
		t.Errorf("get %s/%s: %q, %v; want %q", bucket, key, got, err, value)
	}
}

// pairs gives what a scan yields as "key=value".
func pairs(tx kv.Tx, bucket, prefix string, from []byte, limit int) ([]string, error) {
	var out []string
	err := tx.Scan(bucket, []byte(prefix), from, func(k, v []byte) (bool, error) {
		out = append(out, fmt.Sprintf("%s=%s", k, v))
		return len(out) != limit, nil
	})
	return out, err
}

func testValues(t *testing.T, s kv.Store) {
	look := func(tx kv.Tx) error {
		want(t, tx, "a", "k", []byte("two"))
		want(t, tx, "b", "k", []byte{})
		want(t, tx, "a", "gone", nil)
		want(t, tx, "none", "k", nil)
		return nil
	}
	update(t, s, func(tx kv.Tx) error {
		return errors.Join(
			tx.Put("a", []byte("k"), []byte("one")),
			tx.Put("a", []byte("k"), []byte("two")),
			tx.Put("b", []byte("k"), nil),
			tx.Put("a", []byte("gone"), []byte("x")),
			tx.Delete("a", []byte("gone")),
			tx.Delete("a", []byte("never")),
			tx.Delete("none", []byte("never")),
			look(tx))
	})
	view(t, s, look)
}

func testLimits(t *testing.T, s kv.Store) {
	long := make([]byte, kv.MaxKey+1)
	update(t, s, func(tx kv.Tx) error { return tx.Put("a", long[1:], []byte("x")) })
	view(t, s, func(tx kv.Tx) error {
		want(t, tx, "a", string(long[1:]), []byte("x"))
		return nil
	})
	for name, fn := range map[string]func(tx kv.Tx) error{
		"long key":     func(tx kv.Tx) error { return tx.Put("a", long, nil) },
		"no key":       func(tx kv.Tx) error { return tx.Put("a", nil, nil) },
		"no bucket":    func(tx kv.Tx) error { return tx.Put("", []byte("k"), nil) },
		"get no key":   func(tx kv.Tx) error { _, err := tx.Get("a", nil); return err },
		"delete none":  func(tx kv.Tx) error { return tx.Delete("a", []byte{}) },
		"scan nowhere": func(tx kv.Tx) error { _, err := pairs(tx, "", "", nil, 0); return err },
	} {
		if err := s.Update(context.Background(), fn); !errors.Is(err, kv.ErrKey) {
			t.Errorf("%s: %v, want ErrKey", name, err)
		}
	}
}

func testScan(t *testing.T, s kv.Store) {
	keys := []string{"a", "a\x00", "ab", "abc", "b", "b\xff", "b\xff\xff", "c"}
	update(t, s, func(tx kv.Tx) error {
		for i := range keys { // from the last to the first: the order is the store's work
			k := keys[len(keys)-1-i]
			if err := tx.Put("s", []byte(k), []byte("v")); err != nil {
				return err
			}
		}
		return tx.Put("t", []byte("aa"), []byte("other bucket"))
	})
	for _, c := range []struct {
		prefix string
		from   []byte
		limit  int
		want   []string
	}{
		{"", nil, 0, keys},
		{"", []byte("abc"), 0, keys[3:]},
		{"", []byte("abb"), 0, keys[3:]},
		{"a", nil, 0, keys[:4]},
		{"a", []byte("ab"), 0, keys[2:4]},
		{"a", []byte("Z"), 0, keys[:4]},
		{"a", []byte("b"), 0, nil},
		{"b\xff", nil, 0, keys[5:7]},
		{"", nil, 3, keys[:3]},
		{"d", nil, 0, nil},
	} {
		look := func(tx kv.Tx) error {
			got, err := pairs(tx, "s", c.prefix, c.from, c.limit)
			var wanted []string
			for _, k := range c.want {
				wanted = append(wanted, k+"=v")
			}
			if fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Errorf("scan %q from %q limit %d: %q, want %q", c.prefix, c.from, c.limit, got, wanted)
			}
			return err
		}
		view(t, s, look)
		update(t, s, look)
	}
	boom := errors.New("boom")
	err := s.View(func(tx kv.Tx) error {
		return tx.Scan("s", nil, nil, func(_, _ []byte) (bool, error) { return true, boom })
	})
	if !errors.Is(err, boom) {
		t.Errorf("scan gave %v, want the function's error", err)
	}
}

// testSlices holds the store to its promise that memory given or taken is nobody
// else's: a caller may scribble on it, and keep it past the transaction.
func testSlices(t *testing.T, s kv.Store) {
	key, value := []byte("key"), []byte("value")
	var kept [][]byte
	update(t, s, func(tx kv.Tx) error {
		err := tx.Put("a", key, value)
		key[0], value[0] = 'X', 'X'
		return err
	})
	view(t, s, func(tx kv.Tx) error {
		got, err := tx.Get("a", []byte("key"))
		kept = append(kept, got)
		return errors.Join(err, tx.Scan("a", nil, nil, func(k, v []byte) (bool, error) {
			kept = append(kept, k, v)
			return true, nil
		}))
	})
	if got := fmt.Sprintf("%s", kept); got != "[value key value]" {
		t.Errorf("kept %s", got)
	}
	for _, b := range kept {
		for i := range b {
			b[i] = '?'
		}
	}
	view(t, s, func(tx kv.Tx) error {
		want(t, tx, "a", "key", []byte("value"))
		return nil
	})
}

func testReadOnly(t *testing.T, s kv.Store) {
	k := []byte("k")
	put := func(tx kv.Tx) error { return tx.Put("a", k, k) }
	del := func(tx kv.Tx) error { return tx.Delete("a", k) }
	inScan := func(fn func(tx kv.Tx) error) func(tx kv.Tx) error {
		return func(tx kv.Tx) error {
			return errors.Join(put(tx), tx.Scan("a", nil, nil, func(_, _ []byte) (bool, error) { return true, fn(tx) }))
		}
	}
	for name, err := range map[string]error{
		"put in view":    s.View(put),
		"delete in view": s.View(del),
		"put in scan":    s.Update(context.Background(), inScan(put)),
		"delete in scan": s.Update(context.Background(), inScan(del)),
	} {
		if !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	var late []kv.Tx
	keep := func(tx kv.Tx) error { late = append(late, tx); return nil }
	view(t, s, keep)
	update(t, s, keep)
	for _, tx := range late {
		_, err := tx.Get("a", k)
		_, serr := pairs(tx, "a", "", nil, 0)
		for _, err := range []error{err, serr, put(tx), del(tx)} {
			if !errors.Is(err, kv.ErrTxDone) {
				t.Errorf("use after the end: %v, want ErrTxDone", err)
			}
		}
	}
}

// testSnapshot writes while a View is open, which must go on seeing what was.
func testSnapshot(t *testing.T, s kv.Store) {
	put := func(v string) {
		update(t, s, func(tx kv.Tx) error { return tx.Put("a", []byte("k"), []byte(v)) })
	}
	put("old")
	begun, written := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.View(func(tx kv.Tx) error {
			want(t, tx, "a", "k", []byte("old"))
			close(begun)
			<-written
			want(t, tx, "a", "k", []byte("old"))
			return nil
		})
	}()
	<-begun
	put("new")
	close(written)
	if err := <-done; err != nil {
		t.Errorf("view: %v", err)
	}
	view(t, s, func(tx kv.Tx) error {
		want(t, tx, "a", "k", []byte("new"))
		return nil
	})
}
