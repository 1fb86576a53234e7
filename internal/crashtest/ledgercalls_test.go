package crashtest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// asker is a gate as the ledger sees it, without a process: it asks about one claim
// and uploads its record.
type asker struct {
	device ticket.Source
	seed   string
	tap    *Tap
}

func (r *rig) newAsker() *asker {
	r.t.Helper()
	seed, public, err := wire.NewDeviceKey()
	r.must(err)
	device, err := wire.DeviceID(public)
	r.must(err)
	_, err = r.client.AddGate(r.t.Context(), "asker", public, "gate")
	r.must(err)
	tap, err := NewTap(r.nats, &Log{}, r.ledger.log)
	r.must(err)
	r.t.Cleanup(tap.Close)
	return &asker{device, seed, tap}
}

// record makes rev 0 of a claim on a ticket, the first record of a run.
func (a *asker) record(t *testing.T, id ticket.ID, run ticket.Run) (ticket.Claim, []byte) {
	t.Helper()
	now := time.Now().UnixNano()
	c := ticket.Claim{
		ID:    ticket.ClaimID{Gate: a.device, Run: run, Pos: 1},
		Unit:  ticket.Unit{Event: event, Format: ticket.FormatA1, Ticket: id},
		State: ticket.Pending, Claimed: ticket.Stamp{Wall: now, Up: 1}, At: now, Place: "asker", Lane: "1", Lease: time.Minute,
	}
	raw, err := ticket.Record{Source: a.device, Run: run, Pos: 1, Claim: &c}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return c, raw
}

// ask connects, asks about a claim and uploads its record, as far as the ledger
// lives. It gives the answer, if there was one.
func (a *asker) ask(t *testing.T, p *program, c ticket.Claim, raw []byte) (answer ticket.Answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func(done chan error) {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}(p.done)
	conn, err := wire.Dial(ctx, wire.NATSOptions{URLs: []string{"nats://" + a.tap.Addr}, Seed: a.seed, Plain: true, Name: "asker", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for up := conn.Connected(); !conn.Status().Connected; {
		select {
		case <-up:
		case <-ctx.Done():
			return answer
		}
	}
	request := func(verb string, m any) (reply []byte) {
		b, err := cbor.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		again := time.NewTicker(10 * time.Millisecond) // a ledger that has just started is not there for all yet
		defer again.Stop()
		for {
			reply, err = conn.Request(try, "gate."+string(a.device)+"."+verb, b)
			if !errors.Is(err, wire.ErrNoResponders) && !errors.Is(err, wire.ErrNotConnected) {
				return reply
			}
			select {
			case <-again.C:
			case <-try.Done():
				return nil
			}
		}
	}
	var reply wire.AskReply
	if cbor.Unmarshal(request("ask", wire.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{raw}}), &reply) == nil {
		answer = reply.Answer
	}
	request("upload", wire.Upload{Run: c.ID.Run, From: 1, Records: [][]byte{raw}})
	return answer
}

// TestLedgerCalls has each call that a ledger makes on its files fail, or be its
// last, from its start over an ask and an upload to its end. It stops in an orderly
// way or goes on; the next start works, knows of everything that was announced, and
// answers as it did.
func TestLedgerCalls(t *testing.T) {
	t.Parallel()
	sweep(t, 2, func() func(sabotage) bool {
		r := stand(t, 0)
		a := r.newAsker()
		if code := r.ledger.stop(); code != 0 {
			t.Fatalf("the ledger ended with %d", code)
		}
		before := filepath.Join(r.dir, "before")
		r.must(copyFiles(before, r.ledger.disk.Back("data")))
		return func(s sabotage) bool {
			r.must(wipe(r.ledger.disk.Back("data")))
			r.must(copyFiles(r.ledger.disk.Back("data"), before))
			return r.answering(a, s)
		}
	})
}

// answering is one case.
func (r *rig) answering(a *asker, s sabotage) bool {
	t, p := r.t, r.ledger
	r.must(p.disk.Recall("data"))
	id := ticket.ID{}
	rand.Read(id[:])
	c, raw := a.record(t, id, ticket.Run(time.Now().UnixNano()))
	hit := s.arm(p)
	p.start()
	r.eventually("the ledger", func() bool { return p.ended() || r.healthy() })
	first := a.ask(t, p, c, raw)
	p.disk.SetFault(nil)
	if code := p.stop(); !orderly(code, s) {
		t.Errorf("%v: the ledger ended with %d", s, code)
	}
	p.start()
	r.eventually("the ledger", func() bool { return p.ended() || r.healthy() })
	if p.ended() {
		t.Errorf("%v: the ledger does not start any more", s)
		return false
	}
	if again := a.ask(t, p, c, raw); again != ticket.AnswerFirst {
		t.Errorf("%v: the claim was answered %q, and then %q", s, first, again)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("%v: after the next start the ledger ended with %d", s, code)
	}
	if strings.Contains(p.logged(), "panic") {
		t.Errorf("%v: a panic", s)
	}
	r.audit(s.String(), Of(p.log.Recording(""), "data"))
	return hit()
}
