package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
)

const rowsMade = 300

// small are options for a file that is opened often: the race detector walks the
// whole mapping each time.
func small() Options { return Options{Name: "test", Version: 1, MaxSize: 1 << 20} }

func rowKey(i int) []byte { return fmt.Appendf(nil, "key %04d", i) }

func rowValue(i int) []byte {
	return fmt.Appendf(nil, "value %04d %s", i, strings.Repeat(string(rune('a'+i%26)), 60))
}

// made gives the bytes of a good file with rowsMade rows, each written once, on
// several levels of pages.
func made(t *testing.T) []byte {
	t.Helper()
	path := temp(t)
	f, err := Open(t.Context(), path, small())
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < rowsMade; from += rowsMade / 3 {
		err = f.Update(t.Context(), func(tx kv.Tx) error {
			for i := range rowsMade / 3 {
				if err := tx.Put("rows", rowKey(from+i), rowValue(from+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// used is where the pages that the newest meta page knows of end.
func used(t *testing.T, content []byte) int {
	t.Helper()
	at := func(page int) (txid, pages uint64) { // see bbolt's Meta: pgid and txid behind a 16-byte page header
		m := content[page*pageSize+16:]
		return binary.LittleEndian.Uint64(m[48:]), binary.LittleEndian.Uint64(m[40:])
	}
	id0, n0 := at(0)
	id1, n1 := at(1)
	if id1 > id0 {
		n0 = n1
	}
	size := int(n0) * pageSize
	if size < 10*pageSize || size > len(content) {
		t.Fatalf("the file's %d bytes use %d", len(content), size)
	}
	return size
}

// write gives a file this content, in place where it has this length already.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Truncate(int64(len(content))), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func inChild(t *testing.T, path string) error {
	t.Helper()
	return VerifyInChild(t.Context(), os.Args[0], []string{"child-verify"}, path)
}

func damaged(err error) bool {
	var d *DamagedError
	return errors.As(err, &d) && d.Why != "" && !strings.Contains(d.Why, "\n")
}

// readAll reads every row, by Get and by Scan, and fails where a row has another
// value than was written. It gives how many rows were right and how many damaged.
func readAll(t *testing.T, f *File, what string) (right, corrupt int) {
	t.Helper()
	err := f.View(func(tx kv.Tx) error {
		for i := range rowsMade {
			v, err := tx.Get("rows", rowKey(i))
			switch {
			case err != nil:
				corrupt++
			case v != nil && !bytes.Equal(v, rowValue(i)):
				t.Errorf("%s: row %d reads %q", what, i, v)
			case v != nil:
				right++
			}
		}
		return tx.Scan("rows", nil, nil, func(k, v []byte) (bool, error) {
			var i int
			if _, err := fmt.Sscanf(string(k), "key %d", &i); err != nil || !bytes.Equal(v, rowValue(i)) || !bytes.Equal(k, rowKey(i)) {
				t.Errorf("%s: scan gives %q = %q", what, k, v)
			}
			return true, nil
		})
	})
	if corrupt > 0 && !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("%s: scan: %v, want ErrCorrupt", what, err)
	}
	return right, corrupt
}

// TestFlippedValue flips each byte of one stored value, with its form and checksum:
// the value is damaged, all others are as they were.
func TestFlippedValue(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	value := rowValue(rowsMade - 1) // of the last commit, so that it is in the file once
	at := bytes.Index(content, value)
	if at < 0 || bytes.Count(content, value) != 1 {
		t.Fatal("the value is not in the file once")
	}
	for i := at - header; i < at+len(value); i++ {
		content[i] ^= 1 << (i % 8)
		write(t, path, content)
		f := openAt(t, path, small())
		if right, corrupt := readAll(t, f, fmt.Sprint("byte ", i-at)); right != rowsMade-1 || corrupt != 1 {
			t.Errorf("byte %d: %d rows right, %d damaged", i-at, right, corrupt)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if i%16 == 0 {
			if err := inChild(t, path); !damaged(err) {
				t.Errorf("byte %d: the child says %v", i-at, err)
			}
		}
		content[i] ^= 1 << (i % 8)
	}
}

// TestFlippedAnywhere flips bytes of an open file anywhere behind the meta pages,
// which have a checksum of their own. Rows may be missing or damaged, but nothing
// reads as what was never written, and this process lives. What reads as damaged
// is damaged for the child, too.
func TestFlippedAnywhere(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	size := used(t, content)
	r := rand.New(rand.NewPCG(1, 2))
	met := map[string]int{}
	for round := range 60 {
		write(t, path, content)
		f := openAt(t, path, small())
		bad := bytes.Clone(content)
		for range 3 {
			bad[2*pageSize+r.IntN(size-2*pageSize)] ^= 1 << r.IntN(8)
		}
		write(t, path, bad) // into the same file, which is mapped
		right, corrupt := readAll(t, f, fmt.Sprint("round ", round))
		switch {
		case corrupt > 0:
			met["corrupt"]++
		case right < rowsMade:
			met["missing"]++
		default:
			met["harmless"]++
		}
		if err := f.Close(); err != nil {
			t.Errorf("round %d: close: %v", round, err)
		}
		if err := inChild(t, path); corrupt > 0 && !damaged(err) {
			t.Errorf("round %d: the child says %v of %d damaged rows", round, err, corrupt)
		}
	}
	t.Log(met)
	if met["corrupt"] == 0 {
		t.Errorf("the flips do not reach what they should: %v", met)
	}
}

// TestTruncated cuts the file at every page and at some sectors. Where content is
// missing, the child says so, however it ends; where only unused space is missing,
// the file is good.
func TestTruncated(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	size := used(t, content)
	var cuts []int
	for n := 0; n < len(content); n += pageSize {
		cuts = append(cuts, n)
	}
	cuts = append(cuts, 512, 4096+512, 8192+1536, size/2+512, size-512)
	for _, n := range cuts {
		if n > size+2*pageSize {
			continue // more of the same
		}
		write(t, path, content[:n])
		err := inChild(t, path)
		if n < size && !damaged(err) || n >= size && err != nil {
			t.Errorf("cut at %d of %d used bytes: the child says %v", n, size, err)
		}
	}
	write(t, path, content[:size])
	if right, _ := readAll(t, openAt(t, path, small()), "cut behind the content"); right != rowsMade {
		t.Errorf("%d rows right", right)
	}
}

// TestCycle points a branch page at itself, which real power cuts have done: the
// child must come to an end within the limit.
func TestCycle(t *testing.T) {
	t.Parallel()
	content, path := made(t), temp(t)
	loops := 0
	for page := 2; page < used(t, content)/pageSize; page++ {
		p := content[page*pageSize:]
		const branch = 1
		if binary.LittleEndian.Uint16(p[8:]) != branch {
			continue
		}
		for i := range int(binary.LittleEndian.Uint16(p[10:])) {
			binary.LittleEndian.PutUint64(p[16+16*i+8:], uint64(page)) // element: u32 pos, u32 ksize, u64 page
		}
		loops++
	}
	if loops == 0 {
		t.Fatal("the file has no branch page")
	}
	write(t, path, content)
	o := small()
	o.Verify = func(ctx context.Context, path string) error {
		// bbolt's check races with itself once it has found something; the race
		// detector's word on that is for another file.
		script := `GORACE="log_path=$1" exec "$0" child-verify "$1"`
		return verifyInChild(ctx, "/bin/sh", []string{"-c", script, os.Args[0]}, path, time.Minute)
	}
	_, err := Open(t.Context(), path, o)
	if !damaged(err) || !strings.Contains(err.Error(), "page") {
		t.Fatalf("open: %v, want the page named", err)
	}
	at := time.Date(2026, 11, 30, 19, 55, 1, 2, time.FixedZone("CET", 3600))
	for _, want := range []string{".damaged-20261130T185501Z", ".damaged-20261130T185501Z-2"} {
		aside, err := SetAside(path, at)
		if err != nil || aside != path+want {
			t.Fatalf("set aside: %s, %v", aside, err)
		}
		f := openAt(t, path, o)
		if !f.Fresh() {
			t.Error("the new file is not fresh")
		}
		if _, err := SetAside(path, at); !errors.Is(err, ErrLocked) {
			t.Errorf("set aside while open: %v, want ErrLocked", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path + ".damaged-20261130T185501Z"); err != nil || !bytes.Equal(kept, content) {
		t.Errorf("the damaged file is not what it was: %v", err)
	}
}
