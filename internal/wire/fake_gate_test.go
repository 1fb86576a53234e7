package wire_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// shelf holds runs of records by position, as a gate's store and a ledger do.
type shelf struct {
	runs  map[ticket.Stream]map[uint64][]byte
	bases map[ticket.Stream]uint64
	till  map[ticket.Stream]uint64 // no gap up to here, as far as was looked
	order []ticket.Stream
}

func newShelf() *shelf {
	return &shelf{runs: make(map[ticket.Stream]map[uint64][]byte), bases: make(map[ticket.Stream]uint64), till: make(map[ticket.Stream]uint64)}
}

func (s *shelf) put(st ticket.Stream, pos uint64, raw []byte) {
	if s.runs[st] == nil {
		s.runs[st] = make(map[uint64][]byte)
		s.order = append(s.order, st)
	}
	if _, there := s.runs[st][pos]; !there {
		s.runs[st][pos] = raw
	}
}

// cursor is how far a run goes without a gap.
func (s *shelf) cursor(st ticket.Stream) uint64 {
	pos := max(s.bases[st], s.till[st])
	for {
		if _, ok := s.runs[st][pos+1]; !ok {
			s.till[st] = pos
			return pos
		}
		pos++
	}
}

func (s *shelf) list(want func(ticket.Stream) bool) (list []wire.StreamPos) {
	for _, st := range s.order {
		if want(st) {
			list = append(list, wire.StreamPos{Source: st.Source, Run: st.Run, Pos: s.cursor(st), Base: s.bases[st]})
		}
	}
	return list
}

func (s *shelf) read(st ticket.Stream, after uint64, limit int) (recs [][]byte, from, base, head uint64) {
	base, head = s.bases[st], s.cursor(st)
	from = max(after, base) + 1
	for pos := from; pos <= head && len(recs) < limit; pos++ {
		recs = append(recs, s.runs[st][pos])
	}
	return recs, from, base, head
}

// top is the highest position of a run that is here, beyond a gap or not.
func (s *shelf) top(st ticket.Stream) (pos uint64) {
	for p := range s.runs[st] {
		pos = max(pos, p)
	}
	return pos
}

func (s *shelf) tops(source ticket.Source) (list []wire.StreamPos) {
	for _, st := range s.order {
		if st.Source == source {
			list = append(list, wire.StreamPos{Source: st.Source, Run: st.Run, Pos: s.top(st), Base: s.bases[st]})
		}
	}
	return list
}

func (s *shelf) beyond(st ticket.Stream, after uint64, limit int) (recs [][]byte, from uint64) {
	for pos := after + 1; pos <= s.top(st) && len(recs) < limit; pos++ {
		raw, there := s.runs[st][pos]
		if !there && len(recs) > 0 {
			break
		}
		if there {
			recs = append(recs, raw)
			from = pos + 1 - uint64(len(recs))
		}
	}
	return recs, from
}

func (s *shelf) clone() *shelf {
	c := newShelf()
	c.order = slices.Clone(s.order)
	for st, recs := range s.runs {
		c.runs[st] = make(map[uint64][]byte)
		for pos, raw := range recs {
			c.runs[st][pos] = raw
		}
	}
	for st, b := range s.bases {
		c.bases[st] = b
	}
	return c
}

// gate is a gate's store and loop, as far as the wire sees them.
type gate struct {
	id   ticket.Source
	site string
	net  *wiretest.Conn
	wire *wire.Gate
	stop func()

	mu       sync.Mutex
	shelf    *shelf
	run      ticket.Run
	receipts []wire.StreamPos
	sets     int // calls of SetReceipts
	answers  []ticket.Answered
	cited    []bool // whether the claim that an answer cites was known then
	ahead    []string
	aside    int
	live     int
	links    []string
	caught   []bool
	times    int
	failNext int           // Learn fails so many times
	disk     time.Duration // Learn takes so long
	handed   int           // live records that Learn was given
	torn     ticket.Stream // Read of it fails
}

func (g *gate) Own() ([]wire.StreamPos, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.shelf.list(func(st ticket.Stream) bool { return st.Source == g.id && st.Run != g.run })
	current := ticket.Stream{Source: g.id, Run: g.run}
	return append(own, wire.StreamPos{Source: g.id, Run: g.run, Pos: g.shelf.cursor(current), Base: g.shelf.bases[current]}), nil
}

func (g *gate) Cursors() ([]wire.StreamPos, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shelf.list(func(st ticket.Stream) bool { return st.Source != g.id }), nil
}

func (g *gate) Read(s ticket.Stream, after uint64, limit, _ int) ([][]byte, uint64, uint64, uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s == g.torn {
		return nil, 0, 0, 0, fmt.Errorf("read run %s: told to fail", s.Run)
	}
	recs, from, base, head := g.shelf.read(s, after, limit)
	return recs, from, base, head, nil
}

func (g *gate) Tops(source ticket.Source) ([]wire.StreamPos, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shelf.tops(source), nil
}

