package ledger_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

func drain(r *rig) (out []ticket.Record) {
	for {
		select {
		case rec := <-r.Feeds():
			out = append(out, rec)
		default:
			return out
		}
	}
}

func TestProgrammesOnlyRise(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	if got := drain(r); len(got) != 1 || got[0].Feed.Version != 1 || got[0].Pos != 1 || got[0].Source != "ledger/a" {
		t.Fatalf("feeds %+v, want the programme", got)
	}
	if v := r.push(7); v != 7 {
		t.Errorf("version %d, want 7", v)
	}
	if v := r.push(0); v != 8 {
		t.Errorf("version %d, want the next, 8", v)
	}
	p := programme()
	p.Version = 8
	if _, err := r.PushProgramme(ctx, p); !errors.Is(err, ledger.ErrTaken) {
		t.Errorf("the same version again: %v, want ErrTaken", err)
	}
	p.Version, p.Events[0].Close = 9, time.Time{}
	if _, err := r.PushProgramme(ctx, p); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a programme without an end: %v, want ErrInvalid", err)
	}
	if got, err := r.Programme(ctx); err != nil || got.Version != 8 {
		t.Errorf("programme %d, %v, want 8", got.Version, err)
	}
	if n := len(drain(r)); n != 2 {
		t.Errorf("%d entries published, want 2: a refused one leaves nothing", n)
	}
	if own := r.Own(); len(own) != 1 || own[0].Pos != 3 || own[0].Stream() != r.Stream() {
		t.Errorf("own %+v, want head 3", own)
	}
}

func TestCodeListsTravelInChunks(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	drain(r)
	ids := make([]ticket.ID, 70_000)
	for i := range ids {
		copy(ids[i][:], fmt.Sprintf("%016d", i*7919%len(ids)))
	}
	for round := range 2 {
		version, err := r.PutCodes(ctx, event, ids)
		if err != nil {
			t.Fatal(err)
		}
		var chunks []ticket.FeedCodes
		for _, rec := range drain(r) {
			raw, err := rec.Encode()
			if err != nil || len(raw) >= 512<<10 || rec.Feed.Version != version {
				t.Errorf("chunk of %d bytes, version %d, %v; want less than 512 KiB of version %d", len(raw), rec.Feed.Version, err, version)
			}
			chunks = append(chunks, *rec.Feed.Codes)
		}
		list, ok, err := ticket.AssembleCodes(chunks)
		if err != nil || !ok || list.Len() != len(ids) {
			t.Errorf("round %d: list of %d, %t, %v; want %d", round, list.Len(), ok, err, len(ids))
		}
	}
	if _, err := r.PutCodes(ctx, "other", ids[:1]); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("codes of an unknown event: %v, want ErrNotFound", err)
	}
	many := make([]ticket.ID, ledger.MaxCodes+1)
	for i := range many {
		binary.BigEndian.PutUint32(many[i][:], uint32(i))
	}
	if _, err := r.PutCodes(ctx, event, many); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("too many codes: %v, want ErrInvalid", err)
	}
}

