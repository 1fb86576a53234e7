package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/ledgerstore/tables"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// everything fills a store on memory by a ledger at work, and with what only
// trouble brings.
func everything(t *testing.T) (*kv.Mem, *ledgerstore.Store, []*gate) {
	t.Helper()
	ctx := t.Context()
	mem := kv.NewMem()
	store := ledgerstore.New(mem)
	l, err := ledger.New(store, ledger.Options{
		Process: "old", Now: time.Now, Log: discard(), ProgrammeKey: key(),
		DeviceID: func(k string) (ticket.Source, error) { return ticket.Source(strings.ToLower(k)), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	push(t, l)
	gs := []*gate{{src: "g1"}, {src: "g2"}}
	for n := range 60 {
		for i, g := range gs {
			c := g.claim(unitOf(n))
			if n%3 == i {
				if _, err := g.ask(l, c); err != nil {
					t.Fatal(err)
				}
			}
			if n%2 == 0 {
				g.revise(c, ticket.Admitted)
			}
		}
	}
	gs[1].log = append(gs[1].log, []byte("no record"))
	for _, g := range gs {
		if _, err := g.upload(l); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Hello(ctx, g.src, ledger.Hello{Place: "North\x00"}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.EnrolGate(ctx, "place "+string(g.src), strings.ToUpper(string(g.src)), ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
	}
	u := unitOf(1)
	l.Heard("g1", ledger.Head{Run: 9, Time: 1})
	err = errors.Join(l.Revoke(ctx, u.Format, u.Ticket, true, "ops"), store.Update(ctx, odd), store.Books().Update(ctx, oddRows))
	if err != nil {
		t.Fatal(err)
	}
	return mem, store, gs
}

// odd writes rows that have all that a row can have.
func odd(tx ledger.Tx) error {
	s := ticket.Stream{Source: "g9", Run: 1<<64 - 1}
	forgotten := seen.Policy{Endpoint: "hook", OnRepeat: seen.Refuse, Remember: time.Hour}
	k := seen.Key{Endpoint: "hook", Scope: "\x00\xff", ID: "\xff\x00"}
	_, err1 := tx.Seen().Claim(forgotten, seen.Request{Key: k, At: time.Unix(1e9, 1), Holder: "h\x00", Place: "ä", Fingerprint: []byte{0, 1}})
	_, err2 := tx.Seen().Finish(k, "h\x00", []byte{2, 0})
	_, err3 := tx.Seen().Claim(forgotten, seen.Request{Key: seen.Key{Endpoint: "hook"}, At: time.Unix(1e9, 0)})
	_, err4 := tx.PutRecord(s, 1<<63+2, ledger.Kept{Raw: []byte("far"), Aside: true})
	return errors.Join(err1, err2, err3, err4,
		tx.PutStream(s, ledger.StreamRow{High: 1 << 63, Top: 1<<63 + 2, Head: 1<<64 - 1, Base: 100, Lost: 1000, Aside: 1}),
		tx.PutLate("gone", s, 1, []byte("late")),
		tx.PutEvent("gone", ledger.EventRow{Admitted: 1, Conflicts: 2, Alarms: 3, Late: 4, Forget: 5, Closed: 6, Pruned: true, Swept: true}),
		tx.PutAlarm(ledger.Alarm{ID: "a", Kind: ledger.AlarmSensor, At: -1, Detail: "with a \x00"}))
}

func oddRows(tx office.Tx) error {
	return errors.Join(
		tx.Put(office.Row{Table: "order", ID: "\x00\xff", List: "l\x00", At: -1, Body: []byte("b\x00")}),
		tx.Put(office.Row{Table: "order", ID: "plain"}))
}

// content reads a store through the interface that the ledger and the office see.
func content(t *testing.T, s ledger.Store, books office.Books) map[string]any {
	t.Helper()
	out := map[string]any{}
	add := func(err error, v any, key ...any) {
		if err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprint(key...)] = v
	}
	err := s.View(t.Context(), func(tx ledger.Tx) error {
		var runs []ticket.Stream
		err := tx.Streams("", func(s ticket.Stream, r ledger.StreamRow) bool {
			runs = append(runs, s)
			add(nil, r, "run ", s)
			return true
		})
		for _, s := range runs {
			add(tx.Records(s, 0, func(pos uint64, k ledger.Kept) bool { add(nil, k, "record ", s, pos); return true }), nil)
		}
		for n := range 60 {
			rows, err := tx.Claims(unitOf(n))
			add(err, rows, "claims ", n)
			for _, r := range rows {
				u, ok, err := tx.ClaimUnit(r.Claim.ID)
				add(err, []any{u, ok}, "unit ", r.Claim.ID)
				k := seen.Key{Endpoint: "ask", Scope: event, ID: string(u.Key()) + r.Claim.ID.String()}
				row, found, err := tx.Seen().Get(k)
				add(err, []any{row, found}, "ask ", r.Claim.ID)
			}
			row, found, err := tx.Seen().Get(seen.Key{Endpoint: "ticket", Scope: event, ID: string(unitOf(n).Key())})
			add(err, []any{row, found}, "ticket ", n)
		}
		for _, k := range []seen.Key{{Endpoint: "hook", Scope: "\x00\xff", ID: "\xff\x00"}, {Endpoint: "hook"}} {
			row, found, err := tx.Seen().Get(k)
			add(err, []any{row, found}, k)
		}
		due, err2 := tx.Due(1<<62, 1e6)
		add(err2, due, "due")
		add(tx.Subjects("", func(n string, r ledger.SubjectRow) bool { add(nil, r, "subject ", n); return true }), nil)
		add(tx.Events(func(n string, r ledger.EventRow) bool { add(nil, r, "event ", n); return true }), nil)
		conflicts, next, err3 := tx.Conflicts("", 1000)
		add(err3, []any{conflicts, next}, "conflicts")
		alarms, next, err4 := tx.Alarms("", 1000)
		add(err4, []any{alarms, next}, "alarms")
		late, next, err5 := tx.Late("", 1000)
		add(err5, []any{late, next}, "late")
		for _, d := range []ticket.Source{"g1", "g2"} {
			g, err := tx.Gate(d)
			add(err, g, "gate ", d)
		}
		return err
	})
	add(err, nil)
	add(books.View(t.Context(), func(tx office.Tx) error {
		page, next, err := tx.Page("order", "l\x00", "", 9)
		add(err, []any{page, next}, "page")
		r, found, err := tx.Get("order", "plain")
		add(err, []any{r.List, r.At, len(r.Body), found}, "row")
		return nil
	}), nil)
	return out
}

// TestImport copies a store that has something in every table. Whoever reads the two
// finds the same; the checks of the ledger's invariants hold, and a ledger on the
// copy answers as the old one did.
func TestImport(t *testing.T) {
	_, store, gs := everything(t)
	o := pgstore.Options{URL: pgtest.Database(t), Volatile: true, Log: discard()}
	sums, err := pgstore.Import(t.Context(), o, func(row func(string, tables.Row) error) error { return store.Export(t.Context(), row) })
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables.All() {
		if sums[table.Name].Rows == 0 {
			t.Errorf("nothing was copied into %s: the test is too small", table.Name)
		}
	}
	to := open(t, o)
	want, got := content(t, store, store.Books()), content(t, to, to.Books())
	for k, v := range want {
		if !reflect.DeepEqual(got[k], v) {
			t.Errorf("%s: %+v, was %+v", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d things, were %d", len(got), len(want))
	}
	l, err := ledger.New(to, ledger.Options{Process: "new", Now: time.Now, Log: discard(), ProgrammeKey: key()})
	if err != nil {
		t.Fatal(err)
	}
	old, err := ledger.New(store, ledger.Options{Process: "old", Now: time.Now, Log: discard(), ProgrammeKey: key()})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		g := gs[n%2]
		c := ticket.Claim{ID: ticket.ClaimID{Gate: g.src, Run: gateRun, Pos: 1}, Unit: unitOf(0)}
		for pos := range g.log[:50] {
			if rec, err := ticket.DecodeRecord(g.log[pos]); err == nil && rec.Claim.Unit == unitOf(n) && rec.Claim.Rev == 0 {
				c = *rec.Claim
			}
		}
		was, err1 := g.ask(old, c)
		is, err2 := g.ask(l, c)
		if is.Answer != was.Answer || errors.Join(err1, err2) != nil {
			t.Errorf("asked about %s: %q, was %q (%v, %v)", c.ID, is.Answer, was.Answer, err1, err2)
		}
	}
	ledgertest.Check(t, to)
}

// TestImportOfNothing: where an import fails, whatever the reason, nothing of it
// stays, and the next one finds the database as empty.
func TestImportOfNothing(t *testing.T) {
	mem, store, _ := everything(t)
	url := pgtest.Database(t)
	o := pgstore.Options{URL: url, Volatile: true, Log: discard()}
	all := func(row func(string, tables.Row) error) error { return store.Export(t.Context(), row) }
	conn := connect(t, url)
	defer conn.Close(context.Background())
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	boom := errors.New("boom")
	fails := func(name string, want error, source func(func(string, tables.Row) error) error) {
		t.Helper()
		if _, err := pgstore.Import(t.Context(), o, source); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, table := range tables.All() {
			var n int
			if err := conn.QueryRow(t.Context(), "select count(*) from "+table.Name+"").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows in %s, %v", name, n, table.Name, err)
			}
		}
	}
	fails("a source that ends", boom, func(row func(string, tables.Row) error) error { return errors.Join(all(row), boom) })
	fails("a row twice", nil, func(row func(string, tables.Row) error) error { return errors.Join(all(row), all(row)) })
	fails("an unknown table", nil, func(row func(string, tables.Row) error) error { return row("none", tables.Row{"x"}) })
	exec("create function bend() returns trigger language plpgsql as $$ begin new.body := new.body || '\\x00'; return new; end $$")
	exec("create trigger bend before insert on alarm for each row execute function bend()")
	fails("a database that writes something else", pgstore.ErrDifferent, all)
	exec("drop trigger bend on alarm")
	exec("create function lose() returns trigger language plpgsql as $$ begin return null; end $$")
	exec("create trigger lose before insert on seen for each row when (new.endpoint = 'hook') execute function lose()")
	fails("a database that loses a row", pgstore.ErrDifferent, all)
	exec("drop trigger lose on seen")
	damaged := mem.Copy()
	if err := damaged.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("alarm", []byte("x"), []byte{0xff}) }); err != nil {
		t.Fatal(err)
	}
	fails("a source with a damaged row", kv.ErrCorrupt, func(row func(string, tables.Row) error) error {
		return ledgerstore.New(damaged).Export(t.Context(), row)
	})
	if _, err := pgstore.Import(t.Context(), o, all); err != nil {
		t.Fatalf("an import after all that: %v", err)
	}
	if _, err := pgstore.Import(t.Context(), o, all); !errors.Is(err, pgstore.ErrNotEmpty) {
		t.Errorf("a second import: %v", err)
	}
}
