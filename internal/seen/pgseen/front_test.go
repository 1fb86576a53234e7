package pgseen_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/kv"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/seen/pgseen"
)

// TestFrontAnswers: the front answers as the table in memory does, call by call, over
// both policies, fingerprints, results and times that pass.
func TestFrontAnswers(t *testing.T) {
	ctx := context.Background()
	p := open(t, pgtest.Database(t), 4)
	front, mem := pgseen.NewFront(p), kv.NewMem()
	for i := range 300 {
		at := start.Add(time.Duration(i) * time.Minute)
		pol := policy
		pol.OnRepeat = []seen.Repeat{seen.Refuse, seen.Echo}[i/3%2]
		r := request(fmt.Sprint(i*i%7), fmt.Sprint(i), at)
		r.Fingerprint = [][]byte{nil, {1}, {2}}[i%3]
		if i%5 == 0 {
			r.Key.Scope = "a\x00\xff"
		}
		got, err := front.Claim(ctx, pol, r)
		var want seen.Answer
		finish := func(tx seen.Tx) error {
			if i%4 != 0 {
				return nil
			}
			_, err := tx.Finish(r.Key, got.Row.Holder, []byte("done"))
			return err
		}
		merr := mem.Update(ctx, func(tx kv.Tx) (err error) {
			want, err = kvseen.Bind(tx).Claim(pol, r)
			return errors.Join(err, finish(kvseen.Bind(tx)))
		})
		if err := errors.Join(err, merr, store(p)(ctx, finish)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("claim %d: %+v, want %+v", i, got, want)
		}
	}
	for name, c := range map[string]struct {
		p seen.Policy
		r seen.Request
	}{
		"no endpoint":      {seen.Policy{OnRepeat: seen.Echo}, seen.Request{}},
		"another endpoint": {seen.Policy{Endpoint: "order", OnRepeat: seen.Echo}, request("a", "h", start)},
		"too long":         {policy, request(string(make([]byte, 2048)), "h", start)},
	} {
		if a, err := front.Claim(ctx, c.p, c.r); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestFrontGroups: claims that come while statements are under way go together,
// each with its own answer, and a caller who leaves before its turn left nothing.
func TestFrontGroups(t *testing.T) {
	const callers = 300
	ctx := context.Background()
	p := open(t, pgtest.Database(t), 4)
	tx, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	// Two groups wait for this transaction's keys and have both turns.
	for _, id := range []string{"busy0", "busy1"} {
		if _, err := pgseen.On(ctx, tx).Claim(policy, request(id, "h", start)); err != nil {
			t.Fatal(err)
		}
	}
	front := pgseen.NewFront(p)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if a, err := front.Claim(ctx, policy, request(fmt.Sprintf("busy%d", i), "x", start)); err != nil || a.Outcome != seen.Won {
				t.Errorf("after the other's end: %+v, %v", a, err)
			}
		})
		awaitBlocked(t, p, i+1)
	}
	gone, leave := context.WithCancel(ctx)
	left := &noticed{Context: gone, entered: make(chan struct{})}
	wg.Go(func() {
		if a, err := front.Claim(left, policy, request("left", "h", start)); !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %+v, %v", a, err)
		}
	})
	<-left.entered
	leave()
	for i := range callers {
		in := &noticed{Context: ctx, entered: make(chan struct{})}
		wg.Go(func() {
			a, err := front.Claim(in, policy, request(fmt.Sprint(i%100), fmt.Sprint(i), start))
			if err != nil || a.Outcome != seen.Won && a.Outcome != seen.InProgress {
				t.Errorf("caller %d: %+v, %v", i, a, err)
			}
		})
		<-in.entered
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	var rows, transactions int
	if err := p.QueryRow(ctx, "select count(*), count(distinct xmin::text) from seen where id not in ('busy0', 'busy1')").Scan(&rows, &transactions); err != nil {
		t.Fatal(err)
	}
	if rows != 100 || transactions > 2 {
		t.Errorf("%d rows in %d transactions, want 100 in one or two", rows, transactions)
	}
}

