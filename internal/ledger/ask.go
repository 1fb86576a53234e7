package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// Errors of requests that get no answer. They are counted, and nothing is changed.
var (
	ErrForeign = errors.New("a source may speak for itself only")      // returned when a claim or record is another's
	ErrNoClaim = errors.New("the claim is not known and did not come") // returned when an ask carries no rev 0 that reads
)

// errMismatch undoes a transaction whose claim id stands with another unit.
var errMismatch = errors.New("claim id stands with another unit")

// answered is an answer as it is stored for good.
type answered struct {
	Answer ticket.Answer `cbor:"1,keyasint"`
	First  *First        `cbor:"2,keyasint,omitempty"`
}

var encMode = func() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return m
}()

// Ask answers a gate's question about its own claim: in one transaction, the
// records are merged, the unit is locked, and the answer is stored for good. The
// same ask gets the same answer; the same claim id with another unit gets
// mismatch and changes nothing but an alarm.
func (l *Ledger) Ask(ctx context.Context, from ticket.Source, m Ask) (AskReply, error) {
	in, err := l.ownRecords(from, m.Records)
	if err != nil || m.Claim.Gate != from {
		l.counts.refused.Add(1)
		return AskReply{}, fmt.Errorf("ask by %s about %s: %w", from, m.Claim, errors.Join(ErrForeign, err))
	}
	var out AskReply
	err = l.update(ctx, func(t *txn) error {
		out = AskReply{Claim: m.Claim}
		return t.ask(m, in, &out)
	})
	if errors.Is(err, errMismatch) {
		return l.mismatch(ctx, m)
	}
	if err != nil {
		return AskReply{}, fmt.Errorf("ask about %s: %w", m.Claim, err)
	}
	l.counts.asks.Add(1)
	return out, nil
}

// ownRecords decodes records that must be the sender's own and must read: what
// cannot be read comes again by upload, where it is set aside at its position.
func (l *Ledger) ownRecords(from ticket.Source, raws [][]byte) ([]arrival, error) {
	in := make([]arrival, 0, len(raws))
	for _, raw := range raws {
		rec, err := ticket.DecodeRecord(raw)
		if err != nil {
			continue
		}
		if rec.Source != from || !kindFits(rec) {
			return nil, fmt.Errorf("record %s/%s/%d", rec.Source, rec.Run, rec.Pos)
		}
		in = append(in, arrival{stream: rec.Stream(), pos: rec.Pos, raw: raw, rec: &rec})
	}
	return in, nil
}

func (t *txn) ask(m Ask, in []arrival, out *AskReply) error {
	for _, a := range in {
		if _, err := t.merge(a); err != nil {
			return err
		}
	}
	ev, err := t.event(m.Unit.Event)
	if err != nil {
		return err
	}
	out.Time = t.now.UnixNano()
	if ev.row.Pruned {
		out.Answer = ticket.AnswerUnknown // its rows are gone, and nobody may enter any more
		return nil
	}
	u, err := t.unit(m.Unit)
	if err != nil {
		return err
	}
	if u.find(m.Claim) == nil {
		return t.notHere(m)
	}
	ans, err := t.echo(u, m.Claim)
	if err != nil {
		return err
	}
	out.Answer, out.First = ans.Answer, ans.First
	out.Records, err = t.records(u, m.Records)
	return err
}

// notHere tells a claim that stands with another unit from one that is not known.
func (t *txn) notHere(m Ask) error {
	_, known, err := t.unitOf(m.Claim)
	if err != nil {
		return err
	}
	if known {
		return errMismatch
	}
	return ErrNoClaim
}

// echo gives the stored answer again, or finds the answer and stores it. A claim id
// stands with one unit, which was looked at before; the row's key names the unit
// first, so that it lies beside the unit's own row.
func (t *txn) echo(u *unitState, id ticket.ClaimID) (answered, error) {
	c, holder := u.find(id).Claim, id.String()
	k := seen.Key{Endpoint: askPolicy.Endpoint, Scope: u.id.Event, ID: string(u.id.Key()) + holder}
	got, err := t.Seen().Claim(askPolicy, seen.Request{Key: k, At: t.now, Place: c.Place, Holder: holder})
	if err != nil {
		return answered{}, fmt.Errorf("claim ask: %w", err)
	}
	var ans answered
	switch got.Outcome {
	case seen.Echoed:
		if err := cbor.Unmarshal(got.Row.Result, &ans); err != nil {
			return ans, fmt.Errorf("read stored answer: %w", err)
		}
		return ans, nil
	case seen.Won:
	default:
		return ans, fmt.Errorf("claim ask: outcome %d of a row that is never left in progress", got.Outcome)
	}
	if err := t.askSkew(c); err != nil {
		return ans, err
	}
	if ans, err = t.answer(u, id); err != nil {
		return ans, err
	}
	b, err := encMode.Marshal(ans)
	if err != nil {
		return ans, fmt.Errorf("store answer: %w", err)
	}
	if _, err := t.Seen().Finish(k, holder, b); err != nil {
		return ans, fmt.Errorf("store answer: %w", err)
	}
	row := u.find(id)
	row.Answer = ans.Answer
	u.changed(row)
	return ans, nil
}

