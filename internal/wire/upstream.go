package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// Times of the upstream.
const (
	coalesce      = 20 * time.Millisecond // records published within it are uploaded together
	helloFor      = 10 * time.Second
	uploadFor     = 10 * time.Second
	upstreamRetry = time.Second
	receiptEvery  = 5 * time.Second  // how long receipts wait to be stored together
	liveFor       = time.Second      // how long after an ask uploads stay small
	passOverFor   = 30 * time.Second // how long a run is left alone that could not be uploaded
)

// upstream says hello and uploads, one request at a time, so that what the ledger
// said last is what it has: a late reply cannot bring an older state back.
type upstream struct {
	g     *Gate
	high  map[ticket.Run]uint64    // what the ledger has of the own runs, as it said last
	over  map[ticket.Run]time.Time // runs that are passed over, each until its time
	ready bool                     // it said so since the last failure
	due   time.Time                // of the next hello
	seen  uint64                   // the reasons to say hello that the last one served

	receipts []StreamPos // said last, not stored yet
	storeAt  time.Time   // when they are to be stored
}

func (g *Gate) upstream(ctx context.Context) {
	u := &upstream{g: g, high: make(map[ticket.Run]uint64), over: make(map[ticket.Run]time.Time)}
	for ctx.Err() == nil {
		if !u.step(ctx) {
			u.rest(ctx)
		}
	}
}

// step does one thing, and reports whether there may be more to do at once.
func (u *upstream) step(ctx context.Context) (more bool) {
	_, up, connected := u.g.link.silence(time.Now())
	if u.g.resync.Load() != u.seen {
		u.due = time.Time{}
	}
	now := time.Now()
	switch {
	case !connected:
		u.ready, u.due = false, time.Time{}
		return false
	case !now.Before(u.due):
		if err := u.hello(ctx); err != nil {
			u.failed("ledger could not be told what is here", err, up)
			return false
		}
		return true
	case !u.ready:
		return false
	}
	sent, err := u.upload(ctx)
	if err != nil {
		u.failed("upload failed", err, up)
		return false
	}
	if u.receipts != nil && !now.Before(u.storeAt) {
		u.storeReceipts(ctx)
	}
	return sent
}

// rest waits until there is something to do.
func (u *upstream) rest(ctx context.Context) {
	wait := time.Until(u.due)
	if u.due.IsZero() {
		wait = helloEvery // not connected: the connection wakes us
	}
	if u.receipts != nil && u.ready {
		wait = min(wait, time.Until(u.storeAt))
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(wait):
		return
	case <-u.g.gone:
	}
	select { // what comes now goes together
	case <-ctx.Done():
	case <-time.After(coalesce):
	}
}

// failed has what the ledger has asked for anew before anything else is sent:
// when the link rises again, or after a while if it is up all the same.
func (u *upstream) failed(text string, err error, up bool) {
	if !quiet(err) {
		u.g.complain(text, err)
	}
	u.ready = false
	u.due = time.Now().Add(helloEvery)
	if up {
		u.due = time.Now().Add(upstreamRetry)
	}
}

func (u *upstream) hello(ctx context.Context) error {
	g := u.g
	own, err := g.store.Own()
	if err != nil {
		return fmt.Errorf("read own runs: %w", err)
	}
	cursors, err := g.store.Cursors()
	if err != nil {
		return fmt.Errorf("read cursors: %w", err)
	}
	data, err := encode(Hello{Place: g.o.HeadInfo().Place, Runs: own, Cursors: cursors})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, helloFor)
	defer cancel()
	r := request[HelloReply](ctx, g.conn, gateSubject(g.o.Device, "hello"), data)
	if r.err != nil {
		u.seen = g.resync.Load()
		return r.err
	}
	g.answered(false)
	u.seen = g.resync.Load() // the rise of the link that this was among them
	u.due, u.ready = time.Now().Add(helloEvery), true
	g.events.LedgerTime(r.value.Time, int64(r.took))
	u.setHigh(r.value.High)
	g.known.aim(r.value.Heads, r.value.High)
	g.heldElsewhere(r.value.High)
	g.heldElsewhere(r.value.Named)
	for _, p := range r.value.Heads {
		g.known.note(ticket.Stream{Source: p.Source, Run: p.Run}, p.Pos)
	}
	signal(g.gap)
	return nil
}

// setHigh takes over what the ledger has now; it may be less than before.
func (u *upstream) setHigh(high []StreamPos) {
	clear(u.high)
	for _, p := range high {
		if p.Source == u.g.o.Device {
			u.high[p.Run] = p.Pos
		}
	}
	if u.receipts == nil {
		u.storeAt = time.Now().Add(receiptEvery)
	}
	u.receipts = high
}

