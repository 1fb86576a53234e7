package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
)

func mount(t *testing.T, o Options) *Disk {
	t.Helper()
	d, err := Mount(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(filepath.Join(d.Dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// told gives events as text.
func told(l *Log) (out []string) {
	names := map[Kind]string{Write: "write", Truncate: "truncate", Create: "create", Rename: "rename", Unlink: "unlink", Flush: "flush", FlushDir: "flushdir"}
	for _, e := range l.Recording("").Events {
		out = append(out, fmt.Sprintf("%s %d %s %s %d %s %d", names[e.Kind], e.File, e.Path, e.To, e.Off, e.Data, e.Upto))
	}
	return out
}

// work does one of everything to files.
func work(dir string) error {
	p := filepath.Join(dir, "a")
	f, err := os.Create(p)
	if err != nil {
		return err
	}
	_, err1 := f.WriteString("hello")
	err2 := f.Sync()
	_, err3 := f.WriteAt([]byte("j"), 0)
	err = errors.Join(err1, err2, err3, f.Truncate(3), f.Close(), os.Link(p, p+"1"), os.Rename(p, p+"2"))
	d, err4 := os.Open(dir)
	if err4 != nil {
		return err4
	}
	return errors.Join(err, d.Sync(), d.Close(), os.Remove(p+"2"), os.WriteFile(p+"1", []byte("x"), 0o600))
}

// TestDiskTellsAll: each change is told, in its order, and is done.
func TestDiskTellsAll(t *testing.T) {
	log := &Log{}
	d := mount(t, Options{Log: log})
	if err := work(filepath.Join(d.Dir, "data")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create 1 data/a  0  0", "write 1   0 hello 0", "flush 1   0  2", "write 1   0 j 0", "truncate 1   3  0",
		"create 1 data/a1  0  0", "rename 1 data/a data/a2 0  0", "flushdir 0 data  0  7", "unlink 0 data/a2  0  0",
		"truncate 1   0  0", "write 1   0 x 0",
	}
	if got := told(log); !slices.Equal(got, want) {
		t.Errorf("told:\n%q\nwant:\n%q", got, want)
	}
	if b, err := os.ReadFile(d.Back("data", "a1")); err != nil || string(b) != "x" {
		t.Errorf("the file holds %q (%v)", b, err)
	}
}

// TestDiskFails: each kind of call can be made to fail, and does nothing then.
func TestDiskFails(t *testing.T) {
	for _, name := range []string{"create", "write", "truncate", "fsync", "flushdir", "rename", "link", "unlink", "open"} {
		log := &Log{}
		d := mount(t, Options{Log: log})
		var failed atomic.Int64
		d.SetFault(func(c Call) syscall.Errno {
			if c.Name != name {
				return 0
			}
			failed.Add(1)
			return syscall.EIO
		})
		if err := work(filepath.Join(d.Dir, "data")); !errors.Is(err, syscall.EIO) || failed.Load() == 0 {
			t.Errorf("%s: %v, asked %d times", name, err, failed.Load())
		}
		for _, e := range told(log) {
			if len(e) > len(name) && e[:len(name)+1] == name+" " {
				t.Errorf("%s failed, and was done: %s", name, e)
			}
		}
	}
}

// TestLossyDisk: what a flush that failed was to flush is shown, and is not there.
func TestLossyDisk(t *testing.T) {
	d := mount(t, Options{Lossy: true})
	p := filepath.Join(d.Dir, "data", "a")
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, after := bytes.Repeat([]byte("o"), pageSize), bytes.Repeat([]byte("n"), pageSize) // a whole page, or it is not kept
	_, err1 := f.Write(before)
	err2 := f.Sync()
	_, err3 := f.WriteAt(after, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	d.SetFault(func(c Call) syscall.Errno {
		if c.Name == "fsync" {
			return syscall.EIO
		}
		return 0
	})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("flush: %v", err)
	}
	shown, err1 := os.ReadFile(p)
	there, err2 := os.ReadFile(d.Back("data", "a"))
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(shown, after) || !bytes.Equal(there, before) {
		t.Errorf("shown is %.4q…, there is %.4q… (%v)", shown, there, err)
	}
}

// TestStatesOfAFile holds the states of a file against what is known of it: what was
// flushed is there, of the rest any part.
func TestStatesOfAFile(t *testing.T) {
	rec := Recording{Events: []Event{
		{Kind: Create, File: 1, Path: "data/a"},
		{Kind: Write, File: 1, Data: []byte("11")},
		{Kind: Flush, File: 1, Upto: 2},
		{Kind: FlushDir, Path: "data", Upto: 3},
		{Kind: Write, File: 1, Off: 2, Data: []byte("22")},
		{Kind: Write, File: 1, Off: 4, Data: []byte("33")},
		{Kind: Create, File: 2, Path: "data/b"},
	}}
	var got []string
	for _, s := range Enumerate(rec, "data", 1, 4, len(rec.Events)) {
		dir := filepath.Join(t.TempDir(), "s")
		if err := NewReplay(rec).Volume(s).Store("data", dir); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(dir, "b"))
		got = append(got, fmt.Sprintf("%q %t", a, err == nil))
	}
	slices.Sort(got)
	want := []string{
		`"11" false`, `"11" true`, `"1122" false`, `"1122" true`, `"112233" false`, `"112233" true`, `"11\x00\x0033" false`, `"11\x00\x0033" true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("states %q, want %q", got, want)
	}
}
