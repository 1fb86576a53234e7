package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// Limits of asking.
const (
	askLate    = 5 * time.Second // how long after its patience an answer is still listened for
	peekFor    = 2 * time.Second
	maxAsking  = 256 // asks in flight; a gate has a handful
	maxPeeking = 16
	probeMin   = 250 * time.Millisecond
	probeMax   = 2 * time.Second
	proveEvery = 5 * time.Second // a link that is up is proved again after this much silence
)

// Ask asks the ledger about a claim that is committed. It returns at once; the
// answer comes through GateEvents.Answered, after its records went through
// Learn, however late it is. Without one there is no event but LinkChanged.
func (g *Gate) Ask(c ticket.Claim) {
	g.lastAsk.Store(int64(time.Since(g.start)))
	select {
	case g.asks <- c:
	default:
		g.count.asksDropped.Add(1)
	}
}

// Peek asks how a unit stands. Its records come through GateEvents.Learn; one
// peek of a unit is under way at a time.
func (g *Gate) Peek(u ticket.Unit) {
	if _, busy := g.peeking.LoadOrStore(u, true); busy {
		return
	}
	select {
	case g.peeks <- u:
	default:
		g.peeking.Delete(u)
	}
}

func (g *Gate) askAll(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-g.asks:
			if g.asking.Add(1) > maxAsking {
				g.asking.Add(-1)
				g.count.asksDropped.Add(1)
				continue
			}
			wg.Go(func() { defer g.asking.Add(-1); g.ask(ctx, c) })
		}
	}
}

// ask sends the question, and once more after a third of the patience, the same
// bytes both times: the ledger echoes its stored answer.
func (g *Gate) ask(ctx context.Context, c ticket.Claim) {
	data, err := g.askMessage(c)
	if err != nil {
		g.complain("ask could not be put together", err)
		return
	}
	g.count.asked.Add(1)
	patience := g.o.LedgerPatience
	ctx, cancel := context.WithTimeout(ctx, patience+askLate)
	defer cancel()
	asked, results := time.Now(), make(chan reply[AskReply], 2)
	subject := gateSubject(g.o.Device, "ask")
	try := func() { go func() { results <- request[AskReply](ctx, g.conn, subject, data) }() }
	try()
	again, late := time.NewTimer(patience/3), time.NewTimer(patience)
	defer again.Stop()
	defer late.Stop()
	told := false
	for open, tried := 1, 1; open > 0 || tried < 2; {
		select {
		case r := <-results:
			open--
			if r.err == nil && r.value.Claim == c.ID {
				g.takeAnswer(ctx, r)
				return
			}
		case <-again.C:
			try()
			open, tried = open+1, 2
			g.count.repeated.Add(1)
		case <-late.C:
			told = true
			g.notAnswered(asked)
		case <-ctx.Done():
			return
		}
	}
	if !told { // both attempts failed at once: nobody is there
		g.notAnswered(asked)
	}
}

func (g *Gate) notAnswered(asked time.Time) {
	g.count.unanswered.Add(1)
	g.link.unanswered(asked)
	signal(g.turn)
	signal(g.doubt)
}

func (g *Gate) takeAnswer(ctx context.Context, r reply[AskReply]) {
	g.answered(true)
	g.events.LedgerTime(r.value.Time, int64(r.took))
	g.learnReply(ctx, r.value.Records)
	a := ticket.Answered{Claim: r.value.Claim, Answer: r.value.Answer}
	if f := r.value.First; f != nil {
		a.FirstAt, a.FirstGate, a.First, a.State = time.Unix(0, f.Time).UTC(), f.Place, f.Claim, f.State
	}
	g.events.Answered(a)
}

// learnReply hands over the records that came with an answer. They reach the
// decision before they are durable here.
func (g *Gate) learnReply(ctx context.Context, raws [][]byte) {
	var batch []ticket.Arrival
	for _, raw := range raws {
		r, err := ticket.DecodeRecord(raw)
		if err != nil {
			g.count.unreadable.Add(1)
			continue
		}
		if r.Source == g.o.Device && g.known.has(r.Stream()) >= r.Pos {
			continue // one's own, back again
		}
		batch = append(batch, ticket.Arrival{Stream: r.Stream(), Pos: r.Pos, Raw: raw, Record: &r})
	}
	if len(batch) > 0 {
		g.learnBatch(ctx, batch)
	}
}

