package pgseen_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/ledgerstore/pgschema"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
	"admitone/internal/seen/pgseen"
	"admitone/internal/seen/seentest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open gives a pool on a migrated database. Each setting is NAME=VALUE, for all its
// connections.
func open(t testing.TB, url string, conns int32, settings ...string) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := pgschema.Up(t.Context(), c.ConnConfig, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	c.MaxConns = conns
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		c.ConnConfig.RuntimeParams[name] = value
	}
	p, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func exec(t testing.TB, p *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := p.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// store is the table in transactions of pgx.
func store(p *pgxpool.Pool) seentest.Func {
	return func(ctx context.Context, fn func(seen.Tx) error) error {
		return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error { return fn(pgseen.On(ctx, tx)) })
	}
}

func TestTable(t *testing.T) {
	p := open(t, pgtest.Database(t), 16)
	seentest.Run(t, func(t *testing.T) seentest.Store {
		exec(t, p, "delete from seen")
		return store(p)
	})
}

// TestSendsTogether: within a transaction a claim is one way to the server, and what
// is known of a row that the transaction wrote is not asked again.
func TestSendsTogether(t *testing.T) {
	p := open(t, pgtest.Database(t), 2)
	ctx := context.Background()
	err := pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
		c := &counting{ctx: ctx, tx: tx}
		table := pgseen.Bind(c)
		r := request("a", "h", start)
		_, err1 := table.Claim(policy, r)
		_, err2 := table.Claim(policy, r)
		_, err3 := table.Finish(r.Key, "h", []byte("done"))
		row, found, err4 := table.Get(r.Key)
		if c.sent != 1 || !found || string(row.Result) != "done" {
			t.Errorf("%d batches were sent, the row is %+v, %t", c.sent, row, found)
		}
		return errors.Join(err1, err2, err3, err4)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store(p)(ctx, func(tx seen.Tx) error {
		row, found, err := tx.Get(seen.Key{Endpoint: "hook", ID: "a"})
		if !found || string(row.Result) != "done" {
			t.Errorf("stored is %+v, %t", row, found)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// counting counts the ways to the server; what is put off goes with the next.
type counting struct {
	ctx  context.Context
	tx   pgx.Tx
	sent int
}

func (c *counting) Send(b *pgx.Batch) error {
	c.sent++
	return c.tx.SendBatch(c.ctx, b).Close()
}

func (c *counting) Later(b *pgx.Batch) error { return c.tx.SendBatch(c.ctx, b).Close() }

var (
	start  = time.Date(2026, 11, 30, 18, 55, 0, 123456789, time.UTC)
	policy = seen.Policy{Endpoint: "hook", OnRepeat: seen.Refuse, Remember: time.Hour}
)

func request(id, holder string, at time.Time) seen.Request {
	return seen.Request{Key: seen.Key{Endpoint: "hook", ID: id}, At: at, Place: "place of " + holder, Holder: holder}
}

// TestTimeoutIsNoAnswer: who has to wait too long for another's claim is told
// nothing, neither won nor seen, by the table and by the front alike.
func TestTimeoutIsNoAnswer(t *testing.T) {
	for _, setting := range []string{"lock_timeout=50ms", "statement_timeout=50ms"} {
		t.Run(setting, func(t *testing.T) {
			ctx := context.Background()
			url := pgtest.Database(t)
			holding, err := open(t, url, 2).Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer holding.Rollback(ctx)
			if a, err := pgseen.On(ctx, holding).Claim(policy, request("a", "h1", start)); err != nil || a.Outcome != seen.Won {
				t.Fatalf("%+v, %v", a, err)
			}
			p := open(t, url, 4, setting)
			front := pgseen.NewFront(p)
			claims := map[string]func(r seen.Request) (seen.Answer, error){
				"front": func(r seen.Request) (seen.Answer, error) { return front.Claim(ctx, policy, r) },
				"table": func(r seen.Request) (a seen.Answer, err error) {
					err = store(p)(ctx, func(tx seen.Tx) error { a, err = tx.Claim(policy, r); return err })
					return a, err
				},
			}
			for name, claim := range claims {
				a, err := claim(request("a", name, start))
				var pe *pgconn.PgError
				if a.Outcome != 0 || !errors.As(err, &pe) || pe.Code != "55P03" && pe.Code != "57014" {
					t.Errorf("%s: %+v, %v", name, a, err)
				}
			}
			if err := holding.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			for name, claim := range claims {
				if a, err := claim(request("a"+name, name, start)); err != nil || a.Outcome != seen.Won {
					t.Errorf("%s, when nobody holds the key: %+v, %v", name, a, err)
				}
			}
		})
	}
}

// TestPruneWaitsForNobody: a row that somebody is just taking over is left alone,
// and is not forgotten after it is the new holder's.
func TestPruneWaitsForNobody(t *testing.T) {
	ctx := context.Background()
	p := open(t, pgtest.Database(t), 4, "lock_timeout=10s")
	later := start.Add(2 * time.Hour)
	for _, id := range []string{"a", "b"} {
		if _, err := pgseen.NewFront(p).Claim(ctx, policy, request(id, "h1", start)); err != nil {
			t.Fatal(err)
		}
	}
	prune := func() (n int) {
		err := store(p)(ctx, func(tx seen.Tx) (err error) { n, err = tx.Prune("hook", later, 9); return err })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := store(p)(ctx, func(tx seen.Tx) error {
		a, err := tx.Claim(policy, request("a", "h2", later))
		if a.Outcome != seen.Won {
			t.Errorf("a claim after the window: %+v", a)
		}
		if n := prune(); n != 1 {
			t.Errorf("%d rows pruned beside a takeover, want the other one", n)
		}
		return err
	})
	if n := prune(); n != 0 || err != nil {
		t.Errorf("%d rows pruned after it, %v", n, err)
	}
}

// TestRaces: 50 claim one key at once, over many keys, half of them by the front
// and half in transactions of their own, on rows that are new or too old. One of
// each 50 wins, the others are told of it.
func TestRaces(t *testing.T) {
	const racers, keys = 50, 40
	ctx := context.Background()
	p := open(t, pgtest.Database(t), 20)
	front := pgseen.NewFront(p)
	for _, at := range []time.Time{start, start.Add(policy.Remember)} {
		for k := range keys {
			var won atomic.Int32
			var wg sync.WaitGroup
			answers := make([]seen.Answer, racers)
			for i := range racers {
				wg.Go(func() {
					r := request(fmt.Sprint(k), fmt.Sprint(i), at)
					var a seen.Answer
					var err error
					if i%2 == 0 {
						a, err = front.Claim(ctx, policy, r)
					} else {
						err = store(p)(ctx, func(tx seen.Tx) (err error) { a, err = tx.Claim(policy, r); return err })
					}
					if err != nil {
						t.Error(err)
					}
					if answers[i] = a; a.Outcome == seen.Won {
						won.Add(1)
					}
				})
			}
			wg.Wait()
			if n := won.Load(); n != 1 {
				t.Fatalf("key %d at %s: %d won", k, at, n)
			}
			for _, a := range answers {
				if a.Outcome != seen.Won && a.Outcome != seen.InProgress || a.Row.Holder != answers[0].Row.Holder || !a.Row.FirstSeen.Equal(at) {
					t.Fatalf("key %d at %s: %+v", k, at, a)
				}
			}
		}
	}
}
