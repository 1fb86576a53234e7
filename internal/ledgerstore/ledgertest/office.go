package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
)

// RunOffice proves an implementation of office.Books. Each part opens new, empty
// books.
func RunOffice(t *testing.T, open func(t *testing.T) office.Books) {
	for name, part := range map[string]func(b *bookTest){
		"rows":      (*bookTest).rows,
		"ids":       (*bookTest).ids,
		"lists":     (*bookTest).lists,
		"moves":     (*bookTest).moves,
		"undo":      (*bookTest).undo,
		"one wins":  (*bookTest).oneWins,
		"no lost":   (*bookTest).noneLost,
		"read only": (*bookTest).readOnly,
	} {
		t.Run(name, func(t *testing.T) { part(&bookTest{T: t, books: open(t)}) })
	}
}

type bookTest struct {
	*testing.T
	books office.Books
}

func (b *bookTest) in(fn func(tx office.Tx) error) {
	b.Helper()
	if err := b.books.Update(context.Background(), fn); err != nil {
		b.Fatal(err)
	}
}

func (b *bookTest) put(r office.Row) {
	b.Helper()
	b.in(func(tx office.Tx) error { return tx.Put(r) })
}

// holds wants a row as it is, or, with want nil, none.
func (b *bookTest) holds(t office.Table, id string, want *office.Row) {
	b.Helper()
	err := b.books.View(context.Background(), func(tx office.Tx) error {
		r, found, err := tx.Get(t, id)
		switch {
		case want == nil && found:
			b.Errorf("row %q of %s is there: %+v", id, t, r)
		case want != nil && (!found || !same(r, *want)):
			b.Errorf("row %q of %s: %+v, %t, want %+v", id, t, r, found, *want)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func same(a, b office.Row) bool {
	return a.Table == b.Table && a.ID == b.ID && a.List == b.List && a.At == b.At && string(a.Body) == string(b.Body)
}

// list gives the ids of a list, read in pages of two.
func (b *bookTest) list(t office.Table, list string) (ids []string) {
	b.Helper()
	err := b.books.View(context.Background(), func(tx office.Tx) error {
		ids = nil
		for after := ""; ; {
			rows, next, err := tx.Page(t, list, after, 2)
			if err != nil || len(rows) == 0 {
				if next != after {
					b.Errorf("an empty page moved the cursor from %q to %q", after, next)
				}
				return err
			}
			for _, r := range rows {
				if ids = append(ids, r.ID); r.List != list || r.Table != t {
					b.Errorf("the list %q of %s has %+v", list, t, r)
				}
			}
			after = next
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

func (b *bookTest) rows() {
	r := office.Row{Table: "a", ID: "1", Body: []byte("one")}
	other := office.Row{Table: "b", ID: "1", List: "l", At: 7, Body: []byte("of b")}
	b.holds("a", "1", nil)
	for i, want := range []bool{true, false} {
		b.in(func(tx office.Tx) error {
			added, err := tx.Add(office.Row{Table: "a", ID: "1", Body: []byte([]string{"one", "two"}[i])})
			if added != want {
				b.Errorf("adding for the %d. time reports %t", i+1, added)
			}
			return err
		})
	}
	b.holds("a", "1", &r)
	b.put(other)
	b.holds("a", "1", &r)
	b.holds("b", "1", &other)
	r.Body = nil
	b.put(r)
	b.holds("a", "1", &r)
	for range 2 {
		b.in(func(tx office.Tx) error { return tx.Drop("a", "1") })
		b.holds("a", "1", nil)
	}
	b.holds("b", "1", &other)
}

// ids: any bytes are an id, none stands for another, and what does not fit is an
// error.
func (b *bookTest) ids() {
	long := strings.Repeat("i", 512)
	odd := []string{"a", "A", "a\x00", "\x00", "\xff\xfe", "'; --", "ä", "a%", long}
	for i, id := range odd {
		b.put(office.Row{Table: "t", ID: id, List: id, At: int64(i), Body: []byte(id)})
	}
	for i, id := range odd {
		b.holds("t", id, &office.Row{Table: "t", ID: id, List: id, At: int64(i), Body: []byte(id)})
		if got := b.list("t", id); !slices.Equal(got, []string{id}) {
			b.Errorf("the list %q has %q", id, got)
		}
	}
	for _, r := range []office.Row{{Table: "t"}, {ID: "1"}, {Table: "t", ID: long + "i"}, {Table: "t", ID: "1", List: long + "i"}} {
		if err := b.books.Update(context.Background(), func(tx office.Tx) error { return tx.Put(r) }); err == nil {
			b.Errorf("a row of table %q with an id of %d and a list of %d bytes was taken", r.Table, len(r.ID), len(r.List))
		}
	}
}

func (b *bookTest) lists() {
	b.in(func(tx office.Tx) error {
		for _, r := range []struct {
			id string
			at int64
		}{{"c", 20}, {"b", 20}, {"e", 1 << 62}, {"a", 30}, {"B", 20}, {"d", -5}} {
			if err := tx.Put(office.Row{Table: "t", ID: r.id, List: "l", At: r.at}); err != nil {
				return err
			}
		}
		_, err := tx.Add(office.Row{Table: "t", ID: "f", List: "ll", At: 20})
		return errors.Join(err, tx.Put(office.Row{Table: "t", ID: "g", At: 20}), tx.Put(office.Row{Table: "u", ID: "h", List: "l", At: 20}))
	})
	if got, want := b.list("t", "l"), []string{"d", "B", "b", "c", "a", "e"}; !slices.Equal(got, want) {
		b.Errorf("the list has %q, want %q", got, want)
	}
	if got := b.list("t", "ll"); !slices.Equal(got, []string{"f"}) {
		b.Errorf("the other list has %q", got)
	}
	if got := b.list("t", "none"); got != nil {
		b.Errorf("a list of nothing has %q", got)
	}
	err := b.books.View(context.Background(), func(tx office.Tx) error {
		for _, cursor := range []string{"no cursor", "00", "zz"} {
			if _, _, err := tx.Page("t", "l", cursor, 1); !errors.Is(err, office.ErrCursor) {
				b.Errorf("page after %q: %v, want ErrCursor", cursor, err)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// moves: a row that is put anew leaves its old place in a list.
func (b *bookTest) moves() {
	for _, r := range []office.Row{{List: "l", At: 3}, {List: "l", At: 1}, {List: "m", At: 1}, {}, {List: "l", At: 9}} {
		r.Table, r.ID = "t", "1"
		b.put(r)
		b.holds("t", "1", &r)
		for _, l := range []string{"l", "m"} {
			if got := b.list("t", l); (len(got) == 1) != (r.List == l) || len(got) > 1 {
				b.Errorf("put into %q at %d: the list %q has %q", r.List, r.At, l, got)
			}
		}
	}
	b.in(func(tx office.Tx) error { return tx.Drop("t", "1") })
	if got := b.list("t", "l"); got != nil {
		b.Errorf("a dropped row stands in its list: %q", got)
	}
}

// undo: a row of the seen table and the work it stands for come and go together.
func (b *bookTest) undo() {
	p := seen.Policy{Endpoint: "orders", OnRepeat: seen.Echo, Remember: time.Hour}
	r := seen.Request{Key: seen.Key{Endpoint: "orders", Scope: "s", ID: "k"}, At: time.Unix(1e9, 0), Holder: "h"}
	work := office.Row{Table: "t", ID: "1", List: "l", Body: []byte("work")}
	no := errors.New("no")
	for _, end := range []error{no, nil} {
		err := b.books.Update(context.Background(), func(tx office.Tx) error {
			a, err := tx.Seen().Claim(p, r)
			if err != nil || a.Outcome != seen.Won {
				return fmt.Errorf("outcome %d: %w", a.Outcome, err)
			}
			if _, err := tx.Seen().Finish(r.Key, "h", []byte("result")); err != nil {
				return err
			}
			return errors.Join(tx.Put(work), end)
		})
		if !errors.Is(err, end) {
			b.Fatal(err)
		}
		if end != nil {
			b.holds("t", "1", nil)
		}
	}
	b.holds("t", "1", &work)
	b.in(func(tx office.Tx) error {
		a, err := tx.Seen().Claim(p, r)
		if a.Outcome != seen.Echoed || string(a.Row.Result) != "result" {
			b.Errorf("a repeat: %+v", a)
		}
		return err
	})
}

// oneWins: of many who add one row at once, one does.
func (b *bookTest) oneWins() {
	const rounds, at = 10, 8
	for n := range rounds {
		var won atomic.Int32
		b.together(at, func(i int) error {
			added := false
			err := b.books.Update(context.Background(), func(tx office.Tx) (err error) {
				added, err = tx.Add(office.Row{Table: "t", ID: fmt.Sprint(n), Body: []byte{byte(i)}})
				return err
			})
			if added && err == nil {
				won.Add(1)
			}
			return err
		})
		if won.Load() != 1 {
			b.Fatalf("round %d: %d added the row", n, won.Load())
		}
	}
}

// noneLost: what a transaction read of a row stays true until it is committed.
func (b *bookTest) noneLost() {
	const each, at = 20, 8
	b.put(office.Row{Table: "t", ID: "count", Body: []byte("0")})
	b.together(at, func(int) error {
		for range each {
			if err := b.books.Update(context.Background(), increment); err != nil {
				return err
			}
		}
		return nil
	})
	b.holds("t", "count", &office.Row{Table: "t", ID: "count", Body: []byte(fmt.Sprint(each * at))})
}

func increment(tx office.Tx) error {
	r, _, err := tx.Get("t", "count")
	if err != nil {
		return err
	}
	n := 0
	if _, err := fmt.Sscan(string(r.Body), &n); err != nil {
		return err
	}
	r.Body = []byte(fmt.Sprint(n + 1))
	return tx.Put(r)
}

func (b *bookTest) together(n int, fn func(i int) error) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := fn(i); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func (b *bookTest) readOnly() {
	err := b.books.View(context.Background(), func(tx office.Tx) error { return tx.Put(office.Row{Table: "t", ID: "1"}) })
	if err == nil {
		b.Error("a view wrote")
	}
	b.holds("t", "1", nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, run := range map[string]func(context.Context, func(office.Tx) error) error{"view": b.books.View, "update": b.books.Update} {
		if err := run(ctx, func(office.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			b.Errorf("%s after the end: %v, want its error", name, err)
		}
	}
}