// answer decides about a claim that was never asked about: settled, or as decide
// says.
func (t *txn) answer(u *unitState, id ticket.ClaimID) (answered, error) {
	c := u.find(id).Claim
	if c.State != ticket.Pending {
		return answered{Answer: ticket.AnswerSettled}, nil
	}
	ans, _, err := t.decide(u, c)
	return ans, err
}

// decide says whether a claim may have its unit: held by another, revoked,
// unknown, or first. The unit's row is the lock: inserted if it is absent, before
// anything is looked at. Where the one in it does not hold any more, settling the
// unit hands it over in place. The view is the unit's, locked; the claim itself
// need not stand in it yet.
func (t *txn) decide(u *unitState, c ticket.Claim) (answered, ticket.View, error) {
	r := rowRequest(c)
	lock, err := t.Seen().Claim(ticketPolicy, r)
	if err != nil {
		return answered{}, ticket.View{}, fmt.Errorf("lock unit: %w", err)
	}
	v, err := t.look(u)
	if err != nil {
		return answered{}, v, err
	}
	ans, err := t.against(v, c.ID)
	if err == nil && ans.Answer != ticket.AnswerFirst && lock.Outcome == seen.Won {
		_, err = t.Seen().Drop(r.Key, r.Holder) // refused work leaves nothing
	}
	return ans, v, err
}

// against judges a pending claim by everything else.
func (t *txn) against(v ticket.View, id ticket.ClaimID) (answered, error) {
	if other, held := v.Holder(id); held {
		ans := answered{Answer: ticket.AnswerInProgress, First: firstOf(other.Claim)}
		for _, k := range v.Claims {
			if k.Claim.ID != id && k.Holds() && !k.FreshPending() {
				ans.Answer = ticket.AnswerSeen
			}
		}
		return ans, nil
	}
	if v.Revoked {
		return answered{Answer: ticket.AnswerRevoked}, nil
	}
	known, err := t.open(v.Unit.Event)
	if err != nil {
		return answered{}, err
	}
	if !known {
		return answered{Answer: ticket.AnswerUnknown}, nil
	}
	return answered{Answer: ticket.AnswerFirst}, nil
}

// mismatch answers an ask that was undone, and leaves an alarm.
func (l *Ledger) mismatch(ctx context.Context, m Ask) (AskReply, error) {
	out := AskReply{Claim: m.Claim, Answer: ticket.AnswerMismatch}
	err := l.update(ctx, func(t *txn) error {
		out.Time = t.now.UnixNano()
		stands, _, err := t.ClaimUnit(m.Claim)
		if err != nil {
			return err
		}
		return t.alarmMismatch(m.Claim, stands, m.Unit)
	})
	if err != nil {
		return AskReply{}, fmt.Errorf("ask about %s: %w", m.Claim, err)
	}
	return out, nil
}

// Peek tells how a unit stands. It writes nothing.
func (l *Ledger) Peek(ctx context.Context, _ ticket.Source, m Peek) (PeekReply, error) {
	var out PeekReply
	err := l.view(ctx, func(t *txn) error {
		u, err := t.unit(m.Unit)
		if err != nil {
			return err
		}
		v, err := t.look(u)
		if err != nil {
			return err
		}
		reason, cite := v.Blocked()
		out = PeekReply{Reason: reason, Time: t.now.UnixNano()}
		if !cite.ID.IsZero() {
			out.First = firstOf(cite)
		}
		out.Records, err = t.records(u, nil)
		return err
	})
	if err != nil {
		return PeekReply{}, fmt.Errorf("peek: %w", err)
	}
	return out, nil
}
