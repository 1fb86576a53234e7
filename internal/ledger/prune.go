package ledger

import (
	"context"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// pruneBatch is how many rows one transaction removes, so that asks get between.
const pruneBatch = 500

// Prune removes what is kept of events that were closed, once their grace is over
// and each enrolled gate has said hello since with nothing outstanding, or is
// marked lost. Conflicts, alarms, counts and high-waters stay; records of the
// event that come later go to the late list. It does nothing for an open event,
// whatever the clock says.
func (l *Ledger) Prune(ctx context.Context) error {
	var due []string
	err := l.view(ctx, func(t *txn) error {
		due = nil
		rows := map[string]EventRow{}
		var ids []string
		err := t.Events(func(id string, r EventRow) bool {
			if r.Closed != 0 && !r.Swept {
				ids, rows[id] = append(ids, id), r
			}
			return true
		})
		for _, id := range ids {
			if err != nil {
				return err
			}
			ready := rows[id].Pruned
			if !ready {
				ready, err = t.everythingIn(rows[id].Closed + int64(l.opt.Grace))
			}
			if ready {
				due = append(due, id)
			}
		}
		return err
	})
	if err != nil {
		return wrap("find events to prune", err)
	}
	for _, id := range due {
		if err := l.pruneEvent(ctx, id); err != nil {
			return wrap("prune event "+id, err)
		}
	}
	return nil
}

// everythingIn reports whether the time has come and no enrolled gate can have
// anything from before it.
func (t *txn) everythingIn(since int64) (bool, error) {
	if t.now.UnixNano() < since {
		return false, nil
	}
	all, err := t.gates()
	if err != nil {
		return false, err
	}
	for _, g := range all {
		if g.State != StateEnrolled || g.Role != RoleGate {
			continue
		}
		row, err := t.Gate(g.Device)
		if err != nil || row.Hello < since {
			return false, err
		}
		level := true
		err = t.Streams(g.Device, func(_ ticket.Stream, r StreamRow) bool {
			level = r.High >= r.Head
			return level
		})
		if err != nil || !level {
			return false, err
		}
	}
	return true, nil
}

// pruneEvent marks the event first, so that what comes meanwhile is late, then
// removes its rows and at last the records that nothing needs any more.
func (l *Ledger) pruneEvent(ctx context.Context, id string) error {
	err := l.update(ctx, func(t *txn) error {
		ev, err := t.event(id)
		if err != nil || ev.row.Pruned {
			return err
		}
		ev.row.Pruned, ev.dirty = true, true
		t.say(func() { l.log.Info("event pruned", "event", id) })
		return nil
	})
	for more := true; more && err == nil; {
		err = l.update(ctx, func(t *txn) (err error) {
			more, err = t.sweep(id)
			return err
		})
	}
	if err == nil {
		err = l.trim(ctx)
	}
	if err != nil {
		return err
	}
	return l.update(ctx, func(t *txn) error {
		ev, err := t.event(id)
		if err == nil {
			ev.row.Swept, ev.dirty = true, true
		}
		return err
	})
}

func (t *txn) sweep(event string) (more bool, err error) {
	n, err := t.DropClaims(event, pruneBatch)
	if err != nil {
		return false, err
	}
	for _, endpoint := range []string{ticketPolicy.Endpoint, askPolicy.Endpoint, acknowledgePolicy.Endpoint} {
		m, err := t.Seen().PruneScope(endpoint, event, pruneBatch)
		if err != nil {
			return false, err
		}
		n = max(n, m)
	}
	return n == pruneBatch, nil
}

// trim removes from the start of each gate's runs the records up to the last one
// of a pruned event, as long as none of an unpruned event lies before it: what
// stays can be fetched without a gap.
func (l *Ledger) trim(ctx context.Context) error {
	var runs []ticket.Stream
	err := l.view(ctx, func(t *txn) error {
		runs = nil
		return t.Streams("", func(s ticket.Stream, r StreamRow) bool {
			if !isLedger(s.Source) && r.High > r.Base {
				runs = append(runs, s)
			}
			return true
		})
	})
	for _, s := range runs {
		for more := true; more && err == nil; {
			err = l.update(ctx, func(t *txn) (err error) {
				more, err = t.trimRun(s)
				return err
			})
		}
	}
	return err
}

func (t *txn) trimRun(s ticket.Stream) (more bool, err error) {
	st, err := t.stream(s)
	if err != nil {
		return false, err
	}
	front, n, err := t.prunedFront(st)
	if err != nil {
		return false, err
	}
	for _, h := range front[:n] {
		if err := t.DropRecord(s, h.pos); err != nil {
			return false, err
		}
		st.row.Base, st.dirty = max(st.row.Base, h.pos), true
	}
	return n >= pruneBatch, nil
}

type held struct {
	pos uint64
	k   Kept
}

// prunedFront gives the first records of a run up to some that may go, and how
// many of them those are.
func (t *txn) prunedFront(st *streamState) (front []held, n int, err error) {
	const most = 20 * pruneBatch // a run of other records longer than this waits for what comes after it
	err = t.Records(st.Stream, 0, func(pos uint64, k Kept) bool {
		if pos > st.row.High || len(front) == most {
			return false
		}
		front = append(front, held{pos, k})
		return true
	})
	for i, h := range front {
		if err != nil || n >= pruneBatch {
			break
		}
		var of need
		if of, err = t.needOf(h.k); of == needed {
			break
		}
		if of == pruned {
			n = i + 1
		}
	}
	return front, n, err
}

// need says whether a record may go.
type need uint8

const (
	needed need = iota
	pruned
	follows // goes with what comes after it: no claim
)

func (t *txn) needOf(k Kept) (need, error) {
	if k.Aside {
		return follows, nil
	}
	rec, err := ticket.DecodeRecord(k.Raw)
	if err != nil || rec.Claim == nil {
		return follows, err
	}
	ev, err := t.event(rec.Claim.Unit.Event)
	if err != nil || !ev.row.Pruned {
		return needed, err
	}
	return pruned, nil
}

// forget removes the rows of hand-helds' claims whose time is over.
func (l *Ledger) forget(ctx context.Context) error {
	for _, p := range []seen.Policy{claimPolicy, annulPolicy} {
		for n := pruneBatch; n == pruneBatch; {
			err := l.update(ctx, func(t *txn) (err error) {
				n, err = t.Seen().Prune(p.Endpoint, t.now, pruneBatch)
				return err
			})
			if err != nil {
				return wrap("forget claims of hand-helds", err)
			}
		}
	}
	return nil
}

// LateRecord is a claim's record that came after its event was pruned.
type LateRecord struct {
	Event  string       `json:"event"`
	Ticket string       `json:"ticket"`
	Claim  string       `json:"claim"`
	Rev    uint32       `json:"rev"`
	State  ticket.State `json:"state"`
	Gate   string       `json:"gate"` // the place
	Time   string       `json:"time"` // when it was claimed, ticket.TimeFormat
}

// Late lists late records, after a cursor ("": from the start); next is the cursor
// to go on with.
func (l *Ledger) Late(ctx context.Context, after string, limit int) (out []LateRecord, next string, err error) {
	out = []LateRecord{}
	err = l.view(ctx, func(t *txn) error {
		rows, n, err := t.Late(after, limit)
		next = n
		for _, r := range rows {
			if err != nil {
				break
			}
			var rec ticket.Record
			if rec, err = ticket.DecodeRecord(r.Raw); err == nil {
				out = append(out, lateRecord(r.Event, *rec.Claim))
			}
		}
		return err
	})
	if err != nil {
		return nil, "", wrap("list late records", err)
	}
	return out, next, nil
}

func lateRecord(event string, c ticket.Claim) LateRecord {
	return LateRecord{
		Event: event, Ticket: c.Unit.Ticket.String(), Claim: c.ID.String(), Rev: c.Rev, State: c.State,
		Gate: c.Place, Time: c.Claimed.Time().Format(ticket.TimeFormat),
	}
}
