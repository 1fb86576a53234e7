package boltfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// TestChildEnds: what a child's end means.
func TestChildEnds(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	write(t, path, content)
	if err := inChild(t, path); err != nil {
		t.Errorf("a good file: %v", err)
	}
	err := verifyInChild(t.Context(), os.Args[0], []string{"child-hang"}, path, 50*time.Millisecond)
	if !damaged(err) {
		t.Errorf("a child that hangs: %v, want damage", err)
	}
	err = verifyInChild(t.Context(), os.Args[0], []string{"child-spin"}, path, time.Hour)
	if !damaged(err) || !strings.Contains(err.Error(), "of work") {
		t.Errorf("a child that works for ever: %v, want damage by the limit of its work", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	unsure := map[string]error{
		"cancelled":        verifyInChild(cancelled, os.Args[0], []string{"child-hang"}, path, time.Minute),
		"no program":       VerifyInChild(t.Context(), filepath.Join(t.TempDir(), "none"), nil, path),
		"no file":          inChild(t, path+".none"),
		"somebody ends it": VerifyInChild(t.Context(), "/bin/sh", []string{"-c", "kill -TERM $$"}, path),
		"it is killed":     VerifyInChild(t.Context(), "/bin/sh", []string{"-c", "kill -KILL $$"}, path),
		"it is unsure":     VerifyInChild(t.Context(), "/bin/sh", []string{"-c", "echo disk away >&2; exit 3"}, path),
	}
	for name, err := range unsure {
		if err == nil || damaged(err) {
			t.Errorf("%s: %v, want an error that is no damage", name, err)
		}
	}
	for name, script := range map[string]string{"exit": "exit 4", "fault": "kill -SEGV $$", "bus": "kill -BUS $$"} {
		if err := VerifyInChild(t.Context(), "/bin/sh", []string{"-c", script}, path); !damaged(err) {
			t.Errorf("%s: %v, want damage", name, err)
		}
	}
}

// childSpin is a check that goes round for ever.
func childSpin(string, []string) error {
	if err := confine(1<<30, time.Second); err != nil {
		return err
	}
	for {
		bytes.Count(make([]byte, 1<<10), nil)
	}
}

// TestNotOurs: files that are no damage but not for this caller, and files that
// never were a store.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	content := made(t)
	good := temp(t)
	write(t, good, content)
	other := small()
	other.Name = "other"
	newer := small()
	newer.Version = 2
	foreign := temp(t)
	db, err := bbolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		return errors.Join(err, b.Put([]byte("k"), []byte("no checksum")))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := inChild(t, foreign); err != nil {
		t.Errorf("another program's file: the child says %v", err)
	}
	var kind *KindError
	if _, err := Open(t.Context(), foreign, small()); !errors.As(err, &kind) || kind.Have != "" {
		t.Errorf("another program's file: %v", err)
	}
	if _, err := Open(t.Context(), good, other); !errors.As(err, &kind) || kind.Have != "test" || kind.Want != "other" {
		t.Errorf("another kind: %v", err)
	}
	var version *VersionError
	if _, err := Open(t.Context(), good, newer); !errors.As(err, &version) || version.Have != 1 || version.Want != 2 {
		t.Errorf("another version: %v", err)
	}
	version = &VersionError{"p", 3, 2}
	if !strings.Contains(version.Error(), "install") {
		t.Errorf("a newer file's error does not say what to do: %v", version)
	}
	empty, short, junk := temp(t), temp(t), temp(t)
	write(t, empty, nil)
	write(t, short, content[:5000])
	write(t, junk, bytes.Repeat([]byte("SQLite format 3\x00"), 2000))
	for _, path := range []string{empty, short, junk} {
		if _, err := Open(t.Context(), path, small()); !damaged(err) {
			t.Errorf("%s: %v, want damage", path, err)
		}
		if err := inChild(t, path); !damaged(err) {
			t.Errorf("%s: the child says %v", path, err)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), small()); !damaged(err) {
		t.Errorf("a directory: %v, want damage", err)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none", "f"), small()); err == nil || damaged(err) {
		t.Errorf("no directory: %v", err)
	}
	if right, _ := readAll(t, openAt(t, good, small()), "good"); right != rowsMade {
		t.Errorf("after all this %d rows are right", right)
	}
}
