package pgseen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/seen"
)

// Front claims keys whose row is all there is to do, for many callers at once: the
// claims that come while a statement is under way go together as the next one, in
// one commit. Each caller gets its own answer, after the commit. Keys are sorted, so
// that two groups cannot wait for each other crosswise.
//
// The pool's connections must have a statement_timeout and a lock_timeout: where one
// of them ends a statement, everybody in its group gets an error, which means that
// it could not be found out. It is never an answer.
type Front struct {
	pool  *pgxpool.Pool
	turns chan struct{} // who holds one sends a group

	mu    sync.Mutex // held for bookkeeping only
	queue []*claim
}

// Limits of groups.
const (
	maxGroup   = 1024             // claims in one statement
	turns      = 2                // groups under way: one is on the disk while the next is inserted
	groupLimit = 30 * time.Second // beyond every timeout of the server: then it is gone
)

type claim struct {
	policy seen.Policy
	req    seen.Request
	fresh  seen.Row
	done   chan struct{} // closed once answer and err are set
	answer seen.Answer
	err    error
}

// NewFront gives a front on a pool. It starts nothing: whoever has a turn sends for
// all that wait.
func NewFront(pool *pgxpool.Pool) *Front {
	f := &Front{pool: pool, turns: make(chan struct{}, turns)}
	for range turns {
		f.turns <- struct{}{}
	}
	return f
}

// Claim is seen.Tx.Claim in a transaction of its own, which is committed when it
// returns. Where ctx ends before the claim's turn nothing happens; after that its
// outcome is waited for.
func (f *Front) Claim(ctx context.Context, p seen.Policy, r seen.Request) (seen.Answer, error) {
	if err := errors.Join(p.Check(r), checkKey(r.Key), ctx.Err()); err != nil {
		return seen.Answer{}, err
	}
	c := &claim{policy: p, req: r, fresh: p.Row(r), done: make(chan struct{})}
	f.mu.Lock()
	f.queue = append(f.queue, c)
	f.mu.Unlock()
	for {
		select {
		case <-c.done:
			return c.answer, c.err
		case <-f.turns:
			f.lead()
		case <-ctx.Done():
			if f.withdraw(c) {
				return seen.Answer{}, fmt.Errorf("claim key: %w", ctx.Err())
			}
			<-c.done
			return c.answer, c.err
		}
	}
}

func (f *Front) withdraw(c *claim) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.queue, c)
	if i >= 0 {
		f.queue = slices.Delete(f.queue, i, i+1)
	}
	return i >= 0
}

// lead sends what is queued, and hands the turn on.
func (f *Front) lead() {
	defer func() { f.turns <- struct{}{} }()
	f.mu.Lock()
	n := min(len(f.queue), maxGroup)
	group := f.queue[:n:n]
	f.queue = f.queue[n:]
	f.mu.Unlock()
	if n == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupLimit)
	defer cancel()
	keys := byKey(group)
	err := f.insert(ctx, keys)
	var left []*claim
	for _, c := range group {
		if c.err = err; err == nil && c.answer.Outcome == 0 {
			left = append(left, c)
			continue
		}
		close(c.done)
	}
	for _, c := range left {
		c.answer, c.err = f.alone(ctx, c)
		close(c.done)
	}
}

// byKey sorts a group and puts the claims of one key together, in their order.
func byKey(group []*claim) (keys [][]*claim) {
	slices.SortStableFunc(group, func(a, b *claim) int { return compare(a.req.Key, b.req.Key) })
	for i, c := range group {
		if i > 0 && c.req.Key == group[i-1].req.Key {
			keys[len(keys)-1] = append(keys[len(keys)-1], c)
			continue
		}
		keys = append(keys, []*claim{c})
	}
	return keys
}

func compare(a, b seen.Key) int {
	return cmp.Or(strings.Compare(a.Endpoint, b.Endpoint), strings.Compare(a.Scope, b.Scope), strings.Compare(a.ID, b.ID))
}

