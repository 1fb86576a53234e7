package wire_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
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
	ahead    []string
	aside    int
	live     int
	links    []string
	caught   []bool
	times    int
	failNext int // Learn fails so many times
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
	recs, from, base, head := g.shelf.read(s, after, limit)
	return recs, from, base, head, nil
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

// world is gates and a ledger on one network, within a synctest bubble.
type world struct {
	t    *testing.T
	net  *wiretest.Net
	runs ticket.Run
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, net: wiretest.NewNet(seed)}
	t.Cleanup(w.net.Close)
	return w
}

func (w *world) newRun() ticket.Run { w.runs++; return w.runs }

// gate makes a gate with an empty store and runs it.
func (w *world) gate(id ticket.Source) *gate { return w.gateAt("", id) }

func (w *world) gateAt(site string, id ticket.Source) *gate {
	g := &gate{id: id, site: site, shelf: newShelf()}
	w.start(g)
	return g
}

// start runs a gate from the store it has, under a new run and over a new
// connection.
func (w *world) start(g *gate) {
	g.net = w.net.ConnAt(g.site, string(g.id))
	w.startOn(g, g.net)
	stop, conn := g.stop, g.net
	g.stop = func() { stop(); conn.Close() }
}

func (w *world) startOn(g *gate, conn wire.Conn) {
	g.run = w.newRun()
	var err error
	g.wire, err = wire.NewGate(conn, g, g, wire.GateOptions{Device: g.id, Log: quiet(),
		HeadInfo: func() wire.Head { return wire.Head{Place: string(g.id)} }})
	if err != nil {
		w.t.Fatal(err)
	}
	g.stop = w.run(g.wire.Run)
}

func (w *world) ledger(process string) *center {
	c := &center{process: process, shelf: newShelf()}
	w.startLedger(c)
	return c
}

// startLedger runs a ledger from the store it has, over a new connection.
func (w *world) startLedger(c *center) {
	c.net = w.net.Conn("ledger-" + c.process)
	w.startLedgerOn(c, c.net)
	stop, conn := c.stop, c.net
	c.stop = func() { stop(); conn.Close() }
}

func (w *world) startLedgerOn(c *center, conn wire.Conn) {
	c.run, c.feeds = w.newRun(), make(chan ticket.Record, 1000)
	c.asks, c.answers, c.units = map[ticket.ClaimID]int{}, map[ticket.ClaimID]ticket.Answer{}, map[ticket.Unit]ticket.ClaimID{}
	var err error
	if c.wire, err = wire.NewLedger(conn, c, wire.LedgerOptions{Process: c.process, Log: quiet()}); err != nil {
		w.t.Fatal(err)
	}
	c.stop = w.run(c.wire.Run)
}

// run runs until it is stopped, at the latest at the end of the test.
func (w *world) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return stop
}
