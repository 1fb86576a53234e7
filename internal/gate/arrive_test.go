package gate_test

import (
	"sync/atomic"
	"testing"
	"time"

	"admitone/internal/gate"
	"admitone/internal/gatestore"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// slowView is a store in which something happens once, right after a unit was read.
type slowView struct {
	*gatestore.Store
	after atomic.Pointer[func()]
}

func (s *slowView) View(u ticket.Unit) (ticket.View, error) {
	v, err := s.Store.View(u)
	if f := s.after.Swap(nil); f != nil {
		(*f)()
	}
	return v, err
}

// A claim that had arrived before a decision, and becomes durable while the unit is
// being read, must not fall between what is durable and what has arrived.
func TestArrivalThatBecomesDurableDuringADecisionCounts(t *testing.T) {
	slow := &slowView{}
	peers := ticket.Link{Peers: true, PeerPatience: 50 * time.Millisecond}
	inBubble(t, func(r *rig) {
		r.wire.link = peers
		r.wrap = func(s *gatestore.Store) gate.Store { slow.Store = s; return slow }
	}, func(t *testing.T, r *rig) {
		earlier := peer(1, 1, 0, ticket.Pending, time.Now().Add(-time.Second))
		r.line(r.mint(1))
		release, learned := make(chan struct{}), make(chan struct{})
		r.mem.OnCommit(func(int) kv.Fate { <-release; return kv.Durable })
		go func() {
			defer close(learned)
			raw, err := earlier.Encode()
			if err == nil {
				err = r.g.Learn(t.Context(), true, []ticket.Arrival{{Stream: earlier.Stream(), Pos: earlier.Pos, Raw: raw, Record: &earlier}})
			}
			if err != nil {
				t.Error(err)
			}
		}()
		r.wait(10 * time.Millisecond)
		during := func() { close(release); <-learned }
		slow.after.Store(&during)
		r.wait(time.Second)
		r.want("crossed with an earlier claim", r.reasons(), ticket.InProgress)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened against a claim that had arrived")
		}
	})
}

// An answer that came while the loop was in a commit counts in the decision that
// is due right after it.
func TestAnswerThatCameDuringACommitCounts(t *testing.T) {
	inBubble(t, func(r *rig) { r.wire.link = ticket.Link{Up: true} }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(390 * time.Millisecond)
		r.mem.OnCommit(func(int) kv.Fate { time.Sleep(50 * time.Millisecond); return kv.Durable })
		r.ts.events <- gate.PassageOut // somebody leaves: a record, and the disk is slow
		r.wait(5 * time.Millisecond)
		r.g.Answered(ticket.Answered{Claim: r.wire.asked[0].ID, Answer: ticket.AnswerSeen, FirstGate: "East"})
		r.wait(time.Second)
		r.want("answered in time", r.reasons(), ticket.AlreadyUsed)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened against the ledger's answer")
		}
	})
}

// A late passage while the next ticket is being decided is the annulled claim's:
// nothing else has moved the relay.
func TestLatePassageWhileTheNextIsDecided(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(12 * time.Second)
		r.wire.mu.Lock()
		r.wire.link = ticket.Link{Up: true}
		r.wire.mu.Unlock()
		r.line(r.mint(2))
		r.wait(100 * time.Millisecond)
		r.ts.events <- gate.PassageIn
		r.wait(time.Second)
		r.wantEnds(ticket.Annulled, ticket.Admitted)
		r.want("both", r.reasons(), ticket.OK, ticket.OK)
		if n := r.wire.events(ticket.EventTailgate); n != 0 {
			t.Fatalf("%d tailgates", n)
		}
	})
}

// A gate that is told to stop while it waits for its store stops without an error.
func TestStopWhileAClaimWaitsForTheStore(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.mem.OnCommit(func(int) kv.Fate { time.Sleep(time.Second); return kv.Durable })
		go func() {
			if err := r.store.SetLastEvent(t.Context(), "e"); err != nil {
				t.Error(err)
			}
		}()
		r.line(r.mint(1)) // queues behind the commit under way
		r.cancel()
		r.wait(2 * time.Second)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened after it was told to stop")
		}
	})
}

// A passage that came before the relay moved for the next ticket, while the loop
// was in the commit of its claim, is the annulled claim's.
func TestLatePassageDuringTheNextClaimsCommit(t *testing.T) {
	inBubble(t, func(r *rig) { r.ts.passage = 0 }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(12 * time.Second)
		r.mem.OnCommit(func(int) kv.Fate { time.Sleep(100 * time.Millisecond); return kv.Durable })
		r.line(r.mint(2)) // nobody else is there: it fires as soon as it is durable
		r.wait(50 * time.Millisecond)
		r.ts.events <- gate.PassageIn
		r.wait(time.Second)
		r.wantEnds(ticket.Annulled, ticket.Admitted)
		late := r.wire.claims(ticket.Admitted)
		if len(late) != 1 || late[0].Unit.Ticket != (ticket.ID{1}) {
			t.Fatalf("admitted: %+v", late)
		}
	})
}
