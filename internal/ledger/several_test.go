package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

// TestGateListOfTwo: two ledgers on one store, one with its clock behind the
// other's, change the list in turns. Both give the same list under the same version,
// and each change has a higher one: a broker takes the newest from either.
func TestGateListOfTwo(t *testing.T) {
	ctx := t.Context()
	mem := kv.NewMem()
	var both []*ledger.Ledger
	for i, name := range []string{"a", "b"} {
		l, err := ledger.New(ledgerstore.New(mem), ledger.Options{
			Process: name, Now: func() time.Time { return begin.Add(-time.Duration(i) * time.Hour) }, Log: slog.New(slog.DiscardHandler),
			DeviceID: func(k string) (ticket.Source, error) { return ticket.Source(strings.ToLower(k)), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, l)
	}
	last := uint64(0)
	for n := range 6 {
		if _, err := both[n%2].EnrolGate(ctx, fmt.Sprint("place ", n), fmt.Sprint("K", n), ledger.RoleGate); err != nil {
			t.Fatal(err)
		}
		here, v, err1 := both[0].GateList(ctx)
		there, w, err2 := both[1].GateList(ctx)
		if v != w || v <= last || len(here) != n+1 || !reflect.DeepEqual(here, there) || errors.Join(err1, err2) != nil {
			t.Fatalf("after %d: version %d of %d devices, and %d of %d; it was %d (%v, %v)", n, v, len(here), w, len(there), last, err1, err2)
		}
		last = v
	}
}

// heldBack is a store whose next commit is done, but reported as unknown: the
// connection was lost before its answer.
type heldBack struct {
	ledger.Store
	next bool
}

func (h *heldBack) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	err := h.Store.Update(ctx, fn)
	if err == nil && h.next {
		h.next = false
		return fmt.Errorf("commit: %w: connection lost", ledger.ErrUnknown)
	}
	return err
}

// TestUnknownCommitIsOneCallsTrouble: on a store that goes on after a commit of
// unknown outcome, so does the ledger. What was committed though its caller was told
// nothing shows in the next heads, so that gates fetch it.
func TestUnknownCommitIsOneCallsTrouble(t *testing.T) {
	r := newRig(t)
	store := &heldBack{Store: r.store}
	l, err := ledger.New(store, ledger.Options{Process: "b", Now: r.clock.now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	store.next = true
	if err := l.Revoke(ctx, ticket.FormatA1, unit(1).Ticket, true, "ops"); !errors.Is(err, ledger.ErrUnknown) {
		t.Fatalf("a write whose answer was lost: %v", err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	for l.Own()[0].Pos == 0 { // until the upkeep has looked
		select {
		case err := <-ended:
			t.Fatalf("the ledger ended: %v", err)
		case <-limit.Done():
			t.Fatal("what was committed never shows")
		case <-tick.C:
		}
	}
	if err := l.Revoke(ctx, ticket.FormatA1, unit(2).Ticket, true, "ops"); err != nil || l.Own()[0].Pos != 2 {
		t.Errorf("the next write: %v, head %d", err, l.Own()[0].Pos)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
