// Package seentest is the suite that every implementation of the seen table
// passes: what a repeat gets, who may change a row, when a row is forgotten, and
// that of two who claim one key at once exactly one wins.
package seentest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"admitone/internal/seen"
)

// Store runs fn with the table in one durable transaction, which is undone where
// fn returns an error. Calls may come at once.
type Store interface {
	Update(ctx context.Context, fn func(seen.Tx) error) error
}

// Func is a Store made of a function.
type Func func(ctx context.Context, fn func(seen.Tx) error) error

// Update is Store.Update.
func (f Func) Update(ctx context.Context, fn func(seen.Tx) error) error { return f(ctx, fn) }

// Run runs the suite; open gives an empty table each time.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Run("Race", func(t *testing.T) { testRace(t, open(t)) })
	Steps(t, open)
}

// Steps is the suite without its long race, for a store whose table another test has
// in it already.
func Steps(t *testing.T, open func(t *testing.T) Store) {
	for name, test := range map[string]func(*testing.T, Store){
		"First":       testFirst,
		"Repeat":      testRepeat,
		"Mismatch":    testMismatch,
		"Fence":       testFence,
		"FinishAgain": testFinishAgain,
		"Take":        testTake,
		"Window":      testWindow,
		"Drop":        testDrop,
		"Undo":        testUndo,
		"Prune":       testPrune,
		"PruneScope":  testPruneScope,
		"Spelling":    testSpelling,
		"Policy":      testPolicy,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	t.Run("Model", func(t *testing.T) { testModel(t, open) })
}

// start is when the tests begin: a time with nanoseconds, which have to survive.
var start = time.Date(2026, 11, 30, 18, 55, 0, 123456789, time.UTC)

// The two policies of most tests: a webhook's, and an order's.
var (
	refuse = seen.Policy{Endpoint: "hook", OnRepeat: seen.Refuse, Remember: time.Hour}
	echo   = seen.Policy{Endpoint: "order", OnRepeat: seen.Echo, Remember: 24 * time.Hour}
)

func key(p seen.Policy, id string) seen.Key {
	return seen.Key{Endpoint: p.Endpoint, Scope: "s", ID: id}
}

func request(p seen.Policy, id, holder string, at time.Time) seen.Request {
	return seen.Request{Key: key(p, id), At: at, Place: "place of " + holder, Holder: holder}
}

// table is a store with one step a transaction, so that every step is seen to be
// stored.
type table struct {
	t *testing.T
	s Store
}

func (tb table) do(fn func(seen.Tx) error) {
	tb.t.Helper()
	if err := tb.s.Update(context.Background(), fn); err != nil {
		tb.t.Fatalf("update: %v", err)
	}
}

// claim checks the outcome, and that the row it speaks of is the stored one.
func (tb table) claim(p seen.Policy, r seen.Request, want seen.Outcome) seen.Row {
	tb.t.Helper()
	var a seen.Answer
	tb.do(func(tx seen.Tx) (err error) { a, err = tx.Claim(p, r); return err })
	if a.Outcome != want {
		tb.t.Errorf("claim of %v by %s: outcome %d, want %d", r.Key, r.Holder, a.Outcome, want)
	}
	if row, found := tb.get(r.Key); !found || !reflect.DeepEqual(row, a.Row) {
		tb.t.Errorf("claim of %v by %s speaks of %+v, stored is %+v", r.Key, r.Holder, a.Row, row)
	}
	return a.Row
}

func (tb table) get(k seen.Key) (row seen.Row, found bool) {
	tb.t.Helper()
	tb.do(func(tx seen.Tx) (err error) { row, found, err = tx.Get(k); return err })
	return row, found
}

func (tb table) finish(k seen.Key, holder, result string, want bool) {
	tb.t.Helper()
	tb.change(k, want, func(tx seen.Tx) (bool, error) { return tx.Finish(k, holder, []byte(result)) })
}

func (tb table) take(p seen.Policy, from string, r seen.Request, want bool) {
	tb.t.Helper()
	tb.change(r.Key, want, func(tx seen.Tx) (bool, error) { return tx.Take(p, from, r) })
}

func (tb table) drop(k seen.Key, holder string, want bool) {
	tb.t.Helper()
	tb.change(k, want, func(tx seen.Tx) (bool, error) { return tx.Drop(k, holder) })
}

// change checks what fn reports, and that a row does not change where it reports
// false.
func (tb table) change(k seen.Key, want bool, fn func(seen.Tx) (bool, error)) {
	tb.t.Helper()
	before, had := tb.get(k)
	var got bool
	tb.do(func(tx seen.Tx) (err error) { got, err = fn(tx); return err })
	if got != want {
		tb.t.Errorf("change of %v reports %v, want %v", k, got, want)
	}
	if after, has := tb.get(k); !want && (has != had || !reflect.DeepEqual(before, after)) {
		tb.t.Errorf("change of %v was refused, yet %+v became %+v", k, before, after)
	}
}

func (tb table) prune(p seen.Policy, now time.Time, limit, want int) {
	tb.t.Helper()
	tb.do(func(tx seen.Tx) error {
		n, err := tx.Prune(p.Endpoint, now, limit)
		if n != want {
			tb.t.Errorf("prune of %s at %v removed %d, want %d", p.Endpoint, now.Sub(start), n, want)
		}
		return err
	})
}

func (tb table) want(k seen.Key, want bool) {
	tb.t.Helper()
	if _, found := tb.get(k); found != want {
		tb.t.Errorf("row of %v: %v, want %v", k, found, want)
	}
}
