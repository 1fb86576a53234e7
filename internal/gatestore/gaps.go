package gatestore

import (
	"context"
	"fmt"
	"strings"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// Tops gives, per run of a source, the highest position that is here, beyond a
// gap or not.
func (s *Store) Tops(source ticket.Source) (out []ticket.StreamPos, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		out = nil
		all, err := allStreams(tx)
		for _, st := range all {
			if st.Source == source {
				out = append(out, ticket.StreamPos{Source: st.Source, Run: st.Run, Pos: st.head, Base: st.base})
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tops of runs: %w", err)
	}
	return out, nil
}

// Beyond gives records of a run from the first one held after a position, whatever
// is missing before it: up to limit without a gap, of at most maxBytes together
// (one may exceed it), and the position of the first.
func (s *Store) Beyond(id ticket.Stream, after uint64, limit, maxBytes int) (recs [][]byte, from uint64, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		recs, from = nil, 0
		size := 0
		return tx.Scan(bLog, streamKey(id), logKey(id, after), func(k, rec []byte) (bool, error) {
			_, pos, err := splitPointer(k)
			if err != nil || pos <= after {
				return err == nil, err
			}
			size += len(rec)
			if len(recs) > 0 && (pos != from+uint64(len(recs)) || size > maxBytes) {
				return false, nil
			}
			if len(recs) == 0 {
				from = pos
			}
			recs = append(recs, rec)
			return len(recs) < limit, nil
		})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read run %s/%s beyond %d: %w", id.Source, id.Run, after, err)
	}
	return recs, from, nil
}

// GiveUp ends an earlier run of this device: what is missing of it below the
// highest record that is here, and up to position to, is nowhere any more. It is
// given as an empty record from then on, and so passes everywhere.
func (s *Store) GiveUp(ctx context.Context, id ticket.Stream, to uint64) (given int, err error) {
	err = s.kv.Update(ctx, func(tx kv.Tx) error {
		given = 0
		st, err := getStream(tx, id)
		if err != nil || id.Source != s.device || id == s.Stream() {
			return err
		}
		for st.head = max(st.head, to); st.have < st.head; st.have++ {
			k := logKey(id, st.have+1)
			was, err := tx.Get(bLog, k)
			if err != nil {
				return err
			}
			if was != nil {
				continue
			}
			given++
			if err := tx.Put(bLog, k, nil); err != nil {
				return err
			}
		}
		return putStream(tx, st)
	})
	if err != nil {
		return 0, fmt.Errorf("give up what run %s lacks: %w", id.Run, err)
	}
	return given, nil
}

// Devices gives the other gates that may hold records: those that are enrolled and
// those that wrote any, but for the ones that were given up or replaced.
func (s *Store) Devices() (out []ticket.Source, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		out = nil
		there := map[ticket.Source]bool{}
		all, err := allStreams(tx)
		if err != nil {
			return err
		}
		for _, st := range all {
			there[st.Source] = !strings.Contains(string(st.Source), "/") // which ledgers' have
		}
		prefix := ticket.GateSubject("")
		err = tx.Scan(bFeeds, []byte(prefix), nil, func(k, _ []byte) (bool, error) {
			there[ticket.Source(strings.TrimPrefix(string(k), prefix))] = true
			return true, nil
		})
		if err != nil {
			return err
		}
		delete(there, s.device)
		for d, is := range there {
			f, err := feedOf(tx, ticket.GateSubject(d))
			if err != nil {
				return err
			}
			if is && (f == nil || f.Gate.State == enrolled && f.Gate.Role != "broker") {
				out = append(out, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	return out, nil
}