func TestGatesAreEnrolledSwappedRevokedAndLost(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	enrol := func(place, key string, want error) {
		t.Helper()
		if _, err := r.EnrolGate(ctx, place, key, ledger.RoleGate); !errors.Is(err, want) {
			t.Errorf("enrol %s at %q: %v, want %v", key, place, err, want)
		}
	}
	drain(r)
	enrol("North", "UAA", nil)
	enrol("North", "UAA", nil) // again: nothing new
	if n := len(drain(r)); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	enrol("North", "UBB", ledger.ErrTaken)
	enrol("South", "UAA", ledger.ErrTaken)
	enrol("", "UBB", ledger.ErrInvalid)
	enrol("a\nb", "UBB", ledger.ErrInvalid)
	enrol("South", "SBB", ledger.ErrInvalid)
	if _, err := r.EnrolGate(ctx, "South", "UBB", "king"); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("enrol as king: %v", err)
	}

	spare, err := r.SwapGate(ctx, "North", "UCC")
	if err != nil || spare.Device != "cc" || spare.Place != "North" {
		t.Fatalf("swap: %+v, %v", spare, err)
	}
	if got := drain(r); len(got) != 3 || got[0].Feed.Gate == nil || got[1].Feed.Distrust == nil || got[2].Feed.Gate.State != ledger.StateEnrolled {
		t.Errorf("a swap sent %d entries, want revoked, distrust, enrolled", len(got))
	}
	if again, err := r.SwapGate(ctx, "North", "UCC"); err != nil || again.Device != "cc" || len(drain(r)) != 0 {
		t.Errorf("the same swap again: %+v, %v", again, err)
	}
	enrol("South", "UAA", ledger.ErrInvalid) // a revoked key stays so
	if _, err := r.SwapGate(ctx, "Nowhere", "UDD"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("swap nowhere: %v", err)
	}
	if g, err := r.LostGate(ctx, "cc"); err != nil || g.State != ledger.StateLost {
		t.Errorf("lost: %+v, %v", g, err)
	}
	enrol("North", "UEE", nil)
	enrol("South", "UCC", nil) // found again
	if g, err := r.RevokeGate(ctx, "South"); err != nil || g.State != ledger.StateRevoked {
		t.Errorf("revoke: %+v, %v", g, err)
	}
	list, _, err := r.GateList(ctx)
	want := map[ticket.Source]string{"aa": ledger.StateRevoked, "cc": ledger.StateRevoked, "ee": ledger.StateEnrolled}
	if err != nil || len(list) != len(want) {
		t.Fatalf("list %+v, %v", list, err)
	}
	for _, g := range list {
		if want[g.Device] != g.State {
			t.Errorf("device %s is %s, want %s", g.Device, g.State, want[g.Device])
		}
	}
}

func TestAFailedWriteSaysNothing(t *testing.T) {
	r := newRig(t)
	drain(r)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, true, "ops"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled write: %v", err)
	}
	mem := kv.NewMem()
	r2 := openRig(t, mem, r.clock, r.runs)
	mem.FailNext(kv.FailLost)
	if err := r2.Revoke(context.Background(), ticket.FormatA1, unit(1).Ticket, true, "ops"); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("a write whose commit failed: %v, want ErrUnknown", err)
	}
	r2.store = ledgerstore.New(mem.Crash())
	if n := len(drain(r)) + len(drain(r2)); n != 0 || r2.Own()[0].Pos != 0 || r2.log.Len() != 0 {
		t.Errorf("%d entries published, head %d, log %q of writes that were not made", n, r2.Own()[0].Pos, r2.log)
	}
}

func TestVerdictsKeepsTheLastHundred(t *testing.T) {
	r := newRig(t)
	for i := range 250 {
		r.Verdict("a", fmt.Appendf(nil, `{"n":%d}`, i))
	}
	r.Verdict("a", []byte("no json"))
	r.Verdict("a", fmt.Appendf(nil, `{"n":"%5000d"}`, 1))
	got := r.Verdicts()
	var last struct{ N int }
	if len(got) != 100 || json.Unmarshal(got[99], &last) != nil || last.N != 249 {
		t.Errorf("%d verdicts, the last %s", len(got), got[len(got)-1])
	}
}

// A spare that was enrolled ahead moves to the place that it takes over, and its
// own place is free again.
func TestAPreparedSpareMoves(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	for place, key := range map[string]string{"North": "UAA", "Spare 1": "UBB"} {
		if _, err := r.EnrolGate(ctx, place, key, ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.EnrolGate(ctx, "Cellar", "UDD", ledger.RoleBroker); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SwapGate(ctx, "North", "UDD"); !errors.Is(err, ledger.ErrInvalid) {
		t.Fatalf("a broker took a gate's place: %v", err)
	}
	g, err := r.SwapGate(ctx, "North", "UBB")
	if err != nil || g.Device != "bb" || g.Place != "North" {
		t.Fatalf("%+v, %v", g, err)
	}
	if _, err := r.EnrolGate(ctx, "Spare 1", "UCC", ledger.RoleGate); err != nil {
		t.Fatalf("the spare's place is still taken: %v", err)
	}
	list, _, err := r.GateList(ctx)
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, e := range list {
		if e.Device == "aa" && e.State != ledger.StateRevoked {
			t.Fatalf("the old box is %s", e.State)
		}
	}
}