// askMessage puts the claim's rev 0 together with the other records of the unit
// that the ledger has not receipted.
func (g *Gate) askMessage(c ticket.Claim) ([]byte, error) {
	recs, err := g.store.Unreceipted(c.Unit)
	if err != nil {
		return nil, fmt.Errorf("read unreceipted records: %w", err)
	}
	if c.Rev == 0 {
		own, err := ticket.Record{Source: c.ID.Gate, Run: c.ID.Run, Pos: c.ID.Pos, Claim: &c}.Encode()
		if err != nil {
			return nil, err
		}
		recs = withFirst(own, recs)
	}
	return encode(Ask{Claim: c.ID, Unit: c.Unit, Records: fitting(recs)})
}

// withFirst puts a record before the others, once.
func withFirst(first []byte, rest [][]byte) [][]byte {
	out := [][]byte{first}
	for _, r := range rest {
		if string(r) != string(first) {
			out = append(out, r)
		}
	}
	return out
}

// fitting cuts a list to what one message may carry.
func fitting(recs [][]byte) [][]byte {
	size := 0
	for i, r := range recs {
		if size += len(r) + 5; size > maxBatchBytes && i > 0 || i >= BulkUploadMax {
			return recs[:i]
		}
	}
	return recs
}

func (g *Gate) peekAll(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxPeeking)
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-g.peeks:
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				defer func() { g.peeking.Delete(u); <-slots }()
				g.peek(ctx, u)
			})
		}
	}
}

func (g *Gate) peek(ctx context.Context, u ticket.Unit) {
	data, err := encode(Peek{Unit: u})
	if err != nil {
		g.complain("peek could not be put together", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peekFor)
	defer cancel()
	r := request[PeekReply](ctx, g.conn, gateSubject(g.o.Device, "peek"), data)
	if r.err != nil {
		return
	}
	g.answered(false)
	g.events.LedgerTime(r.value.Time, int64(r.took))
	g.learnReply(ctx, r.value.Records)
}

// probe asks for nothing but an answer, while the link is suspect: at once, then
// after 250 ms, backing off to 2 s. It also proves a link that is up but silent,
// so that no visitor pays the patience for finding out.
func (g *Gate) probe(ctx context.Context) {
	connected := g.conn.Connected()
	wait := probeMin
	for {
		pause := proveEvery
		silent, up, there := g.link.silence(time.Now())
		switch {
		case up && silent < proveEvery:
			wait, pause = probeMin, proveEvery-silent
		case there && g.probeOnce(ctx):
			continue
		case there:
			pause, wait = wait, min(2*wait, probeMax)
		}
		select {
		case <-ctx.Done():
			return
		case <-connected:
			wait = probeMin
		case <-g.doubt:
		case <-time.After(pause):
		}
	}
}

func (g *Gate) probeOnce(ctx context.Context) bool {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, g.o.LedgerPatience)
	defer cancel()
	r := request[ProbeReply](ctx, g.conn, gateSubject(g.o.Device, "probe"), nil)
	if r.err != nil {
		g.link.unanswered(asked)
		signal(g.turn)
		return false
	}
	g.answered(true)
	g.events.LedgerTime(r.value.Time, int64(r.took))
	return true
}

// reply is what came of a request.
type reply[T any] struct {
	value T
	took  time.Duration
	err   error
}

// request sends one and reads the reply.
func request[T any](ctx context.Context, conn Conn, subject string, data []byte) (r reply[T]) {
	began := time.Now()
	raw, err := conn.Request(ctx, subject, data)
	r.took = time.Since(began)
	if err != nil {
		r.err = err
		return r
	}
	r.err = decode(raw, &r.value)
	return r
}

// quiet reports whether an error only says that nobody answered.
func quiet(err error) bool {
	return errors.Is(err, ErrNotConnected) || errors.Is(err, ErrNoResponders) || errors.Is(err, ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
