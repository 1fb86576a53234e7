package ledger

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"admitone/internal/ticket"
)

// heard is the last head of a device.
type heard struct {
	at   time.Time
	head Head
}

// live is what heads tell: in memory only, since it is said again every 2 s.
type live struct {
	mu    sync.Mutex
	gates map[ticket.Source]heard
}

func (l *live) snapshot() map[ticket.Source]heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.gates)
}

// Heard takes a gate's head: what it says of itself, and how far its run reaches.
func (l *Ledger) Heard(from ticket.Source, h Head) {
	now := l.opt.Now()
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	l.live.gates[from] = heard{at: now, head: h}
}

// raiseSkew raises an alarm for each head whose clock was off.
func (l *Ledger) raiseSkew(ctx context.Context) error {
	off := map[ticket.Source]heard{}
	for d, h := range l.live.snapshot() {
		if time.Duration(h.head.Time-h.at.UnixNano()).Abs() > maxSkew {
			off[d] = h
		}
	}
	if len(off) == 0 {
		return nil
	}
	err := l.update(ctx, func(t *txn) error {
		for _, d := range slices.Sorted(maps.Keys(off)) {
			h := off[d]
			err := t.skew(d, h.head.Run, h.head.Place, time.Duration(h.head.Time-h.at.UnixNano()))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return wrap("raise clock skew", err)
}

// Limits of what is kept of verdicts for the operators' page.
const (
	keptVerdicts = 100
	maxVerdict   = 4 << 10 // bytes of a line
)

type verdicts struct {
	mu    sync.Mutex
	lines []json.RawMessage
}

// Verdict takes a verdict line of a gate. What is no JSON of a sane length is
// counted and left out.
func (l *Ledger) Verdict(from ticket.Source, line []byte) {
	if len(line) > maxVerdict || !json.Valid(line) {
		l.counts.refused.Add(1)
		return
	}
	v := &l.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.lines) == keptVerdicts {
		v.lines = slices.Delete(v.lines, 0, 1)
	}
	v.lines = append(v.lines, slices.Clone(line))
}

// Verdicts gives the last 100 verdict lines, oldest first.
func (l *Ledger) Verdicts() []json.RawMessage {
	l.verdicts.mu.Lock()
	defer l.verdicts.mu.Unlock()
	return slices.Clone(l.verdicts.lines)
}

// EventStats counts what an event came to.
type EventStats struct {
	Event     string `json:"event"`
	Name      string `json:"name"`
	Admitted  uint64 `json:"admitted"`  // claims that stand admitted, or presumed so
	Conflicts uint64 `json:"conflicts"` // not withdrawn
	Alarms    uint64 `json:"alarms"`
	Late      uint64 `json:"late"`   // records that came after pruning
	Closed    string `json:"closed"` // ticket.TimeFormat; empty: open
	Pruned    bool   `json:"pruned"`
}

// Stats is what the page and the metrics show.
type Stats struct {
	Events      []EventStats `json:"events"`
	Alarms      uint64       `json:"alarms"` // that belong to no event
	Gates       []Gate       `json:"gates"`
	Asks        uint64       `json:"asks"`        // answered since the start
	HandHeld    uint64       `json:"hand_held"`   // admitted by hand-held scanners since the start
	Refused     uint64       `json:"refused"`     // messages that were another's or no sense, since the start
	SetAside    uint64       `json:"set_aside"`   // records that could not be read, since the start
	Unpublished uint64       `json:"unpublished"` // feed records left to be fetched, since the start
}

// Stats gives the counts of all events and the state of all gates.
func (l *Ledger) Stats(ctx context.Context) (Stats, error) {
	out := Stats{
		Asks: l.counts.asks.Load(), HandHeld: l.counts.hands.Load(), Refused: l.counts.refused.Load(),
		SetAside: l.counts.aside.Load(), Unpublished: l.counts.unpublished.Load(),
	}
	err := l.view(ctx, func(t *txn) error {
		out.Events = []EventStats{}
		p, err := t.programme()
		if err != nil {
			return err
		}
		ids, err := t.eventIDs()
		if err != nil {
			return err
		}
		for _, id := range ids {
			ev, err := t.event(id)
			if err != nil {
				return err
			}
			out.Events = append(out.Events, eventStats(id, p.events[id].Name, ev.row))
		}
		none, err := t.event(noEvent)
		if err == nil {
			out.Alarms = none.row.Alarms
		}
		return err
	})
	if err == nil {
		out.Gates, err = l.Gates(ctx)
	}
	return out, wrap("count", err)
}

func eventStats(id, name string, r EventRow) EventStats {
	s := EventStats{
		Event: id, Name: name, Admitted: r.Admitted, Conflicts: r.Conflicts, Alarms: r.Alarms,
		Late: r.Late, Pruned: r.Pruned,
	}
	if r.Closed != 0 {
		s.Closed = unix(r.Closed).Format(ticket.TimeFormat)
	}
	return s
}
