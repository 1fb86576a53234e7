package simtest

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/gate"
	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// trouble is one thing that goes wrong, or right again, or that staff do.
func (c *chaos) trouble() {
	g := c.any()
	for _, kind := range []struct {
		weight int
		do     func(*Gate)
	}{
		{10, c.link}, {6, c.central}, {10, c.crash}, {8, c.raise}, {4, c.staff}, {4, c.office}, {3, c.clock}, {2, c.store}, {2, c.damage}, {1, c.forge},
	} {
		if c.dice.N(50) < kind.weight {
			kind.do(g)
			return
		}
	}
}

// link breaks or mends the link of a gate, or of everybody.
func (c *chaos) link(g *Gate) {
	switch c.dice.N(8) {
	case 0:
		g.Cut()
	case 1:
		g.Hang()
	case 2:
		g.SetLink(c.badLink())
	case 3:
		c.cutAll()
	case 4:
		c.healAll()
	case 5:
		g.SetLink(wiretest.Link{Delay: c.setup.link.Delay, Deaf: true})
	default:
		g.Heal()
	}
}

// central breaks or mends the ledger.
func (c *chaos) central(*Gate) {
	switch c.dice.N(9) {
	case 0:
		c.ledger.Kill()
	case 1:
		c.ledger.Cut()
	case 2:
		c.ledger.SetLink(c.badLink())
	case 3:
		c.ledgers = append(c.ledgers, c.ledger.Backup())
	case 4:
		if len(c.ledgers) > 0 {
			c.ledger.Restore(c.ledgers[c.dice.N(len(c.ledgers))])
		}
	case 5:
		c.ledger.KillTwin()
	case 6:
		c.ledger.UpTwin()
	default:
		c.ledger.Heal()
		c.ledger.Up()
	}
}

// crash ends the process of a gate, now or at the next moment that matters.
func (c *chaos) crash(g *Gate) {
	switch c.dice.N(7) {
	case 0:
		g.Fail(kv.FailKept)
	case 1:
		g.Fail(kv.FailLost)
	case 2:
		g.Doom(beforeRelay)
	case 3:
		g.Doom(afterRelay)
	case 4:
		g.PowerCut()
	default:
		g.Kill()
	}
	c.Wait(c.dice.Span(400 * time.Millisecond))
	c.raise(g)
}

// raise starts what is down, mostly.
func (c *chaos) raise(*Gate) {
	for _, g := range c.gates {
		if g.running() == nil && !c.dice.Hit(4) {
			g.Kill()
			g.Up()
		}
	}
	c.ledger.Up()
}

// staff takes a late admission back at its gate.
func (c *chaos) staff(g *Gate) {
	g.mu.Lock()
	results := g.results
	g.mu.Unlock()
	if g.running() == nil || len(results) == 0 {
		return
	}
	r := results[len(results)-1-c.dice.N(min(3, len(results)))]
	id, err := ticket.ParseClaimID(r.Claim)
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Annul(id) }()
	select {
	case <-done: // refused where there is nothing to take back
	case <-time.After(time.Second):
	}
}

// office has the ledger release a claim, or revoke a ticket.
func (c *chaos) office(*Gate) {
	if !c.ledger.up || len(c.minted) == 0 {
		return
	}
	tk := c.minted[max(0, len(c.minted)-1-c.dice.N(6))]
	if c.dice.Hit(3) {
		if err := c.ledger.Revoke(context.Background(), tk.Unit.Format, tk.Unit.Ticket, c.dice.Hit(2), "office"); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	claims := c.ledger.Claims(tk.Unit)
	if len(claims) == 0 {
		return
	}
	id := claims[c.dice.N(len(claims))].Claim.ID
	if err := c.Release(id); err != nil && !errors.Is(err, ledger.ErrDone) {
		c.t.Fatal(err)
	}
}

// clock lets a gate's clock run away, jump while people come, or the gate wake up in
// another time.
func (c *chaos) clock(g *Gate) {
	g.mu.Lock()
	g.drift = float64(c.dice.N(400)-200) / 1e6 // crystals are a tenth as bad
	g.mu.Unlock()
	if c.dice.Hit(3) {
		g.Clock(c.dice.Span(2*time.Hour)-time.Hour, false)
		return
	}
	g.PowerCut()
	g.Clock(c.dice.Span(20*24*time.Hour)-10*24*time.Hour, false)
	if c.dice.Hit(2) {
		l := c.badLink()
		l.Drop = 0.6
		g.SetLink(l)
	}
	g.Up()
}

// store loses a gate's store, or puts an old copy back.
func (c *chaos) store(g *Gate) {
	if c.gateOld == nil {
		c.gateOld = make([]*kv.Mem, len(c.gates))
	}
	switch {
	case c.dice.Hit(2):
		c.gateOld[g.n] = g.Backup()
	case c.gateOld[g.n] != nil:
		g.PutBack(c.gateOld[g.n])
	default:
		g.PutBack(nil) // and no copy from before that comes back after it
	}
}

// damage makes an event record of a gate that is cut off unreadable.
func (c *chaos) damage(g *Gate) {
	p := g.running()
	if p == nil {
		return
	}
	g.Cut()
	p.lanes[0].tell(gate.PassageOut)
	c.Wait(time.Second)
	if p.dead.Load() {
		return
	}
	own := p.store.Stream()
	recs, _, _, head, err := p.store.Read(own, 0, 1<<20, 1<<30)
	if err != nil || head == 0 {
		return
	}
	rec, err := ticket.DecodeRecord(recs[len(recs)-1])
	if err != nil || rec.Event == nil || rec.Event.Type != ticket.EventExit {
		return
	}
	// Bucket and key as the drawing in package gatestore has them.
	k := binary.BigEndian.AppendUint64(append([]byte(own.Source), 0), uint64(own.Run))
	k = binary.BigEndian.AppendUint64(k, rec.Pos)
	err = g.disk().Update(context.Background(), func(tx kv.Tx) error { return tx.Put("log", k, []byte{0xff}) })
	if err != nil && !errors.Is(err, kv.ErrClosed) && !errors.Is(err, kv.ErrUnknown) {
		c.t.Fatal(err)
	}
	c.Wait(100 * time.Millisecond)
	g.Heal()
}

// forge asks the ledger about a claim that it knows, with another ticket, as a
// store that was copied to a second box would.
func (c *chaos) forge(g *Gate) {
	p := g.running()
	if p == nil || len(c.minted) < 2 || !c.ledger.up {
		return
	}
	tk, other := c.minted[len(c.minted)-2], c.minted[len(c.minted)-1]
	for _, r := range c.ledger.Claims(tk.Unit) {
		if r.Claim.ID.Gate != g.id {
			continue
		}
		data, err := cbor.Marshal(wire.Ask{Claim: r.Claim.ID, Unit: other.Unit})
		if err != nil {
			c.t.Fatal(err)
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			raw, err := p.conn.Request(ctx, "gate."+string(g.id)+".ask", data)
			var reply wire.AskReply
			if err == nil && cbor.Unmarshal(raw, &reply) == nil && reply.Answer == ticket.AnswerMismatch {
				c.notes.reach(pathMismatch)
			}
		}()
		return
	}
}
