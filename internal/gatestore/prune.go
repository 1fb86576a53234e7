package gatestore

import (
	"context"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// Prune removes up to limit rows of a closed event and reports whether there are
// more. It removes nothing while the ledger has not closed the event, while the
// ledger lacks any own record, or while an own claim of the event is open: only
// records and receipts free, never a clock.
func (s *Store) Prune(ctx context.Context, event string, limit int) (more bool, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		more = false
		ok, err := s.prunable(tx, event)
		if err != nil || !ok {
			return err
		}
		n, err := pruneClaims(tx, event, limit)
		if err != nil {
			return err
		}
		rows, err := kvseen.Bind(tx).PruneScope(policy.Endpoint, event, limit)
		if err != nil {
			return err
		}
		gone, err := pruneLogs(tx, limit)
		more = n == limit || rows == limit || gone >= limit
		return err
	})
	if err != nil {
		return false, fmt.Errorf("prune %q: %w", event, err)
	}
	return more, nil
}

func (s *Store) prunable(tx kv.Tx, event string) (bool, error) {
	closed, err := tx.Get(bClosed, []byte(event))
	if err != nil || closed == nil {
		return false, err
	}
	open, err := openClaims(tx)
	if err != nil {
		return false, err
	}
	for _, c := range open {
		if c.Unit.Event == event {
			return false, nil
		}
	}
	runs, err := allStreams(tx)
	if err != nil {
		return false, err
	}
	for _, st := range runs {
		high, err := receipt(tx, st.Stream)
		if err != nil || st.Source == s.device && high < st.have {
			return false, err
		}
	}
	return true, nil
}

func allStreams(tx kv.Tx) (out []stream, err error) {
	err = tx.Scan(bRuns, nil, nil, func(k, v []byte) (bool, error) {
		id, err := splitStreamKey(k)
		if err != nil {
			return false, err
		}
		st, err := parseStream(id, v)
		out = append(out, st)
		return err == nil, err
	})
	return out, err
}

func pruneClaims(tx kv.Tx, event string, limit int) (int, error) {
	prefix := ticket.EventPrefix(event)
	var keys [][]byte
	err := tx.Scan(bClaims, prefix, nil, func(k, _ []byte) (bool, error) {
		keys = append(keys, k)
		return len(keys) < limit, nil
	})
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		id := k[len(prefix)+21:] // format, ticket and entry end the unit
		for _, b := range []string{bReleased, bUntrusted} {
			if err := tx.Delete(b, id); err != nil {
				return 0, err
			}
		}
		if err := tx.Delete(bClaims, k); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// pruneLogs moves each run's base over the records at its beginning that nothing
// needs any more.
func pruneLogs(tx kv.Tx, limit int) (int, error) {
	runs, err := allStreams(tx)
	if err != nil {
		return 0, err
	}
	gone := 0
	for _, st := range runs {
		from := st.base
		for st.base < st.have && gone < limit {
			k := logKey(st.Stream, st.base+1)
			needed, err := isNeeded(tx, k)
			if err != nil {
				return gone, err
			}
			if needed {
				break
			}
			if err := tx.Delete(bLog, k); err != nil {
				return gone, err
			}
			st.base++
			gone++
		}
		if st.base == from {
			continue
		}
		if err := putStream(tx, st); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// isNeeded reports whether the record at a log key still says something: a claim
// of an event that is not closed, or the highest version of a feed's subject.
// Events are needed by nobody once they are received.
func isNeeded(tx kv.Tx, at []byte) (bool, error) {
	b, err := tx.Get(bLog, at)
	if err != nil {
		return false, err
	}
	rec, err := ticket.DecodeRecord(b)
	if err != nil {
		return false, nil
	}
	switch {
	case rec.Claim != nil:
		closed, err := tx.Get(bClosed, []byte(rec.Claim.Unit.Event))
		return closed == nil, err
	case rec.Feed != nil:
		was, err := tx.Get(bFeeds, []byte(rec.Feed.Subject))
		return len(was) > 8 && string(was[8:]) == string(at), err
	}
	return false, nil
}
