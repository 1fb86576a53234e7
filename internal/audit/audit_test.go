package audit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"admitone/internal/audit"
	"admitone/internal/kv"
	"admitone/internal/ledgerstore"
	"admitone/internal/office"
)

// written gives the lines of a log that n writes were appended to.
func written(t *testing.T, n int) (books office.Books, lines []audit.Line) {
	t.Helper()
	books = ledgerstore.New(kv.NewMem()).Books()
	for i := range n {
		err := books.Update(t.Context(), func(tx office.Tx) error {
			_, err := audit.Append(tx, line(i))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return books, read(t, books)
}

func line(i int) audit.Line {
	return audit.Line{Time: "2030-06-01T18:00:00.000Z", By: "ops", Key: "k", Method: "POST", Path: fmt.Sprint("/v1/releases?", i),
		Digest: "d", Nonce: fmt.Sprint(i), Status: 200}
}

// read gives the whole log, in pages of three.
func read(t *testing.T, books office.Books) (all []audit.Line) {
	t.Helper()
	err := books.View(t.Context(), func(tx office.Tx) error {
		all = nil
		for after := ""; ; {
			lines, next, err := audit.Page(tx, after, 3)
			if err != nil || len(lines) == 0 {
				return err
			}
			all, after = append(all, lines...), next
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func verify(kept audit.Head, lines []audit.Line) (audit.Head, error) {
	v := audit.NewVerifier(kept)
	for _, l := range lines {
		if err := v.Next(l); err != nil {
			return audit.Head{}, err
		}
	}
	return v.End()
}

func TestAChangeShows(t *testing.T) {
	const n = 8
	_, lines := written(t, n)
	head, err := verify(audit.Head{}, lines)
	if err != nil || head.N != n || head.Hash != lines[n-1].Hash {
		t.Fatalf("a whole log: %v, %v", head, err)
	}
	if _, err := verify(head, lines); err != nil {
		t.Errorf("against its own head: %v", err)
	}
	_, more := written(t, n+3)
	if _, err := verify(head, more); err != nil {
		t.Errorf("a log that went on: %v", err)
	}

	changed := func(at int, change func(*audit.Line)) []audit.Line {
		out := slices.Clone(lines)
		change(&out[at])
		return out
	}
	for _, c := range []struct {
		what  string
		lines []audit.Line
		at    uint64
	}{
		{"a line taken out", slices.Delete(slices.Clone(lines), 3, 4), 4},
		{"the first taken out", lines[1:], 1},
		{"a line twice", slices.Insert(slices.Clone(lines), 3, lines[2]), 4},
		{"two in another order", append(slices.Clone(lines[:4]), append([]audit.Line{lines[5], lines[4]}, lines[6:]...)...), 5},
		{"renumbered after one was taken out", renumbered(slices.Delete(slices.Clone(lines), 3, 4)), 4},
		{"the end cut off", lines[:6], 7},
		{"all cut off", nil, 1},
		{"the last one hashed anew", append(slices.Clone(lines[:7]), rehashed(t, lines[:7], "else")), 8},
	} {
		wantBroken(t, c.what, head, c.lines, c.at)
	}
	fields := reflect.TypeFor[audit.Line]()
	for i := range fields.NumField() {
		got := changed(4, func(l *audit.Line) {
			switch f := reflect.ValueOf(l).Elem().Field(i); f.Kind() {
			case reflect.String:
				f.SetString(f.String() + "x")
			case reflect.Uint64:
				f.SetUint(f.Uint() + 1)
			default:
				f.SetInt(f.Int() + 1)
			}
		})
		wantBroken(t, "another "+fields.Field(i).Name, audit.Head{}, got, 5)
	}
	// What moves from one field to the next must not hash the same.
	wantBroken(t, "a moved byte", audit.Head{}, changed(2, func(l *audit.Line) { l.Method, l.Path = "POS", "T"+l.Path }), 3)
}

func wantBroken(t *testing.T, what string, kept audit.Head, lines []audit.Line, at uint64) {
	t.Helper()
	_, err := verify(kept, lines)
	var broken *audit.BrokenError
	if !errors.As(err, &broken) || broken.N != at {
		t.Errorf("%s: %v, want line %d named", what, err, at)
	}
}

func renumbered(lines []audit.Line) []audit.Line {
	for i := range lines {
		lines[i].N = uint64(i + 1)
	}
	return lines
}

// rehashed is another last line that fits those before it: only a head that was
// kept elsewhere tells it.
func rehashed(t *testing.T, before []audit.Line, by string) audit.Line {
	books, _ := written(t, len(before))
	var out audit.Line
	err := books.Update(t.Context(), func(tx office.Tx) (err error) {
		l := line(len(before))
		l.By = by
		out, err = audit.Append(tx, l)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Writers at once append to one chain.
func TestOneChainOfManyWriters(t *testing.T) {
	books, _ := written(t, 0)
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				err := books.Update(context.Background(), func(tx office.Tx) error {
					_, err := audit.Append(tx, line(w*each+i))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if head, err := verify(audit.Head{}, read(t, books)); err != nil || head.N != writers*each {
		t.Errorf("%d lines, %v; want %d", head.N, err, writers*each)
	}
}

func TestHeadsAreReadAsTheyAreWritten(t *testing.T) {
	_, lines := written(t, 2)
	for _, h := range []audit.Head{{}, {N: 2, Hash: lines[1].Hash}} {
		if got, err := audit.ParseHead(h.String()); err != nil || got != h {
			t.Errorf("%s is read as %v, %v", h, got, err)
		}
	}
	for _, s := range []string{"", "1", "1:", "x:" + lines[0].Hash, "1:" + strings.Repeat("z", 64), "0:" + lines[0].Hash, "1:" + lines[0].Hash + "00"} {
		if _, err := audit.ParseHead(s); err == nil {
			t.Errorf("%q is read as a head", s)
		}
	}
}
