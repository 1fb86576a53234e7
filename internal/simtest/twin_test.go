package simtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

// twin is a second ledger process on the same store, in the same queue group. What
// is done to the ledger's link is done to both.
type twin struct {
	conn  *wiretest.Conn
	stop  context.CancelFunc
	ended chan error
}

// UpTwin starts the second process, where the world has one.
func (l *Ledger) UpTwin() {
	w := l.w
	if l.twin != nil || w.setup.ledgers < 2 {
		return
	}
	const name = "twin"
	log := w.logger(name)
	led, err := ledger.New(ledgerstore.New(l.mem), ledger.Options{
		Process: name, Now: time.Now, Log: slog.New(conflictLines{l, log.Handler()}), ProgrammeKey: key("programme"), NewRun: l.dice.run,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p := &twin{conn: w.net.Conn(name), ended: make(chan error, 2)}
	p.conn.SetLink(l.link)
	serving, err := wire.NewLedger(p.conn, service{led, l}, wire.LedgerOptions{Process: name, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop, l.twin = cancel, p
	go func() { p.ended <- led.Run(ctx) }()
	go func() { p.ended <- serving.Run(ctx) }()
	synctest.Wait()
}

// KillTwin ends the second process at once. The store goes on under the first.
func (l *Ledger) KillTwin() {
	p := l.twin
	if p == nil {
		return
	}
	if l.twin = nil; !l.up {
		l.mem = l.mem.Crash()
	}
	p.stop()
	p.conn.Close()
	for range 2 {
		if err := <-p.ended; err != nil && !errors.Is(err, ledger.ErrUnknown) {
			l.w.Errorf("the second ledger ended with %v", err)
		}
	}
}

// Two ledgers answer in turns, and each of them dies and comes back: every ticket
// is admitted once, and no answer changes.
func TestTwoLedgers(t *testing.T) {
	simulate(t, 1, setup{gates: 3, ledgers: 2, link: near}, func(w *World) {
		for i := range 40 {
			tk := w.Mint()
			w.gates[i%3].Look(0, tk)
			w.gates[(i+1)%3].Look(0, tk)
			switch i % 8 {
			case 2:
				w.ledger.Kill()
			case 4:
				w.ledger.Up()
			case 5:
				w.ledger.KillTwin()
			case 7:
				w.ledger.UpTwin()
			}
			w.Wait(3 * time.Second)
		}
		w.Heal()
		w.check()
		if n := len(w.ledger.AllConflicts()); n != 0 {
			w.Errorf("%d conflicts", n)
		}
		if n := len(w.notes.passed); n != 40 {
			w.Errorf("%d of 40 went through", n)
		}
		w.checkShown()
	})
}

// Fifty gates whose network is bad, and which come back together.
func TestFiftyGates(t *testing.T) {
	t.Parallel()
	simulate(t, 1, setup{gates: 50, link: near}, func(w *World) {
		w.crowded = true
		c := &chaos{World: w}
		for range manySteps {
			c.step()
		}
		c.over()
		w.check()
		w.permute(1)
	})
}