// insert inserts the first claim of each key and answers what its row can answer.
// A row whose time is over is left to alone.
func (f *Front) insert(ctx context.Context, keys [][]*claim) error {
	won, err := f.insertNew(ctx, keys)
	if err != nil {
		return fmt.Errorf("claim keys: %w", err)
	}
	var lost [][]*claim
	for _, same := range keys {
		first := same[0]
		if !won[first.req.Key] {
			lost = append(lost, same)
			continue
		}
		first.answer = seen.Answer{Outcome: seen.Won, Row: first.fresh}
		repeats(first.fresh, same[1:])
	}
	if len(lost) == 0 {
		return nil
	}
	rows, err := f.rows(ctx, lost)
	if err != nil {
		return fmt.Errorf("read claimed keys: %w", err)
	}
	for _, same := range lost {
		if row, found := rows[same[0].req.Key]; found {
			repeats(row, same)
		}
	}
	return nil
}

// repeats answers claims that find a row stored, up to one for which it is too old.
func repeats(row seen.Row, claims []*claim) {
	for _, c := range claims {
		if row.Due(c.req.At) {
			return
		}
		c.answer = c.policy.Answer(row, c.req)
	}
}

const groupSQL = `insert into seen (endpoint, scope, id, first_seen, until, place, holder, fingerprint)
	select * from unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bytea[])
		as new (endpoint, scope, id, first_seen, until, place, holder, fingerprint)
	order by endpoint collate "C", scope, id
	on conflict do nothing returning endpoint, scope, id`

func (f *Front) insertNew(ctx context.Context, keys [][]*claim) (map[seen.Key]bool, error) {
	n := len(keys)
	endpoints, scopes, ids := columnsOf(keys)
	firsts, untils := make([]*int64, n), make([]*int64, n)
	places, holders, prints := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i, same := range keys {
		row := same[0].fresh
		firsts[i], untils[i] = nanos(row.FirstSeen), nanos(row.Until)
		places[i], holders[i], prints[i] = []byte(row.Place), []byte(row.Holder), row.Fingerprint
	}
	won := make(map[seen.Key]bool, n)
	rows, err := f.pool.Query(ctx, groupSQL, endpoints, scopes, ids, firsts, untils, places, holders, prints)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var endpoint string
		var scope, id []byte
		if err := rows.Scan(&endpoint, &scope, &id); err != nil {
			return nil, err
		}
		won[seen.Key{Endpoint: endpoint, Scope: string(scope), ID: string(id)}] = true
	}
	return won, rows.Err()
}

func columnsOf(keys [][]*claim) (endpoints []string, scopes, ids [][]byte) {
	for _, same := range keys {
		k := same[0].req.Key
		endpoints = append(endpoints, k.Endpoint)
		scopes, ids = append(scopes, []byte(k.Scope)), append(ids, []byte(k.ID))
	}
	return endpoints, scopes, ids
}

func (f *Front) rows(ctx context.Context, keys [][]*claim) (map[seen.Key]seen.Row, error) {
	endpoints, scopes, ids := columnsOf(keys)
	rows, err := f.pool.Query(ctx, "select s.endpoint, s.scope, s.id, "+columns+` from seen s
		join unnest($1::text[], $2::bytea[], $3::bytea[]) as k (endpoint, scope, id) using (endpoint, scope, id)`, endpoints, scopes, ids)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[seen.Key]seen.Row, len(keys))
	for rows.Next() {
		var row seen.Row
		var endpoint string
		var scope, id []byte
		if err := scanRow(rows, &row, &endpoint, &scope, &id); err != nil {
			return nil, err
		}
		row.Key = seen.Key{Endpoint: endpoint, Scope: string(scope), ID: string(id)}
		out[row.Key] = row
	}
	return out, rows.Err()
}

// alone is a claim in a transaction of its own: for a key whose row was too old, or
// went while it was looked at.
func (f *Front) alone(ctx context.Context, c *claim) (a seen.Answer, err error) {
	err = pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error {
		a, err = On(ctx, tx).Claim(c.policy, c.req)
		return err
	})
	if err != nil {
		return seen.Answer{}, fmt.Errorf("claim key: %w", err)
	}
	return a, nil
}
