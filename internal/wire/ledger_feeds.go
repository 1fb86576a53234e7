package wire

import (
	"bytes"
	"context"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// repairAfter is how long a gate has to be silent before the ledger fetches what
// it lost of that gate's records from another: until then it uploads them itself.
const repairAfter = time.Minute

// publishFeeds publishes what this process wrote, as it is committed.
func (l *Ledger) publishFeeds(ctx context.Context) {
	feeds := l.svc.Feeds()
	for {
		select {
		case <-ctx.Done():
			return
		case r, open := <-feeds:
			if !open {
				feeds = nil
				continue
			}
			l.publishFeed(r)
		}
	}
}

func (l *Ledger) publishFeed(r ticket.Record) {
	raw, err := r.Encode()
	if err != nil {
		l.log.Error("record cannot be published", "err", err)
		return
	}
	// Lost without a connection: heads show it, and gates fetch it.
	_ = l.conn.Publish(ledgerSubject(l.o.Process, "spend"), raw)
	if r.Feed != nil && r.Feed.Gate != nil {
		signal(l.gates)
	}
}

// publishHeads tells the heads of the runs that this process writes, every 2 s
// and on connect.
func (l *Ledger) publishHeads(ctx context.Context) {
	connected := l.conn.Connected()
	tick := time.NewTicker(headEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case up := <-connected:
			if up {
				l.publishOwn()
			}
		case <-tick.C:
			l.publishOwn()
		}
	}
}

func (l *Ledger) publishOwn() {
	me := LedgerSource(l.o.Process)
	own := l.svc.Own()
	if !slices.ContainsFunc(own, func(p StreamPos) bool { return p.Source == me }) {
		own = append(own, StreamPos{Source: me}) // nothing written yet; it is there all the same
	}
	for _, p := range own {
		h := Head{Run: p.Run, Pos: p.Pos, Time: l.o.Now().UnixNano(), Instance: l.instance}
		if p.Source != me {
			h.Source = p.Source
		}
		if data, err := encode(h); err == nil {
			_ = l.conn.Publish(ledgerSubject(l.o.Process, "head"), data) // told again in 2 s
		}
	}
}

// publishGates publishes the signed list of devices on connect, and when a feed
// says that it has changed.
func (l *Ledger) publishGates(ctx context.Context) {
	connected := l.conn.Connected()
	var told []byte
	for {
		select {
		case <-ctx.Done():
			return
		case up := <-connected:
			if up {
				told = nil
			}
		case <-l.gates:
		}
		list, err := l.svc.GateList(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Error("gate list could not be read", "err", err)
		case bytes.Equal(list, told):
		case l.conn.Publish(ledgerSubject(l.o.Process, "gates"), list) == nil:
			told = list
		}
	}
}

// repair is a run that a gate holds further than this ledger.
type repair struct {
	gate   ticket.Source // who holds it
	stream ticket.Stream
	after  uint64
	head   uint64
}

// hello serves one hello, and notes what the gate has and this ledger lost: its
// own feeds, which nobody else can give back, and what gates wrote that have not
// been heard for long.
func (l *Ledger) hello(ctx context.Context, from ticket.Source, m Msg) (any, error) {
	var h Hello
	if err := decode(m.Data, &h); err != nil {
		l.count.unreadable.Add(1)
		return nil, err
	}
	r, err := l.svc.Hello(ctx, from, h)
	if err != nil {
		return nil, err
	}
	have := make(map[ticket.Stream]uint64, len(r.Heads))
	for _, p := range r.Heads {
		have[ticket.Stream{Source: p.Source, Run: p.Run}] = p.Pos
	}
	for _, p := range h.Cursors {
		s := ticket.Stream{Source: p.Source, Run: p.Run}
		if p.Pos > have[s] && p.Source != from && l.lost(s) {
			l.noteRepair(repair{gate: from, stream: s, after: have[s], head: p.Pos})
		}
	}
	return r, nil
}

// lost reports whether a run that is not here must be had from others.
func (l *Ledger) lost(s ticket.Stream) bool {
	if central(s.Source) {
		return true
	}
	last := l.start
	if at, ok := l.heard.Load(s.Source); ok {
		last = at.(time.Time)
	}
	return time.Since(last) > repairAfter
}

func (l *Ledger) noteRepair(r repair) {
	select {
	case l.repairs <- r:
	default: // the next hello names it again
	}
}

// repair fetches what was lost, one batch after the other.
func (l *Ledger) repair(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-l.repairs:
			l.fetchBack(ctx, r)
		}
	}
}

func (l *Ledger) fetchBack(ctx context.Context, r repair) {
	for r.after < r.head && ctx.Err() == nil {
		n, err := l.fetchBatch(ctx, r)
		if err != nil {
			if !quiet(err) {
				l.log.Error("lost records could not be fetched back", "gate", string(r.gate), "source", string(r.stream.Source), "err", err)
			}
			return // the next hello names it again
		}
		if n == 0 {
			return
		}
		r.after += n
	}
}

// fetchBatch gives by how much it got further.
func (l *Ledger) fetchBatch(ctx context.Context, r repair) (uint64, error) {
	data, err := encode(Fetch{Source: r.stream.Source, Run: r.stream.Run, After: r.after, Limit: FetchMax})
	if err != nil {
		return 0, err
	}
	ask, cancel := context.WithTimeout(ctx, fetchFor)
	defer cancel()
	reply := request[FetchReply](ask, l.conn, ledgerSubject(l.o.Process, "fetch."+string(r.gate)), data)
	if reply.err != nil {
		return 0, reply.err
	}
	arrived, unreadable, err := readFetched(r.stream, r.after, reply.value)
	l.count.unreadable.Add(uint64(unreadable))
	if err != nil {
		l.count.refused.Add(1)
		return 0, err
	}
	if len(arrived) == 0 {
		return 0, nil
	}
	if err := l.svc.Learn(ctx, arrived); err != nil {
		return 0, err
	}
	l.count.repaired.Add(uint64(len(arrived)))
	return arrived[len(arrived)-1].Pos - r.after, nil
}
