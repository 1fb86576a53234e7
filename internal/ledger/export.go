package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"admitone/internal/ticket"
)

// View runs fn in a read transaction of the ledger's store, for rows that are not
// the ledger's.
func (l *Ledger) View(ctx context.Context, fn func(Tx) error) error { return l.store.View(ctx, fn) }

// RecordReport is a record as the API shows it. What a kind of record does not have
// is left out. Times are ticket.TimeFormat.
type RecordReport struct {
	Source ticket.Source `json:"source"`
	Run    ticket.Run    `json:"run"`
	Pos    uint64        `json:"pos"`
	Kind   string        `json:"kind"` // claim, event, feed, or aside: what could not be read

	Claim   string        `json:"claim,omitempty"` // of a claim, or that an event is about
	Rev     uint32        `json:"rev,omitempty"`
	State   string        `json:"state,omitempty"`
	Reason  ticket.Reason `json:"reason,omitempty"`
	Event   string        `json:"event,omitempty"`
	Format  string        `json:"format,omitempty"`
	Ticket  string        `json:"ticket,omitempty"`
	Entry   uint32        `json:"entry,omitempty"`
	Time    string        `json:"time,omitempty"` // when it was claimed, happened, or was fed
	Clock   string        `json:"clock,omitempty"`
	At      string        `json:"at,omitempty"`   // when this revision was made
	Gate    string        `json:"gate,omitempty"` // the place
	Lane    string        `json:"lane,omitempty"`
	Alone   bool          `json:"alone,omitempty"`
	Type    string        `json:"type,omitempty"` // of an event
	Detail  string        `json:"detail,omitempty"`
	Subject string        `json:"subject,omitempty"` // of a feed
	Version uint64        `json:"version,omitempty"`
}

// Records lists all records that are held, by source, run and position, after a
// cursor ("": from the start); next is the cursor of the last one. It returns
// ErrInvalid for what is no cursor. Records that arrive meanwhile are in it where
// their place is still to come.
func (l *Ledger) Records(ctx context.Context, after string, limit int) (out []RecordReport, next string, err error) {
	from, pos, err := parseRecordCursor(after)
	if err != nil {
		return nil, "", err
	}
	err = l.view(ctx, func(t *txn) error {
		out, next = []RecordReport{}, after
		var runs []ticket.Stream
		err := t.Streams("", func(s ticket.Stream, _ StreamRow) bool {
			if s.Source > from.Source || s.Source == from.Source && s.Run >= from.Run {
				runs = append(runs, s)
			}
			return true
		})
		for _, s := range runs {
			if err != nil || len(out) == limit {
				break
			}
			start := uint64(0)
			if s == from {
				start = pos
			}
			err = t.Records(s, start, func(pos uint64, k Kept) bool {
				if len(out) < limit {
					out = append(out, recordReport(s, pos, k))
				}
				return len(out) < limit
			})
		}
		if n := len(out); n > 0 {
			next = recordCursor(out[n-1])
		}
		return err
	})
	return out, next, wrap("list records", err)
}

func recordCursor(r RecordReport) string { return fmt.Sprintf("%s/%s/%d", r.Source, r.Run, r.Pos) }

func parseRecordCursor(s string) (from ticket.Stream, pos uint64, err error) {
	if s == "" {
		return from, 0, nil
	}
	bad := fmt.Errorf("cursor %q: %w", s, ErrInvalid)
	i := strings.LastIndexByte(s, '/')
	j := strings.LastIndexByte(s[:max(i, 0)], '/')
	if j <= 0 {
		return from, 0, bad
	}
	run, err := ticket.ParseRun(s[j+1 : i])
	pos, err2 := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil || err2 != nil {
		return from, 0, bad
	}
	return ticket.Stream{Source: ticket.Source(s[:j]), Run: run}, pos, nil
}

func recordReport(s ticket.Stream, pos uint64, k Kept) RecordReport {
	out := RecordReport{Source: s.Source, Run: s.Run, Pos: pos, Kind: "aside"}
	rec, err := ticket.DecodeRecord(k.Raw)
	if k.Aside || err != nil {
		return out
	}
	stamp := func(ns int64) string { return unix(ns).Format(ticket.TimeFormat) }
	switch c, e, f := rec.Claim, rec.Event, rec.Feed; {
	case c != nil:
		out.Kind, out.Claim, out.Rev, out.State, out.Reason = "claim", c.ID.String(), c.Rev, c.State.String(), c.Reason
		out.Event, out.Format, out.Ticket, out.Entry = c.Unit.Event, c.Unit.Format.String(), c.Unit.Ticket.String(), c.Unit.Entry
		out.Time, out.Clock, out.At = stamp(c.Claimed.Wall), c.Claimed.Class.String(), stamp(c.At)
		out.Gate, out.Lane, out.Alone = c.Place, c.Lane, c.Alone
	case e != nil:
		out.Kind, out.Type, out.Detail, out.Gate, out.Lane = "event", string(e.Type), e.Detail, e.Place, e.Lane
		out.Time, out.Clock = stamp(e.Stamp.Wall), e.Stamp.Class.String()
		if e.Claim != nil {
			out.Claim = e.Claim.String()
		}
	default:
		out.Kind, out.Subject, out.Version, out.Time = "feed", f.Subject, f.Version, stamp(f.At)
	}
	return out
}
