package wire_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// center is the ledger behind the wire, as far as the wire sees it.
type center struct {
	process string
	net     *wiretest.Conn
	wire    *wire.Ledger
	stop    func()

	mu       sync.Mutex
	shelf    *shelf
	run      ticket.Run
	feeds    chan ticket.Record
	asks     map[ticket.ClaimID]int
	answers  map[ticket.ClaimID]ticket.Answer
	units    map[ticket.Unit]ticket.ClaimID
	uploads  []wire.Upload
	froms    []ticket.Source
	spends   int
	hellos   int
	verdicts int
	blocked  chan struct{} // asks wait for it; nil: they do not
	lists    int
	list     []byte // the signed gate list; nil: some other bytes
}

func (c *center) Ask(ctx context.Context, from ticket.Source, m wire.Ask) (wire.AskReply, error) {
	c.mu.Lock()
	blocked := c.blocked
	c.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
			return wire.AskReply{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks[m.Claim]++
	r := wire.AskReply{Claim: m.Claim, Time: time.Now().UnixNano()}
	if _, stored := c.answers[m.Claim]; !stored {
		c.answers[m.Claim] = ticket.AnswerFirst
		if _, taken := c.units[m.Unit]; taken {
			c.answers[m.Claim] = ticket.AnswerSeen
		} else {
			c.units[m.Unit] = m.Claim
		}
	}
	r.Answer = c.answers[m.Claim]
	if first := c.units[m.Unit]; r.Answer == ticket.AnswerSeen {
		r.First = &wire.First{Claim: first, Place: string(first.Gate), State: ticket.Admitted}
		if raw := c.shelf.runs[ticket.Stream{Source: first.Gate, Run: first.Run}][first.Pos]; raw != nil {
			r.Records = [][]byte{raw}
		}
	}
	for _, raw := range m.Records {
		if rec, err := ticket.DecodeRecord(raw); err == nil {
			c.shelf.put(rec.Stream(), rec.Pos, raw)
		}
	}
	return r, nil
}

func (c *center) Peek(_ context.Context, _ ticket.Source, m wire.Peek) (wire.PeekReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := wire.PeekReply{Reason: ticket.OK, Time: time.Now().UnixNano()}
	if first, taken := c.units[m.Unit]; taken {
		r.Reason = ticket.AlreadyUsed
		r.Records = [][]byte{c.shelf.runs[ticket.Stream{Source: first.Gate, Run: first.Run}][first.Pos]}
	}
	return r, nil
}

func (c *center) Upload(_ context.Context, from ticket.Source, m wire.Upload) (wire.UploadReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uploads, c.froms = append(c.uploads, m), append(c.froms, from)
	st := ticket.Stream{Source: from, Run: m.Run}
	var aside []uint64
	for i, raw := range m.Records {
		pos := m.From + uint64(i)
		if r, err := ticket.DecodeRecord(raw); err != nil || r.Stream() != st || r.Pos != pos {
			aside = append(aside, pos)
		}
		c.shelf.put(st, pos, raw)
	}
	if c.shelf.cursor(st) < m.From-1 {
		c.shelf.bases[st] = m.From - 1 // pruned at the gate: lost
	}
	return wire.UploadReply{High: c.of(from), SetAside: aside, Time: time.Now().UnixNano()}, nil
}

func (c *center) of(from ticket.Source) []wire.StreamPos {
	return c.shelf.list(func(st ticket.Stream) bool { return st.Source == from })
}

func (c *center) Hello(_ context.Context, from ticket.Source, m wire.Hello) (wire.HelloReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hellos++
	others := c.shelf.list(func(st ticket.Stream) bool { return st.Source != from })
	return wire.HelloReply{High: c.of(from), Heads: others, Time: time.Now().UnixNano()}, nil
}

func (c *center) Read(_ context.Context, s ticket.Stream, after uint64, limit, _ int) (wire.FetchReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recs, from, base, head := c.shelf.read(s, after, limit)
	return wire.FetchReply{Records: recs, From: from, Base: base, Head: head}, nil
}

func (c *center) Beyond(_ context.Context, s ticket.Stream, after uint64, limit, _ int) (wire.FetchReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recs, from := c.shelf.beyond(s, after, limit)
	return wire.FetchReply{Records: recs, From: from, Head: c.shelf.top(s)}, nil
}

func (c *center) Learn(_ context.Context, arrived []ticket.Arrival) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range arrived {
		c.shelf.put(a.Stream, a.Pos, a.Raw)
	}
	return nil
}

func (c *center) Spend(context.Context, ticket.Source, []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spends++
	return nil
}

func (c *center) Heard(ticket.Source, wire.Head) {}

func (c *center) Verdict(ticket.Source, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts++
}

func (c *center) Feeds() <-chan ticket.Record { return c.feeds }

func (c *center) Own() []wire.StreamPos {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := wire.LedgerSource(c.process)
	return c.shelf.list(func(st ticket.Stream) bool {
		return st.Run == c.run && (st.Source == me || st.Source == "http/door")
	})
}

func (c *center) GateList(context.Context) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	if c.list != nil {
		return c.list, nil
	}
	return []byte(fmt.Sprint("list ", len(c.shelf.order))), nil
}

// feed commits a feed record, and hands it to be published.
func (c *center) feed(source ticket.Source, f *ticket.Feed) {
	c.mu.Lock()
	st := ticket.Stream{Source: source, Run: c.run}
	r := ticket.Record{Source: source, Run: c.run, Pos: c.shelf.cursor(st) + 1, Feed: f}
	raw, err := r.Encode()
	if err != nil {
		panic(err)
	}
	c.shelf.put(st, r.Pos, raw)
	c.mu.Unlock()
	c.feeds <- r
}

func revoke(n byte, version uint64) *ticket.Feed {
	id := ticket.ID{n}
	return &ticket.Feed{Subject: ticket.RevokeSubject(ticket.FormatA1, id), Version: version,
		Revoke: &ticket.FeedRevoke{Format: ticket.FormatA1, Ticket: id, Revoked: true}}
}

func (c *center) has(s ticket.Source, run ticket.Run) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shelf.cursor(ticket.Stream{Source: s, Run: run})
}
