package ledger

import (
	"context"
	"fmt"

	"admitone/internal/ticket"
)

// Upload takes records of one run of a gate in order, each once. What cannot be
// read as the record that belongs at its position is set aside, and the
// high-water passes it. The reply comes after the commit and is the only receipt.
func (l *Ledger) Upload(ctx context.Context, from ticket.Source, m Upload) (UploadReply, error) {
	if m.From == 0 || isLedger(from) {
		l.counts.refused.Add(1)
		return UploadReply{}, fmt.Errorf("upload by %s from position %d: %w", from, m.From, ErrForeign)
	}
	var out UploadReply
	s := ticket.Stream{Source: from, Run: m.Run}
	in := make([]arrival, len(m.Records))
	for i, raw := range m.Records {
		in[i] = read(s, m.From+uint64(i), raw)
	}
	for done := false; !done; {
		n := min(len(in), uploadChunk)
		chunk := in[:n]
		in, done = in[n:], n == len(in)
		var aside []uint64
		err := l.update(ctx, func(t *txn) error {
			aside = nil
			for _, a := range chunk {
				bad, err := t.merge(a)
				if err != nil {
					return err
				}
				if bad {
					aside = append(aside, a.pos)
				}
			}
			if err := t.flush(); err != nil {
				return err
			}
			var err error
			out.High, err = t.positions(from)
			out.Time = t.now.UnixNano()
			return err
		})
		if err != nil {
			return UploadReply{}, fmt.Errorf("upload by %s: %w", from, err)
		}
		out.SetAside = append(out.SetAside, aside...)
	}
	return out, nil
}

// positions gives the high-waters of a source's runs.
func (t *txn) positions(source ticket.Source) (out []ticket.StreamPos, err error) {
	err = t.Streams(source, func(s ticket.Stream, r StreamRow) bool {
		out = append(out, ticket.StreamPos{Source: s.Source, Run: s.Run, Pos: r.High, Base: r.Base})
		return true
	})
	return out, err
}

// Spend takes a record that a gate published, as an upload of one that may lie
// beyond a gap.
func (l *Ledger) Spend(ctx context.Context, from ticket.Source, raw []byte) error {
	in, err := l.ownRecords(from, [][]byte{raw})
	if err != nil || len(in) == 0 {
		l.counts.refused.Add(1)
		return fmt.Errorf("record published by %s: %w", from, ErrForeign)
	}
	err = l.update(ctx, func(t *txn) error {
		_, err := t.merge(in[0])
		return err
	})
	return wrap("take published record", err)
}

// Hello notes that a gate is there and how far its runs reach, and tells what is
// held here. Where a gate's base lies above the high-water, the positions between
// are lost and are counted so: they will never come.
func (l *Ledger) Hello(ctx context.Context, from ticket.Source, m Hello) (HelloReply, error) {
	for _, p := range m.Runs {
		if p.Source != from || isLedger(p.Source) {
			l.counts.refused.Add(1)
			return HelloReply{}, fmt.Errorf("hello of %s with a run of %s: %w", from, p.Source, ErrForeign)
		}
	}
	err := l.update(ctx, func(t *txn) error { return t.hello(from, m) })
	if err != nil {
		return HelloReply{}, fmt.Errorf("hello of %s: %w", from, err)
	}
	var out HelloReply
	err = l.view(ctx, func(t *txn) (err error) {
		out = HelloReply{Time: t.now.UnixNano()}
		if out.High, err = t.positions(from); err != nil {
			return err
		}
		return t.Streams("", func(s ticket.Stream, r StreamRow) bool {
			if s.Source == from && r.last() > r.High {
				out.Named = append(out.Named, ticket.StreamPos{Source: s.Source, Run: s.Run, Pos: r.last()})
			}
			if s.Source != from && r.High > r.Base {
				out.Heads = append(out.Heads, ticket.StreamPos{Source: s.Source, Run: s.Run, Pos: r.High, Base: r.Base})
			}
			return true
		})
	})
	if err != nil {
		return HelloReply{}, fmt.Errorf("hello of %s: %w", from, err)
	}
	return out, nil
}

