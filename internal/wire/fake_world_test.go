package wire_test

import (
	"context"
	"testing"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

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