// storeReceipts stores what the ledger said last. They only spare repeats, so a
// loss of the last few is harmless, and they need not cost a commit each.
func (u *upstream) storeReceipts(ctx context.Context) {
	had, err := u.g.store.Receipts()
	if err == nil && !slices.Equal(had, u.receipts) {
		err = u.g.store.SetReceipts(ctx, u.receipts)
	}
	if err != nil {
		u.g.complain("receipts could not be stored", err)
	}
	u.receipts = nil
}

// errRun is wrapped by the failures that are a run's own: the others go on.
var errRun = errors.New("this run cannot be uploaded now")

// upload sends the next batch of the oldest run that the ledger has not all of,
// and reports whether there was one. A run that cannot be read, or that does not
// advance, is passed over for a while: newer runs must not wait behind it.
func (u *upstream) upload(ctx context.Context) (sent bool, err error) {
	runs, err := u.g.store.Own()
	if err != nil {
		return false, fmt.Errorf("read own runs: %w", err)
	}
	for _, p := range runs {
		if max(u.high[p.Run], p.Base) >= p.Pos || time.Now().Before(u.over[p.Run]) {
			continue
		}
		err := u.uploadRun(ctx, p)
		if !errors.Is(err, errRun) {
			return true, err
		}
		u.g.complain("a run is passed over", err)
		u.over[p.Run] = time.Now().Add(passOverFor)
	}
	return false, nil
}

func (u *upstream) uploadRun(ctx context.Context, p StreamPos) error {
	g := u.g
	limit := BulkUploadMax
	if time.Since(g.start)-time.Duration(g.lastAsk.Load()) < liveFor && g.lastAsk.Load() != 0 {
		limit = LiveUploadMax
	}
	recs, from, _, _, err := g.store.Read(p.Stream(), u.high[p.Run], limit, maxBatchBytes)
	if err != nil {
		return fmt.Errorf("read run %s: %w: %w", p.Run, errRun, err)
	}
	if len(recs) == 0 {
		return fmt.Errorf("read run %s after %d: nothing, though it goes to %d: %w", p.Run, u.high[p.Run], p.Pos, errRun)
	}
	data, err := encode(Upload{Run: p.Run, From: from, Records: recs})
	if err != nil {
		return fmt.Errorf("upload run %s: %w: %w", p.Run, errRun, err)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadFor)
	defer cancel()
	r := request[UploadReply](ctx, g.conn, gateSubject(g.o.Device, "upload"), data)
	if r.err != nil {
		return r.err
	}
	g.answered(false)
	g.count.uploads.Add(1)
	g.count.uploaded.Add(uint64(len(recs)))
	if n := len(r.value.SetAside); n > 0 {
		g.count.setAside.Add(uint64(n))
		g.log.Warn("ledger set records aside", "run", p.Run.String(), "count", n)
	}
	before := u.high[p.Run]
	u.setHigh(r.value.High)
	if u.high[p.Run] == before {
		return fmt.Errorf("upload run %s: receipted, but the ledger has no more than before: %w", p.Run, errRun)
	}
	return nil
}

// heldElsewhere looks through what another holds of this gate's own runs: more
// than there is here is the evidence of a lost or reverted store.
func (g *Gate) heldElsewhere(list []StreamPos) {
	own, cursors, err := g.positions()
	if err != nil {
		g.complain("own runs could not be read", err)
		return
	}
	g.known.read(own, cursors)
	for _, p := range list {
		s := ticket.Stream{Source: p.Source, Run: p.Run}
		if p.Source != g.o.Device || p.Pos <= g.known.has(s) {
			continue
		}
		g.noteHead(s, p.Pos)
		if !g.known.lost(s) {
			continue
		}
		g.log.Warn("others hold more of an own run than this store", "run", p.Run.String(), "position", p.Pos)
		g.link.forgetLists()
		if g.known.setCaughtUp(false) {
			g.events.CatchUpChanged(false)
		}
		g.resync.Add(1)
		g.events.OwnRunAhead(s, p.Pos)
	}
}

func (g *Gate) positions() (own, cursors []StreamPos, err error) {
	if own, err = g.store.Own(); err != nil {
		return nil, nil, fmt.Errorf("read own runs: %w", err)
	}
	if cursors, err = g.store.Cursors(); err != nil {
		return nil, nil, fmt.Errorf("read cursors: %w", err)
	}
	return own, cursors, nil
}
