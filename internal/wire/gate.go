package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ticket"
)

// Times and sizes of the gate's side (protocol.md, "Messages").
const (
	DefaultPatience = 400 * time.Millisecond // for the ledger's answer (spec, section 2)

	headEvery  = 2 * time.Second
	helloEvery = 30 * time.Second
	queueLen   = 1024 // records waiting to be published, or to be learned
	liveBatch  = 64   // records learned in one transaction as they come

	maxLearning = 64 // such transactions under way
	pingWithin  = 2 * time.Second
)

// GateOptions set a gate's side of the wire up.
type GateOptions struct {
	Device         ticket.Source
	LedgerPatience time.Duration // 0: DefaultPatience

	// HeadInfo gives what heads tell besides position and link: place, clock,
	// mode, note. It is called every 2 s.
	HeadInfo func() Head

	Log *slog.Logger     // nil: slog.Default
	Now func() time.Time // the gate's wall clock, for heads; nil: time.Now
}

// Gate is a gate's side of the wire. All methods may be called at any time and
// none blocks on the network; before Run and after it they do nothing lasting.
type Gate struct {
	conn   Conn
	store  GateStore
	events GateEvents
	o      GateOptions
	log    *slog.Logger

	link  *linkState
	turn  chan struct{} // the link's state may have changed
	out   chan outgoing // to be published
	live  chan arrival  // spends to be learned
	asks  chan ticket.Claim
	peeks chan ticket.Unit
	gone  chan struct{} // something was published: upload it
	gap   chan struct{} // something is known to be missing: fetch it
	doubt chan struct{} // an ask was not answered: probe

	lastAsk atomic.Int64 // nanoseconds since start; 0: none yet
	start   time.Time
	resync  atomic.Uint64 // counts the reasons to say hello at once
	asking  atomic.Int64
	peeking sync.Map // units being peeked at
	ledgers sync.Map // the instance of each ledger process that was heard last

	known *catalogue
	count counters
}

type outgoing struct {
	subject string
	data    []byte
}

type arrival struct {
	ticket.Arrival
	from ticket.Source
}

// NewGate makes the gate's side; Run starts it.
func NewGate(conn Conn, store GateStore, events GateEvents, o GateOptions) (*Gate, error) {
	if !validToken(string(o.Device)) {
		return nil, fmt.Errorf("set up wire: device %q, want an id without dots and blanks", o.Device)
	}
	if conn == nil || store == nil || events == nil {
		return nil, errors.New("set up wire: want a connection, a store and somebody to tell")
	}
	if o.LedgerPatience <= 0 {
		o.LedgerPatience = DefaultPatience
	}
	if o.HeadInfo == nil {
		o.HeadInfo = func() Head { return Head{} }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	now := time.Now()
	return &Gate{
		conn: conn, store: store, events: events, o: o, log: o.Log, start: now,
		link: newLinkState(now, o.LedgerPatience), known: newCatalogue(o.Device),
		doubt: make(chan struct{}, 1), turn: make(chan struct{}, 1), gone: make(chan struct{}, 1), gap: make(chan struct{}, 1),
		out: make(chan outgoing, queueLen), live: make(chan arrival, queueLen),
		asks: make(chan ticket.Claim, queueLen), peeks: make(chan ticket.Unit, queueLen),
	}, nil
}

// Run works until ctx ends, and returns nil then. An error means that the
// connection refused to be used at all.
func (g *Gate) Run(ctx context.Context) error {
	eg, ctx := errgroup.WithContext(ctx)
	if err := g.subscribe(ctx); err != nil {
		return err
	}
	g.link.setConnected(time.Now(), false)
	for _, loop := range []func(context.Context){
		g.watchConnection, g.watchLink, g.probe, g.publishAll, g.publishHeads, g.measurePeers,
		g.learnLive, g.askAll, g.peekAll, g.upstream, g.downstream,
	} {
		eg.Go(func() error { loop(ctx); return nil })
	}
	return eg.Wait()
}

func (g *Gate) subscribe(ctx context.Context) error {
	me := string(g.o.Device)
	for subject, h := range map[string]func(Msg){
		"gate.*.spend":         g.onSpend,
		"ledger.*.spend":       g.onSpend,
		"gate.*.head":          g.onPeerHead,
		"ledger.*.head":        g.onLedgerHead,
		"gate.*.fetch." + me:   g.onFetch,
		"ledger.*.fetch." + me: g.onFetch,
	} {
		err := g.conn.Subscribe(subject, "", func(m Msg) {
			if ctx.Err() == nil {
				h(m)
			}
		})
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
	}
	return nil
}

// Link tells how the gate stands to the ledger and its peers now.
func (g *Gate) Link() ticket.Link { return g.link.link(time.Now()) }

// CaughtUp reports whether everything that could be had has been had since Run
// began, or since the store was found to have lost something: up to the heads
// that the ledger told, or, with the ledger away, to those of all peers heard in
// the last 5 s and one's own earlier runs as they hold them. With nobody there it
// is false: how long to wait is the gate's policy.
func (g *Gate) CaughtUp() bool { return g.known.isCaughtUp() }

// Publish tells everybody of a record that is committed. Without a connection it
// is dropped: the store is the queue, and it will be uploaded.
func (g *Gate) Publish(r ticket.Record) {
	raw, err := r.Encode()
	if err != nil {
		g.log.Error("record cannot be published", "err", err)
		return
	}
	g.send(outgoing{gateSubject(g.o.Device, "spend"), raw})
	signal(g.gone)
}

// PublishVerdict sends a verdict line (JSON) to the operators' page, if anybody
// is there to hear it.
func (g *Gate) PublishVerdict(line []byte) {
	g.send(outgoing{gateSubject(g.o.Device, "verdict"), line})
}

func (g *Gate) send(o outgoing) {
	select {
	case g.out <- o:
	default:
		g.count.outDropped.Add(1)
	}
}

// publishAll publishes what is queued, in order. It has a goroutine of its own
// because a connection that hangs may hold a publisher up for seconds.
func (g *Gate) publishAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-g.out:
			if err := g.conn.Publish(o.subject, o.data); err != nil {
				g.count.outDropped.Add(1)
			}
		}
	}
}

