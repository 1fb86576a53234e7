package wire

import (
	"context"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// onSpend takes a record as its author published it.
func (g *Gate) onSpend(m Msg) {
	from, ok := author(m.Subject)
	if !ok || from == g.o.Device {
		return
	}
	if !isLedger(from) {
		g.peerHeard(from)
	}
	r, err := ticket.DecodeRecord(m.Data)
	switch {
	case err != nil:
		// Its position is unknown; the next head shows it missing, and it is fetched.
		g.count.unreadable.Add(1)
		return
	case !mayWrite(from, r.Source):
		g.count.refused.Add(1)
		g.log.Warn("record refused, its author is another", "author", string(from), "source", string(r.Source))
		return
	}
	a := arrival{from: from, Arrival: ticket.Arrival{Stream: r.Stream(), Pos: r.Pos, Raw: m.Data, Record: &r}}
	select {
	case g.live <- a:
	default:
		g.count.liveDropped.Add(1)
		g.noteHead(r.Stream(), r.Pos)
	}
}

// learnLive hands live records over as they come, those that came together as one
// batch. It does not wait for the commit of one batch before it hands over the
// next: what has arrived must count in a decision however slow the disk is, and the
// store puts what runs at once into one commit.
func (g *Gate) learnLive(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxLearning)
	for {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		batch := g.nextLive(ctx)
		if batch == nil {
			return
		}
		wg.Go(func() {
			defer func() { <-slots }()
			g.learnBatch(ctx, batch)
		})
	}
}

// nextLive waits for a live record and gives it with those behind it; nil: ctx ended.
func (g *Gate) nextLive(ctx context.Context) (batch []ticket.Arrival) {
	select {
	case <-ctx.Done():
		return nil
	case a := <-g.live:
		batch = append(batch, a.Arrival)
	}
	for len(batch) < liveBatch {
		select {
		case a := <-g.live:
			batch = append(batch, a.Arrival)
		default:
			return batch
		}
	}
	return batch
}

func (g *Gate) learnBatch(ctx context.Context, batch []ticket.Arrival) {
	err := g.events.Learn(ctx, true, batch)
	if err != nil {
		g.count.learnFailed.Add(1)
		g.complain("records could not be stored", err)
	} else {
		g.count.learned.Add(uint64(len(batch)))
	}
	for _, a := range batch {
		if err == nil && g.known.took(a.Stream, a.Pos) {
			continue
		}
		g.noteHead(a.Stream, a.Pos)
	}
}

// noteHead notes how far a run is known to go, and wakes the fetching if that is
// further than it has come here.
func (g *Gate) noteHead(s ticket.Stream, pos uint64) {
	if g.known.note(s, pos) {
		signal(g.gap)
	}
}

func (g *Gate) onPeerHead(m Msg) {
	from, ok := author(m.Subject)
	var h Head
	if !ok || from == g.o.Device {
		return
	}
	if err := decode(m.Data, &h); err != nil {
		g.count.unreadable.Add(1)
		return
	}
	g.peerHeard(from)
	if h.Pos > 0 {
		g.noteHead(ticket.Stream{Source: from, Run: h.Run}, h.Pos)
	}
}

func (g *Gate) onLedgerHead(m Msg) {
	from, ok := author(m.Subject)
	var h Head
	if !ok {
		return
	}
	if err := decode(m.Data, &h); err != nil {
		g.count.unreadable.Add(1)
		return
	}
	source := from
	if h.Source != "" {
		source = h.Source
	}
	if !mayWrite(from, source) {
		g.count.refused.Add(1)
		return
	}
	if h.Pos > 0 {
		g.noteHead(ticket.Stream{Source: source, Run: h.Run}, h.Pos)
	}
	if last, seen := g.ledgers.Swap(from, h.Instance); !seen || last != h.Instance {
		g.linkTurned(true) // the ledger has started anew, perhaps from a backup
	}
}

// peerHeard notes a sign of life of another gate.
func (g *Gate) peerHeard(from ticket.Source) {
	now := time.Now()
	if g.link.isHeard(now, from) {
		g.link.heard(now, from)
		return
	}
	g.link.heard(now, from)
	signal(g.turn)
	signal(g.gap) // it may hold what is missing here
}
