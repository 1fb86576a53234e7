package seentest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"admitone/internal/seen"
)

// machine is the table as a map, with every rule of the contract in its simplest
// form: what an implementation must behave like.
type machine struct {
	rows map[seen.Key]seen.Row
	now  time.Time
	s    Store
}

// testModel runs random steps on an implementation and on the machine.
func testModel(t *testing.T, open func(t *testing.T) Store) {
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{rows: map[seen.Key]seen.Row{}, now: start, s: open(t)}
		r.Repeat(map[string]func(*rapid.T){
			"pass":       func(r *rapid.T) { m.now = m.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, "s")) * time.Second) },
			"claim":      m.claim,
			"claim2":     m.claim, // twice as likely as the others
			"finish":     m.finish,
			"take":       m.take,
			"drop":       m.drop,
			"prune":      m.prune,
			"pruneScope": m.pruneScope,
			"":           m.compare,
		})
	})
}

// request draws from few keys, holders and fingerprints, so that they meet.
func (m *machine) request(r *rapid.T) (seen.Policy, seen.Request) {
	p := seen.Policy{
		Endpoint: rapid.SampledFrom([]string{"e", "es"}).Draw(r, "endpoint"),
		OnRepeat: rapid.SampledFrom([]seen.Repeat{seen.Echo, seen.Refuse}).Draw(r, "repeat"),
		Remember: time.Duration(rapid.IntRange(0, 2).Draw(r, "remember")) * 3 * time.Second,
	}
	q := seen.Request{
		Key:         seen.Key{Endpoint: p.Endpoint, Scope: rapid.SampledFrom([]string{"", "s"}).Draw(r, "scope"), ID: rapid.SampledFrom([]string{"a", "s"}).Draw(r, "id")},
		At:          m.now,
		Place:       "p",
		Holder:      rapid.SampledFrom([]string{"h1", "h2", "h3"}).Draw(r, "holder"),
		Fingerprint: rapid.SampledFrom([][]byte{nil, {1}, {2}}).Draw(r, "fingerprint"),
	}
	if rapid.IntRange(0, 4).Draw(r, "own until") == 0 {
		q.Until = m.now.Add(time.Duration(rapid.IntRange(1, 9).Draw(r, "until")) * time.Second)
	}
	return p, q
}

// run does one step in a transaction of its own.
func (m *machine) run(r *rapid.T, fn func(tx seen.Tx) (got any, err error), want any) {
	err := m.s.Update(context.Background(), func(tx seen.Tx) error {
		got, err := fn(tx)
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("got %+v, the model has %+v", got, want)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (m *machine) row(p seen.Policy, q seen.Request) seen.Row {
	until := q.Until
	if until.IsZero() && p.Remember > 0 {
		until = q.At.Add(p.Remember)
	}
	return seen.Row{Key: q.Key, FirstSeen: q.At, Place: q.Place, Holder: q.Holder, Fingerprint: q.Fingerprint, Until: until}
}

func (m *machine) over(row seen.Row) bool { return !row.Until.IsZero() && !m.now.Before(row.Until) }

func (m *machine) claim(r *rapid.T) {
	p, q := m.request(r)
	row, had := m.rows[q.Key]
	want := seen.Answer{Row: row}
	switch {
	case !had || m.over(row):
		want = seen.Answer{Outcome: seen.Won, Row: m.row(p, q)}
		m.rows[q.Key] = want.Row
	case row.Fingerprint != nil && q.Fingerprint != nil && !bytes.Equal(row.Fingerprint, q.Fingerprint):
		want.Outcome = seen.Mismatch
	case !row.Done:
		want.Outcome = seen.InProgress
	case p.OnRepeat == seen.Echo:
		want.Outcome = seen.Echoed
	default:
		want.Outcome = seen.Refused
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.Claim(p, q) }, want)
}

func (m *machine) finish(r *rapid.T) {
	_, q := m.request(r)
	row, had := m.rows[q.Key]
	want := had && row.Holder == q.Holder
	if want {
		row.Done, row.Result = true, []byte(q.Holder)
		m.rows[q.Key] = row
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.Finish(q.Key, q.Holder, []byte(q.Holder)) }, want)
}

func (m *machine) take(r *rapid.T) {
	p, q := m.request(r)
	from := rapid.SampledFrom([]string{"h1", "h2", "h3"}).Draw(r, "from")
	row, had := m.rows[q.Key]
	want := had && row.Holder == from
	if want {
		m.rows[q.Key] = m.row(p, q)
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.Take(p, from, q) }, want)
}

func (m *machine) drop(r *rapid.T) {
	_, q := m.request(r)
	row, had := m.rows[q.Key]
	want := had && row.Holder == q.Holder && !row.Done
	if want {
		delete(m.rows, q.Key)
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.Drop(q.Key, q.Holder) }, want)
}

func (m *machine) prune(r *rapid.T) {
	p, _ := m.request(r)
	limit := rapid.IntRange(0, 3).Draw(r, "limit")
	var gone []seen.Row
	for k, row := range m.rows {
		if k.Endpoint == p.Endpoint && m.over(row) {
			gone = append(gone, row)
		}
	}
	slices.SortFunc(gone, func(a, b seen.Row) int { return a.Until.Compare(b.Until) })
	limit = m.roundUp(gone, limit)
	for _, row := range gone[:limit] {
		delete(m.rows, row.Key)
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.Prune(p.Endpoint, m.now, limit) }, limit)
}

// roundUp moves the limit past rows of one time, of which the contract does not
// say which go first.
func (m *machine) roundUp(gone []seen.Row, limit int) int {
	limit = min(limit, len(gone))
	for limit > 0 && limit < len(gone) && gone[limit].Until.Equal(gone[limit-1].Until) {
		limit++
	}
	return limit
}

func (m *machine) pruneScope(r *rapid.T) {
	_, q := m.request(r)
	want := 0
	for k := range m.rows {
		if k.Endpoint == q.Key.Endpoint && k.Scope == q.Key.Scope {
			delete(m.rows, k)
			want++
		}
	}
	m.run(r, func(tx seen.Tx) (any, error) { return tx.PruneScope(q.Key.Endpoint, q.Key.Scope, 99) }, want)
}

// compare looks at every key there can be.
func (m *machine) compare(r *rapid.T) {
	err := m.s.Update(context.Background(), func(tx seen.Tx) error {
		for _, e := range []string{"e", "es"} {
			for _, s := range []string{"", "s"} {
				for _, id := range []string{"a", "s"} {
					k := seen.Key{Endpoint: e, Scope: s, ID: id}
					row, found, err := tx.Get(k)
					if want, has := m.rows[k]; err != nil || found != has || !reflect.DeepEqual(row, want) {
						return fmt.Errorf("row of %v: %+v, %v, %v; the model has %+v, %v", k, row, found, err, want, has)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}
