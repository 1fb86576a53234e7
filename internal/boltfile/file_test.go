package boltfile

import (
	"context"
	"path/filepath"
	"testing"

	"admitone/internal/kv"
	"admitone/internal/kv/kvtest"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/seen/seentest"
)

func options() Options { return Options{Name: "test", Version: 1, MaxSize: 8 << 20} }

func openAt(t *testing.T, path string, o Options) *File {
	t.Helper()
	f, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func temp(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") }

func reopen(t *testing.T, s kv.Store) kv.Store {
	path := s.(*File).db.Path()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return unflushed(t, path)
}

// unflushed opens a store that leaves out the flushes, for suites of thousands of
// commits: that a commit is flushed, and what a failing flush does, is what the
// tests under strace are about.
func unflushed(t *testing.T, path string) *File {
	t.Helper()
	f := openAt(t, path, options())
	f.db.NoSync = true
	return f
}

func TestStore(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) kv.Store { return unflushed(t, temp(t)) }, reopen)
}

func TestSeen(t *testing.T) {
	t.Parallel()
	seentest.Run(t, func(t *testing.T) seentest.Store {
		f := unflushed(t, temp(t))
		return seentest.Func(func(ctx context.Context, fn func(seen.Tx) error) error {
			return f.Update(ctx, func(tx kv.Tx) error { return fn(kvseen.Bind(tx)) })
		})
	})
}