// TestFrontsMeet: two processes claim the same keys at once, coming by them in
// opposite orders. Their statements do not wait for each other crosswise, and every
// key has one winner.
func TestFrontsMeet(t *testing.T) {
	const keys, rounds = 200, 10
	url := pgtest.Database(t)
	fronts := []*pgseen.Front{pgseen.NewFront(open(t, url, 4)), pgseen.NewFront(open(t, url, 4))}
	for round := range rounds {
		var won atomic.Int64
		var wg sync.WaitGroup
		for i, front := range fronts {
			for k := range keys {
				wg.Go(func() {
					id := k
					if i == 1 {
						id = keys - 1 - k
					}
					a, err := front.Claim(t.Context(), policy, request(fmt.Sprint(round, id), fmt.Sprint(i), start))
					if err != nil {
						t.Errorf("claim: %v", err)
					}
					if a.Outcome == seen.Won {
						won.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if won.Load() != keys {
			t.Errorf("%d of %d keys are won", won.Load(), keys)
		}
	}
}

// awaitBlocked returns when n connections wait for a lock.
func awaitBlocked(t *testing.T, p *pgxpool.Pool, n int) {
	t.Helper()
	for have := 0; have < n; {
		err := p.QueryRow(t.Context(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()").Scan(&have)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noticed is a context that tells when somebody begins to wait on it.
type noticed struct {
	context.Context
	once    sync.Once
	entered chan struct{}
}

func (c *noticed) Done() <-chan struct{} {
	c.once.Do(func() { close(c.entered) })
	return c.Context.Done()
}

// ungrouped is what the front is measured against: the statement alone, a commit a
// claim.
const ungrouped = `insert into seen (endpoint, scope, id, first_seen, until, place, holder, fingerprint)
	values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing returning true`

// rate gives claims a second of n claims by so many callers.
func rate(t testing.TB, n, callers int, claim func(i int) error) float64 {
	t.Helper()
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			next <- i
		}
	}()
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for i := range next {
				if err := claim(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(began).Seconds()
}

// measure gives the rates of the statement alone over 16 and 64 connections and of
// the front, in turns and the best of each, so that the machine's moods fall on all.
func measure(t testing.TB, n, rounds int) (alone16, alone64, grouped float64) {
	s := pgtest.New(t)
	if _, bench := t.(*testing.B); bench && !s.OnDisk() {
		t.Fatalf("%s is on no disk: set TMPDIR", s.Dir())
	}
	url := s.Database(t)
	p16, p64, pf := open(t, url, 16), open(t, url, 64), open(t, url, 4)
	front := pgseen.NewFront(pf)
	ctx := context.Background()
	for round := range rounds {
		single := func(p *pgxpool.Pool, callers int) float64 {
			return rate(t, n, callers, func(i int) error {
				var won bool
				return p.QueryRow(ctx, ungrouped, "hook", []byte(fmt.Sprint(callers, round)), fmt.Appendf(nil, "%08d", i),
					start.UnixNano(), start.UnixNano(), []byte("place"), []byte("holder"), nil).Scan(&won)
			})
		}
		alone16, alone64 = max(alone16, single(p16, 16)), max(alone64, single(p64, 64))
		grouped = max(grouped, rate(t, 8*n, 1024, func(i int) error {
			r := request(fmt.Sprintf("%08d", i), "holder", start)
			r.Key.Scope = fmt.Sprint("front", round)
			a, err := front.Claim(ctx, policy, r)
			if err == nil && a.Outcome != seen.Won {
				err = fmt.Errorf("outcome %d", a.Outcome)
			}
			return err
		}))
	}
	return alone16, alone64, grouped
}

// TestFrontIsWorthIt: on a disk, the front claims at a multiple of the rate that the
// statement alone reaches over 16 or 64 connections. What a quiet machine reaches is
// in docs/figures.md; this is what even a busy one must.
func TestFrontIsWorthIt(t *testing.T) {
	alone16, alone64, grouped := measure(t, 800, 3)
	best := slices.Max([]float64{alone16, alone64})
	t.Logf("alone over 16 connections %.0f/s, over 64 %.0f/s; grouped %.0f/s: %.1f times", alone16, alone64, grouped, grouped/best)
	if grouped < 1.5*best {
		t.Errorf("grouped %.0f/s is not well above the best alone, %.0f/s", grouped, best)
	}
}

// BenchmarkFront gives the ratio of grouped claims to the best of the statement
// alone over 16 and 64 connections, in one run.
func BenchmarkFront(b *testing.B) {
	for b.Loop() {
		alone16, alone64, grouped := measure(b, 4000, 3)
		b.ReportMetric(alone16, "alone16/s")
		b.ReportMetric(alone64, "alone64/s")
		b.ReportMetric(grouped, "grouped/s")
		b.ReportMetric(grouped/max(alone16, alone64), "ratio")
	}
}
