package seentest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"admitone/internal/seen"
)

func testFirst(t *testing.T, s Store) {
	tb := table{t, s}
	tb.want(key(refuse, "a"), false)
	zone := time.FixedZone("CET", 3600)
	r := seen.Request{Key: key(refuse, "a\x00\xff"), At: start.In(zone), Place: "North 2", Holder: "h1", Fingerprint: []byte{1, 2}}
	got := tb.claim(refuse, r, seen.Won)
	want := seen.Row{Key: r.Key, FirstSeen: start, Place: "North 2", Holder: "h1", Fingerprint: []byte{1, 2}, Until: start.Add(time.Hour)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the row is %+v, want %+v", got, want)
	}
	r = request(refuse, "b", "h1", start)
	r.Until = start.Add(time.Minute)
	if got := tb.claim(refuse, r, seen.Won); !got.Until.Equal(r.Until) {
		t.Errorf("until is %v, want the request's %v", got.Until, r.Until)
	}
	forever := refuse
	forever.Remember = 0
	if got := tb.claim(forever, request(refuse, "c", "h1", start), seen.Won); !got.Until.IsZero() {
		t.Errorf("until is %v, want none", got.Until)
	}
}

// testRepeat is the branch that is data: the same steps under two policies.
func testRepeat(t *testing.T, s Store) {
	tb := table{t, s}
	for policy, want := range map[*seen.Policy]seen.Outcome{&refuse: seen.Refused, &echo: seen.Echoed} {
		p := *policy
		k := key(p, "a")
		tb.claim(p, request(p, "a", "h1", start), seen.Won)
		if row := tb.claim(p, request(p, "a", "h2", start.Add(time.Second)), seen.InProgress); row.Holder != "h1" || row.Done {
			t.Errorf("%s: in progress speaks of %+v", p.Endpoint, row)
		}
		tb.claim(p, request(p, "a", "h1", start.Add(time.Second)), seen.InProgress)
		tb.finish(k, "h1", "the result", true)
		for i := range 2 {
			row := tb.claim(p, request(p, "a", "h2", start.Add(time.Duration(i)*time.Minute)), want)
			if string(row.Result) != "the result" || row.Place != "place of h1" || !row.FirstSeen.Equal(start) || !row.Done {
				t.Errorf("%s: repeat speaks of %+v", p.Endpoint, row)
			}
		}
		// An empty result is a result.
		tb.claim(p, request(p, "b", "h1", start), seen.Won)
		tb.finish(key(p, "b"), "h1", "", true)
		tb.claim(p, request(p, "b", "h2", start), want)
	}
}

func testMismatch(t *testing.T, s Store) {
	tb := table{t, s}
	as := func(holder, print string) seen.Request {
		r := request(echo, "a", holder, start)
		if print != "" {
			r.Fingerprint = []byte(print)
		}
		return r
	}
	first := tb.claim(echo, as("h1", "body"), seen.Won)
	if row := tb.claim(echo, as("h2", "other"), seen.Mismatch); !reflect.DeepEqual(row, first) {
		t.Errorf("a mismatch changed the row to %+v", row)
	}
	tb.claim(echo, as("h2", "body"), seen.InProgress)
	tb.finish(first.Key, "h1", "done", true)
	tb.claim(echo, as("h2", "other"), seen.Mismatch)
	tb.claim(echo, as("h2", "body"), seen.Echoed)
	tb.claim(echo, as("h2", ""), seen.Echoed)
	r := request(echo, "b", "h1", start)
	tb.claim(echo, r, seen.Won)
	r.Fingerprint = []byte("body")
	tb.claim(echo, r, seen.InProgress)
}

// testSpelling uses keys that one careless join would make equal.
func testSpelling(t *testing.T, s Store) {
	tb := table{t, s}
	for i, k := range []seen.Key{
		{Endpoint: "e", Scope: "s", ID: "id"}, {Endpoint: "es", Scope: "", ID: "id"},
		{Endpoint: "e", Scope: "si", ID: "d"}, {Endpoint: "e", Scope: "", ID: "sid"},
		{Endpoint: "e", Scope: "s/", ID: "id"}, {Endpoint: "e", Scope: "s", ID: "/id"},
		{Endpoint: "e", Scope: "s\x00", ID: "id"}, {Endpoint: "e", Scope: "s", ID: "\x00id"},
		{Endpoint: "e", Scope: "s", ID: ""}, {Endpoint: "e", Scope: "s", ID: "ID"}, {Endpoint: "E", Scope: "s", ID: "id"},
	} {
		p := seen.Policy{Endpoint: k.Endpoint, OnRepeat: seen.Refuse}
		if row := tb.claim(p, seen.Request{Key: k, Holder: fmt.Sprint(i), At: start}, seen.Won); row.Key != k {
			t.Errorf("key %q came back as %q", k, row.Key)
		}
	}
}

func testPolicy(t *testing.T, s Store) {
	for name, p := range map[string]seen.Policy{
		"another endpoint": echo,
		"no branch":        {Endpoint: refuse.Endpoint},
		"unknown branch":   {Endpoint: refuse.Endpoint, OnRepeat: "maybe"},
	} {
		err := s.Update(context.Background(), func(tx seen.Tx) error {
			_, err := tx.Claim(p, request(refuse, "a", "h1", start))
			return err
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	table{t, s}.want(key(refuse, "a"), false)
}

func testUndo(t *testing.T, s Store) {
	tb := table{t, s}
	tb.claim(refuse, request(refuse, "old", "h1", start), seen.Won)
	boom := errors.New("boom")
	err := s.Update(context.Background(), func(tx seen.Tx) error {
		_, err := tx.Claim(refuse, request(refuse, "new", "h1", start))
		_, ferr := tx.Finish(key(refuse, "old"), "h1", []byte("done"))
		return errors.Join(err, ferr, boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("update: %v", err)
	}
	tb.want(key(refuse, "new"), false)
	if row, found := tb.get(key(refuse, "old")); !found || row.Done {
		t.Errorf("the old row is %+v, %v", row, found)
	}
	tb.prune(refuse, start.Add(time.Hour), 9, 1)
}

// testRace is the point of the table: 10,000 rounds of two who claim one key at
// once. One wins; the other is told the winner's time and place.
func testRace(t *testing.T, s Store) {
	const lanes, rounds = 50, 200 // many keys at a time, so that a store with slow commits is done soon, too
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for round := range rounds {
				race(t, s, fmt.Sprintf("%d.%d", lane, round))
			}
		})
	}
	wg.Wait()
}

func race(t *testing.T, s Store, id string) {
	var answers [2]seen.Answer
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			r := request(refuse, id, fmt.Sprintf("racer %d", i), start.Add(time.Duration(i)))
			err := s.Update(context.Background(), func(tx seen.Tx) (err error) {
				answers[i], err = tx.Claim(refuse, r)
				return err
			})
			if err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
	wg.Wait()
	w := 0
	if answers[1].Outcome == seen.Won {
		w = 1
	}
	won, lost := answers[w], answers[1-w]
	if won.Outcome != seen.Won || lost.Outcome != seen.InProgress || !reflect.DeepEqual(won.Row, lost.Row) ||
		won.Row.Holder != fmt.Sprintf("racer %d", w) || !won.Row.FirstSeen.Equal(start.Add(time.Duration(w))) {
		t.Errorf("round %s: %+v and %+v", id, won, lost)
	}
}
