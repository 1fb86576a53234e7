package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"admitone/internal/ticket"
)

// Times of the downstream.
const (
	gapGrace  = 100 * time.Millisecond // what seems missing may be in the queue
	fetchFor  = 3 * time.Second
	listEvery = helloEvery // how often a peer is asked what it holds while the ledger is away
)

// downstream fetches what is known to exist and is not here: from its owner if
// that was heard lately, else from the ledger, else from any peer that holds it.
// It blocks neither uploads nor asks.
func (g *Gate) downstream(ctx context.Context) {
	wasUp, gaps := false, gaps{g: g, since: make(map[ticket.Stream]time.Time)}
	for ctx.Err() == nil {
		now := time.Now()
		if up := g.link.link(now).Up; up != wasUp {
			wasUp = up
			g.known.tryAll()
		}
		g.askPeersForOwnRuns(ctx)
		progress := g.askPeersWhatTheyHold(ctx)
		due, next, err := g.missing(now)
		if err != nil {
			g.complain("cursors could not be read", err)
			next = retryMin
		}
		for _, s := range due {
			if ctx.Err() == nil && g.fetchSome(ctx, s) {
				progress = true
			}
		}
		closed, left := gaps.close(ctx)
		if left {
			next = min(next, gapRest)
		}
		g.judgeCaughtUp()
		if !progress && !closed {
			g.awaitGap(ctx, next)
		}
	}
}

func (g *Gate) missing(now time.Time) ([]ticket.Stream, time.Duration, error) {
	own, cursors, err := g.positions()
	if err != nil {
		return nil, 0, err
	}
	g.known.read(own, cursors)
	due, next := g.known.missing(now)
	return due, next, nil
}

// awaitGap waits until something seems to be missing, and a little longer. While
// not caught up it looks again every second: that changes with time alone.
func (g *Gate) awaitGap(ctx context.Context, next time.Duration) {
	if !g.known.isCaughtUp() {
		next = min(next, time.Second)
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(next):
		return
	case <-g.gap:
	}
	select {
	case <-ctx.Done():
	case <-time.After(gapGrace):
	}
}

func (g *Gate) judgeCaughtUp() {
	if g.known.isCaughtUp() {
		return
	}
	now := time.Now()
	if g.known.reached(g.link.link(now).Up, g.link.peersListed(now)) && g.known.setCaughtUp(true) {
		g.events.CatchUpChanged(true)
	}
}

// askPeersWhatTheyHold asks, while the ledger is away, one peer after the other
// what runs it holds, this gate's own earlier ones among them.
func (g *Gate) askPeersWhatTheyHold(ctx context.Context) (progress bool) {
	for ctx.Err() == nil && !g.link.link(time.Now()).Up {
		to, ok := g.link.pick(time.Now(), listEvery, func(p *peer) *time.Time { return &p.tried })
		if !ok {
			return progress
		}
		r, err := g.fetch(ctx, string(to), Fetch{Limit: maxStreamsList}, fetchFor)
		if err != nil {
			continue
		}
		progress = true
		g.heldElsewhere(r.Held)
		g.link.listed(time.Now(), to)
		for _, p := range r.Held {
			g.known.note(ticket.Stream{Source: p.Source, Run: p.Run}, p.Pos)
		}
	}
	return progress
}

// askPeersForOwnRuns asks each peer once what it holds of this gate's own runs,
// also while the ledger is there: a store that was lost during an outage of the
// ledger had told its last records to peers alone.
func (g *Gate) askPeersForOwnRuns(ctx context.Context) {
	for ctx.Err() == nil {
		to, ok := g.link.pick(time.Now(), listEvery, func(p *peer) *time.Time { return &p.asked })
		if !ok {
			return
		}
		r, err := g.fetch(ctx, string(to), Fetch{Source: g.o.Device, Limit: maxStreamsList, Beyond: true}, fetchFor)
		if err != nil {
			continue
		}
		g.link.toldOwn(time.Now(), to)
		g.heldElsewhere(r.Held)
	}
}

