package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"admitone/internal/alive"
	"admitone/internal/boltfile"
	"admitone/internal/gate"
	"admitone/internal/kv"
)

// watch makes what feeds the service manager's watchdog: the loop, the store, the
// relay and the lamps of each lane, and what reads its camera's frames. What is
// lost without being stuck (a camera, a scanner, the network, the clock) is told
// in words and ends nothing: the gate works on without it, and would be no better
// after a restart.
func (d *daemon) watch(file *boltfile.File) error {
	manager, err := alive.Systemd()
	if err != nil {
		return err
	}
	loop := &loopProof{d: d}
	proofs := []alive.Proof{
		{Name: "the gate's loop", Check: loop.check},
		{Name: "the store", Check: func(ctx context.Context) error { return probe(ctx, file) }},
	}
	for i, l := range d.lanes {
		name := d.gate.LaneName(i)
		proofs = append(proofs, alive.Proof{Name: "the turnstile of lane " + name, Check: l.turnstile.Moves})
		if len(l.cameras) > 0 {
			proofs = append(proofs, alive.Proof{Name: "the reading of frames of lane " + name, Check: l.frames.check})
		}
	}
	d.alive, err = alive.New(alive.Options{Manager: manager, Proofs: proofs, Status: loop.status, Log: d.log})
	return err
}

// probe goes the ways of both kinds of transaction: it reads a page, and passes
// through the one writer after whatever commit is under way. It writes nothing,
// so it costs the card nothing.
func probe(ctx context.Context, s kv.Store) error {
	err := s.View(func(tx kv.Tx) error {
		_, err := tx.Get("meta", []byte("device"))
		return err
	})
	if err != nil {
		return err
	}
	return s.Update(ctx, func(kv.Tx) error { return nil })
}

// loopProof asks the gate's loop how it stands.
type loopProof struct {
	d     *daemon
	words atomic.Pointer[string]
}

func (p *loopProof) check(ctx context.Context) error {
	s, err := p.d.status(ctx)
	if err != nil {
		return err
	}
	words := p.d.words(s)
	p.words.Store(&words)
	return nil
}

func (p *loopProof) status() string {
	if w := p.words.Load(); w != nil {
		return *w
	}
	return ""
}

// words say how the gate stands, what is wrong first.
func (d *daemon) words(s gate.Status) string {
	var wrong []string
	if n := s.Note(); n != "" {
		wrong = append(wrong, n)
	}
	for i, l := range d.lanes {
		if len(l.cameras) > 0 && l.frames.lost() {
			wrong = append(wrong, fmt.Sprintf("lane %s: no picture from the camera", d.gate.LaneName(i)))
		}
	}
	well := fmt.Sprintf("%s, mode %s, link %s, %d admitted, %d refused", s.Place, s.Mode, s.Link, s.Counts.Admitted, s.Counts.Refused)
	return strings.Join(append(wrong, well), "; ")
}

// frames counts the frames of one lane on their way through the reader of codes.
type frames struct {
	made  time.Time    // for the monotonic clock
	begun atomic.Int64 // frames handed to the reader
	ended atomic.Int64 // frames it came back from
	last  atomic.Int64 // when the last one came, since made

	checked int64 // what ended was at the last check; owned by check
}

func newFrames() *frames { return &frames{made: time.Now()} }

// counted wraps what looks at frames.
func counted[F any](c *frames, look func(F)) func(F) {
	return func(f F) {
		c.begun.Add(1)
		c.last.Store(int64(time.Since(c.made)))
		defer c.ended.Add(1)
		look(f)
	}
}

// errFrame is returned while one frame is being read for longer than it is from
// one check to the next.
var errFrame = errors.New("does not come back from a frame")

// check is nil where the reader came back from a frame since the last check, or
// has none to read.
func (c *frames) check(context.Context) error {
	ended := c.ended.Load()
	moved := ended != c.checked
	c.checked = ended
	if moved || c.begun.Load() == ended {
		return nil
	}
	return errFrame
}

// lostAfter is how long a camera may give nothing: it comes back by itself after
// less, where it does.
const lostAfter = 5 * time.Second

// lost tells whether no frame came for a while.
func (c *frames) lost() bool {
	return time.Since(c.made)-time.Duration(c.last.Load()) > lostAfter
}