// publishHeads tells one's head every 2 s and on connect, so that a lost last
// record shows.
func (g *Gate) publishHeads(ctx context.Context) {
	connected := g.conn.Connected()
	tick := time.NewTicker(headEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case up := <-connected:
			if up {
				g.publishHead()
			}
		case <-tick.C:
			g.publishHead()
		}
	}
}

func (g *Gate) publishHead() {
	runs, err := g.store.Own()
	if err != nil {
		g.complain("own runs could not be read", err)
		return
	}
	h := g.o.HeadInfo()
	if len(runs) > 0 {
		h.Run, h.Pos = runs[len(runs)-1].Run, runs[len(runs)-1].Pos
	}
	h.Link, h.Time = g.Link().Word(), g.o.Now().UnixNano()
	if data, err := encode(h); err == nil {
		g.send(outgoing{gateSubject(g.o.Device, "head"), data})
	}
}

// watchConnection follows the connection: when it breaks the link is suspect at
// once, when it is back everything is told anew.
func (g *Gate) watchConnection(ctx context.Context) {
	connected := g.conn.Connected()
	for {
		select {
		case <-ctx.Done():
			return
		case up := <-connected:
			g.link.setConnected(time.Now(), up)
			g.linkTurned(up)
		}
	}
}

// linkTurned wakes all that wait for the link; with resync it also says hello.
func (g *Gate) linkTurned(resync bool) {
	if resync {
		g.resync.Add(1)
	}
	signal(g.turn)
	signal(g.gone)
	signal(g.gap)
}

// watchLink tells of changes of the link, those that time brings among them.
func (g *Gate) watchLink(ctx context.Context) {
	for {
		changed, next := g.link.changed(time.Now())
		if changed {
			g.events.LinkChanged()
		}
		select {
		case <-ctx.Done():
			return
		case <-g.turn:
		case <-time.After(next):
		}
	}
}

// answered notes that the ledger answered something.
func (g *Gate) answered(proof bool) {
	rose := g.link.answered(time.Now(), proof)
	if rose {
		g.linkTurned(true)
	}
}

// measurePeers times a round trip to one peer after the other.
func (g *Gate) measurePeers(ctx context.Context) {
	tick := time.NewTicker(headEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		to, ok := g.link.pick(time.Now(), 0, func(p *peer) *time.Time { return &p.timed })
		if !ok {
			continue
		}
		began := time.Now()
		if _, err := g.fetch(ctx, string(to), Fetch{}, pingWithin); err == nil {
			g.link.measure(time.Since(began))
		}
	}
}

// complain logs that something of the gate's own failed; the loops go on.
func (g *Gate) complain(text string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	g.log.Error(text, "err", err)
}
