package wire

import (
	"context"
	"fmt"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// gapRest is how long a gap in an own earlier run is left alone. What was on its
// way when the store was lost has arrived by then, wherever it does.
const gapRest = 10 * time.Second

// gaps closes the gaps in what this gate wrote before its store was lost, or put
// back from an old copy, over a network that had lost records, too. Then others
// hold records beyond positions that nobody has. Only the run's writer can say so:
// it asks everybody, takes what they hold, and gives up the rest.
type gaps struct {
	g     *Gate
	since map[ticket.Stream]time.Time // when a run was found to have one, or last tried
}

// close closes what can be closed now. It reports whether it got further, and
// whether a gap is left.
func (c *gaps) close(ctx context.Context) (progress, left bool) {
	open := c.g.known.ownGaps()
	now := time.Now()
	var due []ticket.Stream
	for _, s := range open {
		if since, known := c.since[s]; !known {
			c.since[s] = now
		} else if now.Sub(since) >= gapRest {
			due = append(due, s)
		}
	}
	if len(due) == 0 {
		return false, len(open) > 0
	}
	holders, err := c.everybody(now)
	if err != nil {
		c.stays(err)
		return false, true
	}
	for _, s := range due {
		c.since[s] = now
		if err := c.closeRun(ctx, s, holders); err != nil {
			c.stays(err)
			continue
		}
		delete(c.since, s)
		progress = true
	}
	return progress, true
}

// stays tells why a gap is left open, but for those away, who come again.
func (c *gaps) stays(err error) {
	if !quiet(err) {
		c.g.complain("a gap in an earlier run stays", err)
	}
}

// everybody lists who may hold records of this gate, the ledger first. It is an
// error where one of them cannot be asked now.
func (c *gaps) everybody(now time.Time) ([]string, error) {
	if !c.g.link.link(now).Up {
		return nil, fmt.Errorf("ask the ledger for records: %w", ErrNoResponders)
	}
	devices, err := c.g.store.Devices()
	if err != nil {
		return nil, fmt.Errorf("list who may hold records: %w", err)
	}
	list := []string{ledgerName}
	for _, d := range c.g.link.others(now, c.g.o.Device) {
		list = append(list, string(d))
	}
	for _, d := range devices {
		if !slices.Contains(list, string(d)) {
			return nil, fmt.Errorf("ask %s for records: %w", d, ErrNoResponders)
		}
	}
	return list, nil
}

// closeRun takes what anybody holds of an own earlier run, and gives up what is
// missing then, up to the last position that the ledger was ever told of.
func (c *gaps) closeRun(ctx context.Context, s ticket.Stream, holders []string) error {
	named := uint64(0)
	for _, from := range holders {
		head, err := c.take(ctx, s, from)
		if err != nil {
			return fmt.Errorf("fetch run %s from %s: %w", s.Run, from, err)
		}
		if from == ledgerName {
			named = head
		}
	}
	given, err := c.g.store.GiveUp(ctx, s, named)
	if err != nil {
		return err
	}
	if given > 0 {
		c.g.log.Warn("records of an earlier run are nowhere any more", "run", s.Run.String(), "count", given)
	}
	own, cursors, err := c.g.positions()
	if err != nil {
		return err
	}
	c.g.known.read(own, cursors)
	c.g.known.got(s)
	signal(c.g.gone) // the ledger may lack it, too
	return nil
}

// take stores all that another holds of a run, beyond gaps too, and gives the last
// position that it knows of.
func (c *gaps) take(ctx context.Context, s ticket.Stream, from string) (head uint64, err error) {
	for after := c.g.known.has(s); ; {
		r, err := c.g.fetch(ctx, from, Fetch{Source: s.Source, Run: s.Run, After: after, Limit: FetchMax, Beyond: true}, fetchFor)
		if err != nil || len(r.Records) == 0 {
			return r.Head, err
		}
		if r.From <= after {
			return 0, fmt.Errorf("read fetched records: from %d, want them after %d", r.From, after)
		}
		arrived, err := c.g.arrivals(s, r.From-1, r)
		if err == nil {
			err = c.g.events.Learn(ctx, false, arrived)
		}
		if err != nil {
			return 0, err
		}
		after = arrived[len(arrived)-1].Pos
	}
}