// hello writes what a hello changed; mostly nothing.
func (t *txn) hello(from ticket.Source, m Hello) error {
	for _, p := range m.Runs {
		st, err := t.stream(p.Stream())
		if err != nil {
			return err
		}
		if p.Pos <= st.row.Head && p.Base <= st.row.High {
			continue
		}
		if err := t.rebase(st, p); err != nil {
			return err
		}
	}
	lost, err := t.lost(m.Cursors)
	if err != nil {
		return err
	}
	if err := t.alarmRestored(lost); err != nil {
		return err
	}
	g, err := t.Gate(from)
	if err != nil || g.Place == m.Place && t.now.UnixNano()-g.Hello < int64(helloEvery) {
		return err
	}
	return t.PutGate(from, GateRow{Place: m.Place, Hello: t.now.UnixNano()})
}

// rebase takes a run's head and base from its owner.
func (t *txn) rebase(st *streamState, p ticket.StreamPos) error {
	st.row.Head, st.dirty = max(st.row.Head, p.Pos), true
	if p.Base <= st.row.High {
		return nil
	}
	here := uint64(0)
	err := t.Records(st.Stream, st.row.High, func(pos uint64, _ Kept) bool {
		if pos > p.Base {
			return false
		}
		here++
		return true
	})
	if err != nil {
		return err
	}
	gone := p.Base - st.row.High - here
	st.row.Lost += gone
	st.row.High, st.row.Base = p.Base, max(st.row.Base, p.Base)
	t.say(func() {
		t.l.log.Warn("records lost", "source", p.Source, "run", p.Run, "count", gone, "base", p.Base)
	})
	return t.close(st)
}

// Read gives up to limit records of a run after a position, of at most maxBytes
// together (one may exceed it). With run 0 it lists the runs of the source that
// are held ("": of all sources).
func (l *Ledger) Read(ctx context.Context, s ticket.Stream, after uint64, limit, maxBytes int) (FetchReply, error) {
	var out FetchReply
	err := l.view(ctx, func(t *txn) (err error) {
		out = FetchReply{}
		if s.Run == 0 {
			if limit > 0 {
				out.Held, err = t.positions(s.Source)
			}
			return err
		}
		row, err := t.Stream(s)
		if err != nil {
			return err
		}
		after := max(after, row.Base)
		out.Base, out.Head, out.From = row.Base, row.High, after+1
		size := 0
		return t.Records(s, after, func(pos uint64, k Kept) bool {
			size += len(k.Raw)
			full := len(out.Records) > 0 && size > maxBytes
			if pos != out.From+uint64(len(out.Records)) || len(out.Records) >= limit || full {
				return false
			}
			out.Records = append(out.Records, k.Raw)
			return true
		})
	})
	if err != nil {
		return FetchReply{}, fmt.Errorf("read run %s/%s: %w", s.Source, s.Run, err)
	}
	return out, nil
}

// Beyond gives records of a run from the first one held after a position, whatever
// is missing before it: a gate that lost its store asks everybody for what they
// hold of it, and gives up the rest. Head is the last position ever told of.
func (l *Ledger) Beyond(ctx context.Context, s ticket.Stream, after uint64, limit, maxBytes int) (FetchReply, error) {
	var out FetchReply
	err := l.view(ctx, func(t *txn) error {
		out = FetchReply{}
		row, err := t.Stream(s)
		if err != nil {
			return err
		}
		out.Base, out.Head = row.Base, row.last()
		size := 0
		return t.Records(s, after, func(pos uint64, k Kept) bool {
			size += len(k.Raw)
			if n := len(out.Records); n > 0 && (pos != out.From+uint64(n) || n >= limit || size > maxBytes) {
				return false
			} else if n == 0 {
				out.From = pos
			}
			out.Records = append(out.Records, k.Raw)
			return true
		})
	})
	if err != nil {
		return FetchReply{}, fmt.Errorf("read run %s/%s beyond %d: %w", s.Source, s.Run, after, err)
	}
	return out, nil
}
