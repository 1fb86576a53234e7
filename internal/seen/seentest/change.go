package seentest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"admitone/internal/seen"
)

// testFence: nobody but the holder changes a row, and an absent row is nobody's.
func testFence(t *testing.T, s Store) {
	tb := table{t, s}
	k := key(refuse, "a")
	tb.finish(k, "h1", "x", false)
	tb.drop(k, "h1", false)
	tb.take(refuse, "h1", request(refuse, "a", "h2", start), false)
	tb.take(refuse, "", request(refuse, "a", "h2", start), false)
	tb.claim(refuse, request(refuse, "a", "h1", start), seen.Won)
	for _, other := range []string{"h2", "", "h", "h11"} {
		tb.finish(k, other, "x", false)
		tb.drop(k, other, false)
		tb.take(refuse, other, request(refuse, "a", "h3", start), false)
	}
	tb.finish(k, "h1", "mine", true)
}

func testFinishAgain(t *testing.T, s Store) {
	tb := table{t, s}
	k := key(echo, "a")
	first := tb.claim(echo, request(echo, "a", "h1", start), seen.Won)
	for _, result := range []string{"admitted", "annulled", ""} {
		tb.finish(k, "h1", result, true)
		row := tb.claim(echo, request(echo, "a", "h2", start), seen.Echoed)
		want := first
		want.Done = true
		if result != "" {
			want.Result = []byte(result)
		}
		if !reflect.DeepEqual(row, want) {
			t.Errorf("after %q the row is %+v, want %+v", result, row, want)
		}
	}
}

// testTake hands a row over, in progress and finished, and shuts the old holder out.
func testTake(t *testing.T, s Store) {
	for _, done := range []bool{false, true} {
		tb := table{t, s}
		id := fmt.Sprint(done)
		k := key(refuse, id)
		r := request(refuse, id, "h1", start)
		r.Fingerprint = []byte("one")
		tb.claim(refuse, r, seen.Won)
		if done {
			tb.finish(k, "h1", "annulled", true)
		}
		next := request(refuse, id, "h2", start.Add(time.Minute))
		next.Fingerprint = []byte("two")
		next.Until = start.Add(3 * time.Hour)
		tb.take(refuse, "h1", next, true)
		want := seen.Row{Key: k, FirstSeen: next.At, Place: next.Place, Holder: "h2", Fingerprint: []byte("two"), Until: next.Until}
		if row, _ := tb.get(k); !reflect.DeepEqual(row, want) {
			t.Errorf("taken over, the row is %+v, want %+v", row, want)
		}
		tb.finish(k, "h1", "late", false)
		tb.drop(k, "h1", false)
		tb.claim(refuse, next, seen.InProgress)
		tb.finish(k, "h2", "admitted", true)
	}
	tb := table{t, s}
	tb.prune(refuse, start.Add(3*time.Hour-1), 9, 0)
	tb.prune(refuse, start.Add(3*time.Hour), 9, 2)
}

// testWindow: a key that comes after its window is a new intent, one nanosecond
// before it is not.
func testWindow(t *testing.T, s Store) {
	tb := table{t, s}
	k := key(echo, "a")
	end := start.Add(echo.Remember)
	tb.claim(echo, request(echo, "a", "h1", start), seen.Won)
	tb.finish(k, "h1", "old", true)
	tb.claim(echo, request(echo, "a", "h2", end.Add(-1)), seen.Echoed)
	r := request(echo, "a", "h2", end)
	r.Fingerprint = []byte("another request")
	row := tb.claim(echo, r, seen.Won)
	if row.Done || row.Result != nil || row.Holder != "h2" || !row.FirstSeen.Equal(end) {
		t.Errorf("the new intent's row is %+v", row)
	}
	tb.finish(k, "h1", "late", false)
	tb.prune(echo, end, 9, 0) // the old window's end has nothing to prune any more
	tb.want(k, true)

	unfinished := request(echo, "b", "h1", start)
	tb.claim(echo, unfinished, seen.Won)
	tb.claim(echo, request(echo, "b", "h2", end), seen.Won)

	forever := request(echo, "c", "h1", start)
	never := echo
	never.Remember = 0
	tb.claim(never, forever, seen.Won)
	tb.claim(never, request(echo, "c", "h2", start.AddDate(300, 0, 0)), seen.InProgress)
}

