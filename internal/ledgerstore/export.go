package ledgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/tables"
	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
	"admitone/internal/ticket"
)

// Export calls fn for every row of every table, as they stand at one moment, until
// it returns an error. Indexes are left out: they are made anew.
func (s *Store) Export(ctx context.Context, fn func(table string, r tables.Row) error) error {
	return known(s.kv.View(func(t kv.Tx) error {
		e := exporter{ctx: ctx, kv: t, out: fn}
		for bucket, row := range map[string]func(k, v []byte) error{
			"stream": e.stream, "record": e.record, "due": e.due, "subject": e.subject, "conflict": e.conflict, "alarm": e.alarm,
			"event": e.event, "gate": e.gate, "late": e.late, rowBucket: e.office,
		} {
			if err := e.each(bucket, row); err != nil {
				return err
			}
		}
		return kvseen.Each(t, e.seen, e.claim)
	}))
}

type exporter struct {
	ctx context.Context
	kv  kv.Tx
	out func(table string, r tables.Row) error
}

func (e exporter) each(bucket string, row func(k, v []byte) error) error {
	return e.kv.Scan(bucket, nil, nil, func(k, v []byte) (bool, error) {
		err := errors.Join(e.ctx.Err(), row(k, v))
		return err == nil, err
	})
}

func (e exporter) stream(k, v []byte) error {
	s, err := splitStreamKey(k)
	if err != nil {
		return err
	}
	var r streamRow
	if err := parse("stream", v, &r); err != nil {
		return err
	}
	return e.out("stream", tables.Row{string(s.Source), s.Run.String(), r.High, r.Top, r.Head, r.Base, r.Lost, r.Aside})
}

// splitRecordKey also takes what stands behind a prefix that ends with a zero byte.
func splitRecordKey(k []byte) (s ticket.Stream, pos uint64, err error) {
	if len(k) < 8 {
		return s, 0, damaged("record", fmt.Errorf("key %x", k))
	}
	s, err = splitStreamKey(k[:len(k)-8])
	return s, binary.BigEndian.Uint64(k[len(k)-8:]), err
}

func (e exporter) record(k, v []byte) error {
	s, pos, err := splitRecordKey(k)
	if err != nil {
		return err
	}
	kept, err := parseKept(v)
	if err != nil {
		return err
	}
	return e.out("record", tables.Row{string(s.Source), s.Run.String(), pos, kept.Aside, kept.Raw})
}

func unitValues(u ticket.Unit) []any {
	return []any{u.Event, int64(u.Format), u.Ticket[:], int64(u.Entry)}
}

func claimValues(id ticket.ClaimID) []any { return []any{string(id.Gate), id.Run.String(), id.Pos} }

func (e exporter) claim(k, v []byte) error {
	r, err := parseClaim(k, v)
	if err != nil {
		return err
	}
	u, err := ticket.UnitFromKey(k[:len(k)-len(r.Claim.ID.Bytes())])
	if err != nil {
		return damaged("claim", err)
	}
	row := append(tables.Row(claimValues(r.Claim.ID)), unitValues(u)...)
	return e.out("claim", append(row, r.Run.String(), r.Pos, r.Since, string(r.Answer)))
}

func (e exporter) due(k, v []byte) error {
	at, rest, err := splitTime(k)
	if err != nil {
		return err
	}
	id, err := ticket.ClaimIDFromBytes(rest)
	if err != nil {
		return damaged("due", err)
	}
	u, err := ticket.UnitFromKey(v)
	if err != nil {
		return damaged("due", err)
	}
	return e.out("due", append(append(tables.Row{at}, claimValues(id)...), unitValues(u)...))
}

func (e exporter) subject(k, v []byte) error {
	var r subjectRow
	if err := parse("subject", v, &r); err != nil {
		return err
	}
	return e.out("subject", tables.Row{string(k), r.Version, string(r.Source), r.Run.String(), r.Pos})
}

func (e exporter) conflict(_, v []byte) error {
	var r ledger.ConflictRow
	if err := parse("conflict", v, &r); err != nil {
		return err
	}
	return e.out("conflict", tables.Row{r.ID, r.Announced, r.Unit.Event, string(r.State), v})
}

func (e exporter) alarm(_, v []byte) error {
	var a ledger.Alarm
	if err := parse("alarm", v, &a); err != nil {
		return err
	}
	return e.out("alarm", tables.Row{a.ID, a.At, a.Event, string(a.Kind), v})
}

func (e exporter) event(k, v []byte) error {
	var r eventRow
	if err := parse("event", v, &r); err != nil {
		return err
	}
	counts := tables.Row{string(k), int64(0), int64(r.Admitted), int64(r.Conflicts), int64(r.Alarms), int64(r.Late)}
	return errors.Join(
		e.out("event", tables.Row{string(k), r.Forget, r.Closed, r.Pruned, r.Swept}),
		e.out("event_count", counts))
}

func (e exporter) gate(k, v []byte) error {
	var r gateRow
	if err := parse("gate", v, &r); err != nil {
		return err
	}
	return e.out("gate", tables.Row{string(k), []byte(r.Place), r.Hello})
}

func (e exporter) late(k, v []byte) error {
	event, rest, _ := bytes.Cut(k, []byte{0})
	s, pos, err := splitRecordKey(rest)
	if err != nil {
		return err
	}
	return e.out("late", tables.Row{string(event), string(s.Source), s.Run.String(), pos, v})
}

func (e exporter) office(k, v []byte) error {
	n := int(k[0])
	if len(k) < n+2 {
		return damaged(rowBucket, fmt.Errorf("key %x", k))
	}
	table, id := office.Table(k[1:n+1]), string(k[n+1:])
	r, err := parseRow(table, id, v)
	if err != nil {
		return err
	}
	return e.out("office", tables.Row{string(table), []byte(id), []byte(r.List), r.At, r.Body})
}

func (e exporter) seen(r seen.Row) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	return e.out("seen", tables.Row{
		r.Key.Endpoint, []byte(r.Key.Scope), []byte(r.Key.ID), nanos(r.FirstSeen), nanos(r.Until),
		[]byte(r.Place), []byte(r.Holder), orNil(r.Fingerprint), orNil(r.Result), r.Done,
	})
}

func nanos(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

func orNil(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