func (g *gate) Beyond(s ticket.Stream, after uint64, limit, _ int) ([][]byte, uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	recs, from := g.shelf.beyond(s, after, limit)
	return recs, from, nil
}

func (g *gate) GiveUp(_ context.Context, s ticket.Stream, to uint64) (given int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for pos := uint64(1); pos <= max(to, g.shelf.top(s)); pos++ {
		if _, there := g.shelf.runs[s][pos]; !there {
			g.shelf.put(s, pos, nil)
			given++
		}
	}
	return given, nil
}

func (g *gate) Devices() (list []ticket.Source, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, st := range g.shelf.order {
		if st.Source != g.id && !strings.Contains(string(st.Source), "/") && !slices.Contains(list, st.Source) {
			list = append(list, st.Source)
		}
	}
	return list, nil
}

func (g *gate) Skip(_ context.Context, s ticket.Stream, base uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shelf.runs[s] == nil {
		g.shelf.runs[s] = make(map[uint64][]byte)
		g.shelf.order = append(g.shelf.order, s)
	}
	g.shelf.bases[s] = max(base, g.shelf.bases[s])
	return nil
}

func (g *gate) Unreceipted(u ticket.Unit) ([][]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out [][]byte
	head := g.shelf.cursor(ticket.Stream{Source: g.id, Run: g.run})
	for pos := max(head, 20) - 19; pos <= head; pos++ { // enough for a test
		raw := g.shelf.runs[ticket.Stream{Source: g.id, Run: g.run}][pos]
		if r, err := ticket.DecodeRecord(raw); err == nil && r.Claim != nil && r.Claim.Unit == u {
			out = append(out, raw)
		}
	}
	return out, nil
}

func (g *gate) SetReceipts(_ context.Context, high []wire.StreamPos) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.receipts = slices.Clone(high)
	g.sets++
	return nil
}

func (g *gate) Receipts() ([]wire.StreamPos, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.receipts, nil
}

func (g *gate) Learn(_ context.Context, live bool, arrived []ticket.Arrival) error {
	g.mu.Lock()
	if live {
		g.handed += len(arrived)
	}
	disk := g.disk
	g.mu.Unlock()
	time.Sleep(disk)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failNext > 0 {
		g.failNext--
		return fmt.Errorf("store records: told to fail")
	}
	for _, a := range arrived {
		if a.Record == nil {
			g.aside++
		}
		g.shelf.put(a.Stream, a.Pos, a.Raw)
	}
	if live {
		g.live += len(arrived)
	}
	return nil
}

func (g *gate) Answered(a ticket.Answered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = append(g.answers, a)
	if !a.First.IsZero() {
		_, known := g.shelf.runs[ticket.Stream{Source: a.First.Gate, Run: a.First.Run}][a.First.Pos]
		g.cited = append(g.cited, known)
	}
}

func (g *gate) LedgerTime(unixNano, roundTrip int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.times++
}

func (g *gate) LinkChanged() {
	word := g.wire.Link().Word()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.links = append(g.links, word)
}

func (g *gate) OwnRunAhead(s ticket.Stream, pos uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ahead = append(g.ahead, fmt.Sprintf("%s to %d", s.Run, pos))
}

func (g *gate) CatchUpChanged(caughtUp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caught = append(g.caught, caughtUp)
}

// write commits a record of the gate's current run and gives it.
func (g *gate) write(r ticket.Record) ticket.Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := ticket.Stream{Source: g.id, Run: g.run}
	r.Source, r.Run, r.Pos = g.id, g.run, g.shelf.cursor(st)+1
	if r.Claim != nil {
		r.Claim.ID = ticket.ClaimID{Gate: g.id, Run: g.run, Pos: r.Pos}
	}
	raw, err := r.Encode()
	if err != nil {
		panic(err)
	}
	g.shelf.put(st, r.Pos, raw)
	return r
}

// event commits an event and publishes it.
func (g *gate) event() ticket.Record {
	r := g.write(ticket.Record{Event: &ticket.Event{Type: ticket.EventExit, Place: string(g.id)}})
	g.wire.Publish(r)
	return r
}

// claim commits a claim, publishes it and asks.
func (g *gate) claim(n byte) ticket.Claim {
	r := g.write(ticket.Record{Claim: &ticket.Claim{State: ticket.Pending, Lease: time.Minute, Place: string(g.id), Unit: unit(n)}})
	g.wire.Publish(r)
	g.wire.Ask(*r.Claim)
	return *r.Claim
}

func unit(n byte) ticket.Unit {
	return ticket.Unit{Event: "fair", Format: ticket.FormatA1, Ticket: ticket.ID{n}}
}

// see reads the gate's state under its lock.
func see[T any](g *gate, f func() T) T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f()
}

func (g *gate) has(s ticket.Source, run ticket.Run) uint64 {
	return see(g, func() uint64 { return g.shelf.cursor(ticket.Stream{Source: s, Run: run}) })
}
