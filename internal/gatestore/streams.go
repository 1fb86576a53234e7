package gatestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// stream is a row of the runs bucket. For the run that is being written have and
// head are one; for others have is contiguous and head is the highest position held.
type stream struct {
	ticket.Stream
	have, base, head uint64
	opened           uint64 // which opening of this store wrote it, from 1; 0: none
}

func streamKey(s ticket.Stream) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(s.Source), 0), uint64(s.Run))
}

func logKey(s ticket.Stream, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(streamKey(s), pos)
}

func splitStreamKey(k []byte) (ticket.Stream, error) {
	i := bytes.IndexByte(k, 0)
	if i < 1 || len(k) != i+9 {
		return ticket.Stream{}, fmt.Errorf("read run key %x: %w", k, kv.ErrCorrupt)
	}
	return ticket.Stream{Source: ticket.Source(k[:i]), Run: ticket.Run(binary.BigEndian.Uint64(k[i+1:]))}, nil
}

func putStream(tx kv.Tx, s stream) error {
	b := binary.BigEndian.AppendUint64(nil, s.have)
	b = binary.BigEndian.AppendUint64(b, s.base)
	b = binary.BigEndian.AppendUint64(b, s.head)
	return tx.Put(bRuns, streamKey(s.Stream), binary.BigEndian.AppendUint64(b, s.opened))
}

func getStream(tx kv.Tx, id ticket.Stream) (stream, error) {
	b, err := tx.Get(bRuns, streamKey(id))
	if err != nil || b == nil {
		return stream{Stream: id}, err
	}
	return parseStream(id, b)
}

func parseStream(id ticket.Stream, b []byte) (stream, error) {
	if len(b) != 32 {
		return stream{}, fmt.Errorf("read run %s/%s: %d bytes: %w", id.Source, id.Run, len(b), kv.ErrCorrupt)
	}
	return stream{
		Stream: id,
		have:   binary.BigEndian.Uint64(b), base: binary.BigEndian.Uint64(b[8:]), head: binary.BigEndian.Uint64(b[16:]),
		opened: binary.BigEndian.Uint64(b[24:]),
	}, nil
}

// streams lists the runs that pick returns true for, own ones in the order in
// which they were begun.
func (s *Store) streams(pick func(stream) bool) (out []ticket.StreamPos, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		all, err := allStreams(tx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(all, func(a, b stream) int { return cmp.Compare(a.opened, b.opened) })
		out = nil
		for _, st := range all {
			if pick(st) {
				out = append(out, ticket.StreamPos{Source: st.Source, Run: st.Run, Pos: st.have, Base: st.base})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return out, nil
}

// Own gives the runs of this device, heads and bases, oldest first; the last is
// the present one. Those that a lost store wrote and that were fetched back are
// among them: the ledger may lack them still, and only this device may upload them.
func (s *Store) Own() ([]ticket.StreamPos, error) {
	return s.streams(func(st stream) bool { return st.Source == s.device })
}

// Cursors gives, per run of everybody else, how far its records are here without
// a gap.
func (s *Store) Cursors() ([]ticket.StreamPos, error) {
	return s.streams(func(st stream) bool { return st.Source != s.device })
}

// Read gives up to limit records of a run after a position, without a gap and of
// at most maxBytes together (one record may exceed it), with the position of the
// first. Where after is below the run's base they start above it. An own record
// that is damaged is an empty slice.
func (s *Store) Read(id ticket.Stream, after uint64, limit, maxBytes int) (recs [][]byte, from, base, head uint64, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		st, err := getStream(tx, id)
		if err != nil {
			return err
		}
		base, head, recs = st.base, st.have, nil
		from = max(after, st.base) + 1
		size := 0
		for pos := from; pos <= st.have && len(recs) < limit; pos++ {
			rec, err := tx.Get(bLog, logKey(id, pos))
			if err != nil || rec == nil {
				rec = []byte{} // damaged: sent as unreadable, so that nothing waits behind it
			}
			if size += len(rec); size > maxBytes && len(recs) > 0 {
				return nil
			}
			recs = append(recs, rec)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("read run %s/%s: %w", id.Source, id.Run, err)
	}
	return recs, from, base, head, err
}

// SetReceipts stores what the ledger says it has now of the own runs.
func (s *Store) SetReceipts(ctx context.Context, high []ticket.StreamPos) error {
	err := s.kv.Update(ctx, func(tx kv.Tx) error {
		for _, h := range high {
			k, v := streamKey(h.Stream()), binary.BigEndian.AppendUint64(nil, h.Pos)
			was, err := tx.Get(bReceipts, k)
			if err != nil {
				return err
			}
			if bytes.Equal(was, v) {
				continue
			}
			if err := tx.Put(bReceipts, k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store receipts: %w", err)
	}
	return nil
}

// Receipts gives what SetReceipts stored.
func (s *Store) Receipts() (out []ticket.StreamPos, err error) {
	err = s.kv.View(func(tx kv.Tx) error {
		out = nil
		return tx.Scan(bReceipts, nil, nil, func(k, v []byte) (bool, error) {
			id, err := splitStreamKey(k)
			if err != nil || len(v) != 8 {
				return false, fmt.Errorf("read receipt %x: %w", k, kv.ErrCorrupt)
			}
			out = append(out, ticket.StreamPos{Source: id.Source, Run: id.Run, Pos: binary.BigEndian.Uint64(v)})
			return true, nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list receipts: %w", err)
	}
	return out, nil
}

func receipt(tx kv.Tx, id ticket.Stream) (uint64, error) {
	v, err := tx.Get(bReceipts, streamKey(id))
	if err != nil || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}