// fetchSome fetches one batch of a run from whoever gives it, and reports whether
// it got further.
func (g *Gate) fetchSome(ctx context.Context, s ticket.Stream) bool {
	now, after := time.Now(), g.known.has(s)
	for _, from := range g.holders(now, s) {
		r, err := g.fetch(ctx, from, Fetch{Source: s.Source, Run: s.Run, After: after, Limit: FetchMax}, fetchFor)
		if err != nil {
			continue
		}
		arrived, err := g.arrivals(s, after, r)
		if err != nil {
			g.count.refused.Add(1)
			g.log.Warn("fetched records refused", "from", from, "source", string(s.Source), "err", err)
			continue
		}
		if len(arrived) == 0 && r.Base <= after {
			g.count.fetchEmpty.Add(1)
			continue
		}
		if err := g.keep(ctx, s, after, r.Base, arrived); err != nil {
			g.count.learnFailed.Add(1)
			g.complain("fetched records could not be stored", err)
			break
		}
		if g.moved(s, after) {
			return true
		}
		break
	}
	g.known.putOff(s, time.Now())
	return false
}

// moved reports whether the store's cursor of a run is beyond a position.
func (g *Gate) moved(s ticket.Stream, after uint64) bool {
	own, cursors, err := g.positions()
	if err != nil {
		g.complain("cursors could not be read", err)
		return false
	}
	g.known.read(own, cursors)
	if g.known.has(s) <= after {
		g.log.Error("fetched records were stored, but the cursor did not move", "source", string(s.Source), "position", after)
		return false
	}
	g.known.got(s)
	if s.Source == g.o.Device {
		signal(g.gone) // the ledger may lack it, too
	}
	return true
}

// holders lists whom to ask for a run, as a subject's last token, the best first.
func (g *Gate) holders(now time.Time, s ticket.Stream) []string {
	var list []string
	if s.Source != g.o.Device && g.link.isHeard(now, s.Source) {
		list = append(list, string(s.Source))
	}
	if g.link.link(now).Up {
		list = append(list, ledgerName)
	}
	others := g.link.others(now, s.Source)
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, o := range others[:min(len(others), 3)] {
		list = append(list, string(o))
	}
	return list
}

// fetch asks one peer, or the ledger.
func (g *Gate) fetch(ctx context.Context, to string, f Fetch, within time.Duration) (FetchReply, error) {
	data, err := encode(f)
	if err != nil {
		return FetchReply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r := request[FetchReply](ctx, g.conn, gateSubject(g.o.Device, "fetch."+to), data)
	return r.value, r.err
}

// arrivals checks what a fetch gave: positions without a gap from where it was
// asked, or from the base, and each record that can be read must be of its
// position. One that cannot be read is passed on raw.
func (g *Gate) arrivals(s ticket.Stream, after uint64, r FetchReply) ([]ticket.Arrival, error) {
	list, unreadable, err := readFetched(s, after, r)
	g.count.unreadable.Add(uint64(unreadable))
	return list, err
}

func readFetched(s ticket.Stream, after uint64, r FetchReply) (list []ticket.Arrival, unreadable int, err error) {
	if len(r.Records) == 0 {
		return nil, 0, nil
	}
	if want := max(after, r.Base) + 1; r.From != want {
		return nil, 0, fmt.Errorf("read fetched records: from %d, want %d", r.From, want)
	}
	if len(r.Records) > FetchMax {
		return nil, 0, errors.New("read fetched records: too many")
	}
	for i, raw := range r.Records {
		a := ticket.Arrival{Stream: s, Pos: r.From + uint64(i), Raw: raw}
		rec, err := ticket.DecodeRecord(raw)
		switch {
		case err != nil:
			unreadable++
		case rec.Stream() != s || rec.Pos != a.Pos:
			return nil, unreadable, fmt.Errorf("read fetched records: %s/%s/%d at position %d of %s/%s",
				rec.Source, rec.Run, rec.Pos, a.Pos, s.Source, s.Run)
		default:
			a.Record = &rec
		}
		list = append(list, a)
	}
	return list, unreadable, nil
}

// keep stores what was fetched.
func (g *Gate) keep(ctx context.Context, s ticket.Stream, after, base uint64, arrived []ticket.Arrival) error {
	if base > after {
		if err := g.store.Skip(ctx, s, base); err != nil {
			return fmt.Errorf("skip pruned positions: %w", err)
		}
	}
	if len(arrived) == 0 {
		return nil
	}
	if err := g.events.Learn(ctx, false, arrived); err != nil {
		return err
	}
	g.count.fetches.Add(1)
	g.count.fetched.Add(uint64(len(arrived)))
	return nil
}
