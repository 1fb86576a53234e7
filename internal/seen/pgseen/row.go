package pgseen

import (
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"admitone/internal/seen"
)

// maxKey bounds a key in bytes: an entry of PostgreSQL's index must fit into a
// third of a page.
const maxKey = 2048

func checkKey(k seen.Key) error {
	if n := len(k.Endpoint) + len(k.Scope) + len(k.ID); k.Endpoint == "" || n > maxKey {
		return fmt.Errorf("seen key: endpoint of %d bytes and %d in all, want 1 and at most %d", len(k.Endpoint), n, maxKey)
	}
	return nil
}

// nanos is a time as it is stored: Unix nanoseconds, NULL for the zero time. What
// lies outside of the years that this can tell (1678 to 2262) is their first or
// last moment.
func nanos(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixNano()
	switch {
	case t.Unix() > math.MaxInt64/int64(time.Second)-1:
		n = math.MaxInt64
	case t.Unix() < math.MinInt64/int64(time.Second)+1:
		n = math.MinInt64
	}
	return &n
}

func fromNanos(n *int64) time.Time {
	if n == nil {
		return time.Time{}
	}
	return time.Unix(0, *n).UTC()
}

// columns are those of a row beside its key, in the order that scanRow reads.
const columns = "s.first_seen, s.until, s.place, s.holder, s.fingerprint, s.result, s.done"

// scanRow reads the columns, after those of the key where more says where to.
func scanRow(r pgx.Row, row *seen.Row, more ...any) error {
	var first, until *int64
	var place, holder []byte
	err := r.Scan(append(more, &first, &until, &place, &holder, &row.Fingerprint, &row.Result, &row.Done)...)
	row.FirstSeen, row.Until = fromNanos(first), fromNanos(until)
	row.Place, row.Holder = string(place), string(holder)
	row.Fingerprint, row.Result = orNil(row.Fingerprint), orNil(row.Result)
	return err
}

// orNil gives nil for an empty slice, as every implementation of the table does.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