func testDrop(t *testing.T, s Store) {
	tb := table{t, s}
	k := key(refuse, "a")
	tb.claim(refuse, request(refuse, "a", "h1", start), seen.Won)
	tb.drop(k, "h1", true)
	tb.want(k, false)
	tb.prune(refuse, start.AddDate(1, 0, 0), 9, 0)
	tb.drop(k, "h1", false)
	r := request(refuse, "a", "h2", start)
	r.Fingerprint = []byte("something else")
	tb.claim(refuse, r, seen.Won)
	tb.finish(k, "h2", "done", true)
	tb.drop(k, "h2", false) // work that is done is not undone
	tb.want(k, true)
}

// testPrune forgets by time: the oldest first, of one endpoint, up to a limit, and
// never what somebody claimed anew.
func testPrune(t *testing.T, s Store) {
	tb := table{t, s}
	at := func(p seen.Policy, id string, until time.Duration) {
		r := request(p, id, "h1", start)
		if until != 0 {
			r.Until = start.Add(until)
		}
		tb.claim(seen.Policy{Endpoint: p.Endpoint, OnRepeat: p.OnRepeat}, r, seen.Won)
	}
	for i := range 10 {
		// Neither the order of the identifiers nor of the claims is that of the times.
		at(refuse, fmt.Sprint(i), time.Duration((i*7)%10+1)*time.Second)
	}
	at(refuse, "for ever", 0)
	at(refuse, "before 1970", start.Sub(time.Unix(0, 0))*-2)
	at(echo, "other endpoint", time.Second)
	longer := seen.Policy{Endpoint: refuse.Endpoint + "s", OnRepeat: seen.Refuse}
	at(longer, "longer endpoint", time.Second)

	tb.prune(refuse, start.Add(-1), 9, 1)
	tb.want(key(refuse, "before 1970"), false)
	tb.prune(refuse, start.Add(time.Second-1), 9, 0)
	tb.prune(refuse, start.Add(time.Second), 0, 0)
	tb.prune(refuse, start.Add(4*time.Second), 3, 3)
	for i := range 10 {
		tb.want(key(refuse, fmt.Sprint(i)), (i*7)%10 >= 3)
	}
	tb.prune(refuse, start.Add(4*time.Second), 9, 1)
	tb.prune(refuse, start.AddDate(100, 0, 0), 99, 6)
	tb.want(key(refuse, "for ever"), true)
	tb.want(key(echo, "other endpoint"), true)
	tb.want(key(longer, "longer endpoint"), true)
}

func testPruneScope(t *testing.T, s Store) {
	tb := table{t, s}
	in := func(p seen.Policy, scope, id string) seen.Key {
		r := request(p, id, "h1", start)
		r.Key.Scope = scope
		tb.claim(p, r, seen.Won)
		return r.Key
	}
	for i := range 5 {
		in(refuse, "event", fmt.Sprint(i))
	}
	never := refuse
	never.Remember = 0
	in(never, "event", "for ever")
	others := []seen.Key{in(refuse, "event2", "a"), in(refuse, "even", "t"), in(refuse, "", "event"), in(echo, "event", "a")}
	for _, want := range []int{4, 2, 0} {
		tb.do(func(tx seen.Tx) error {
			n, err := tx.PruneScope(refuse.Endpoint, "event", 4)
			if n != want {
				t.Errorf("prune of the scope removed %d, want %d", n, want)
			}
			return err
		})
	}
	for _, k := range others {
		tb.want(k, true)
	}
	tb.prune(refuse, start.AddDate(1, 0, 0), 99, 3) // nothing of the pruned scope is left in the index
}
