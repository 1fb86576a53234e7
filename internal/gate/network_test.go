package gate_test

import (
	"testing"
	"time"

	"admitone/internal/gate"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

// answering makes the ledger answer every ask after a delay.
func answering(after time.Duration, answer ticket.Answer) func(*rig) {
	return func(r *rig) {
		r.wire.link = ticket.Link{Up: true}
		r.wire.answer = func(c ticket.Claim) {
			time.Sleep(after) // virtual time
			r.g.Answered(ticket.Answered{Claim: c.ID, Answer: answer, FirstAt: time.Unix(1e9, 0), FirstGate: "East", State: ticket.Admitted})
		}
	}
}

func TestLedgersAnswerDecides(t *testing.T) {
	for answer, want := range map[ticket.Answer]ticket.Reason{
		ticket.AnswerFirst: ticket.OK, ticket.AnswerSeen: ticket.AlreadyUsed, ticket.AnswerInProgress: ticket.InProgress,
		ticket.AnswerRevoked: ticket.Revoked, ticket.AnswerUnknown: ticket.Unknown,
	} {
		t.Run(string(answer), func(t *testing.T) {
			inBubble(t, answering(20*time.Millisecond, answer), func(t *testing.T, r *rig) {
				r.line(r.mint(1))
				r.wait(19 * time.Millisecond)
				r.want("before the answer", r.reasons())
				r.wait(time.Millisecond)
				v := r.last()
				if v.Reason != want || !v.Online || v.Claim == "" {
					t.Fatalf("%+v, want %s", v, want)
				}
				if opened := r.ts.pulsed() == 1; opened != (want == ticket.OK) {
					t.Fatalf("opened: %v", opened)
				}
				if want == ticket.AlreadyUsed && (v.FirstGate != "East" || v.FirstSeen.Unix() != 1e9) {
					t.Fatalf("does not cite the first: %+v", v)
				}
				if want != ticket.OK && len(r.wire.claims(ticket.Refused)) != 1 {
					t.Fatal("the claim was not given up")
				}
			})
		})
	}
}

func TestMismatchIsAFault(t *testing.T) {
	inBubble(t, answering(20*time.Millisecond, ticket.AnswerMismatch), func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(50 * time.Millisecond)
		r.line(r.mint(2))
		r.want("mismatch", r.reasons(), ticket.Fault, ticket.Fault)
		if r.ts.pulsed() != 0 || r.wire.events(ticket.EventWrongCode) != 1 {
			t.Fatal("opened, or no event")
		}
	})
}

func TestPastThePatienceTheGateDecidesAlone(t *testing.T) {
	inBubble(t, answering(time.Second, ticket.AnswerSeen), func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(399 * time.Millisecond)
		r.want("within the patience", r.reasons())
		r.wait(2 * time.Millisecond)
		r.want("past it", r.reasons(), ticket.OK)
		if v := r.last(); v.Online {
			t.Fatal("says the ledger answered")
		}
		alone := r.wire.claims(ticket.Pending)
		if last := alone[len(alone)-1]; last.Rev != 1 || !last.Alone {
			t.Fatalf("does not tell the others that it fired unanswered: %+v", last)
		}
		r.wait(2 * time.Second) // the late answer changes nothing here
		r.want("late answer", r.reasons(), ticket.OK)
	})
}

func TestOfflineRefuse(t *testing.T) {
	inBubble(t, func(r *rig) { r.o.Offline = gate.PolicyRefuse }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.want("offline", r.reasons(), ticket.Offline)
		r.wait(2 * time.Second)
		r.line(r.mint(1))
		r.want("the claim was given up", r.reasons(), ticket.Offline, ticket.Offline)
	})
}

func TestLinkLostWhileWaiting(t *testing.T) {
	inBubble(t, func(r *rig) { r.wire.link = ticket.Link{Up: true} }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(100 * time.Millisecond)
		r.wire.mu.Lock()
		r.wire.link = ticket.Link{Alone: true}
		r.wire.mu.Unlock()
		r.g.LinkChanged()
		r.wait(time.Millisecond)
		r.want("decides at once", r.reasons(), ticket.OK)
	})
}

func TestPeersClaimIsRefusedWithItsTimeAndPlace(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		at := time.Now().Add(-time.Minute)
		r.learn(peer(1, 1, 0, ticket.Pending, at))
		r.line(r.mint(1))
		r.want("in progress elsewhere", r.reasons(), ticket.InProgress)
		r.learn(peer(1, 2, 1, ticket.Admitted, at))
		r.want("admitted elsewhere", r.reasons(), ticket.InProgress, ticket.AlreadyUsed)
		if v := r.last(); v.FirstGate != "South" || !v.FirstSeen.Equal(at) {
			t.Fatalf("%+v", v)
		}
		if len(r.wire.claims(ticket.Pending)) != 0 {
			t.Fatal("claimed what another gate holds")
		}
	})
}

func TestWaitEndsWhenTheOtherGateAnnuls(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		at := time.Now()
		r.learn(peer(1, 1, 0, ticket.Pending, at))
		r.line(r.mint(1))
		r.wait(2 * time.Second)
		if r.wire.peeks < 3 {
			t.Fatalf("asked again %d times in 2 s", r.wire.peeks)
		}
		r.learn(peer(1, 2, 1, ticket.Annulled, at))
		r.want("freed", r.reasons(), ticket.InProgress, ticket.OK)
	})
}

func TestFreedWithNobodyLookingEndsDark(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.learn(peer(1, 1, 0, ticket.Pending, time.Now()))
		r.hold(time.Second, r.mint(1))
		r.wait(4 * time.Second)
		r.learn(peer(1, 2, 1, ticket.Annulled, time.Now()))
		r.wait(time.Second)
		r.want("nobody looks", r.reasons(), ticket.InProgress)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened for nobody")
		}
		if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalIdle {
			t.Fatalf("the lamps still say %v", signals)
		}
	})
}

func TestNobodyWaitsInAmberForEver(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.learn(peer(1, 1, 0, ticket.Pending, time.Now()))
		r.hold(30*time.Second, r.mint(1))
		r.want("overdue", r.reasons(), ticket.InProgress, ticket.AlreadyUsed)
	})
}

func TestCrossingClaims(t *testing.T) {
	for name, c := range map[string]struct {
		theirs time.Duration // before (-) or after ours
		alone  bool
		link   ticket.Link
		want   []ticket.Reason
	}{
		"theirs is first": {-time.Second, false, ticket.Link{Peers: true, PeerPatience: 50 * time.Millisecond}, []ticket.Reason{ticket.InProgress, ticket.AlreadyUsed}},
		"ours is first":   {time.Second, false, ticket.Link{Peers: true, PeerPatience: 50 * time.Millisecond}, []ticket.Reason{ticket.InProgress, ticket.OK}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) { r.wire.link = c.link }, func(t *testing.T, r *rig) {
				r.line(r.mint(1))
				at := time.Now().Add(c.theirs)
				r.learn(peer(1, 1, 0, ticket.Pending, at)) // within our patience
				r.wait(60 * time.Millisecond)
				r.want("crossed", r.reasons(), ticket.InProgress)
				if r.ts.pulsed() != 0 {
					t.Fatal("opened while the claims cross")
				}
				next := ticket.Admitted
				if c.want[1] == ticket.OK {
					next = ticket.Refused // they yield to us
				}
				r.learn(peer(1, 2, 1, next, at))
				r.wait(600 * time.Millisecond)
				r.want("settled", r.reasons(), c.want...)
			})
		})
	}
}

func TestLedgerOrderedUsFirst(t *testing.T) {
	inBubble(t, answering(20*time.Millisecond, ticket.AnswerFirst), func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.learn(peer(1, 1, 0, ticket.Pending, time.Now().Add(-time.Second)))
		r.wait(21 * time.Millisecond)
		r.want("their claim is smaller but the ledger said first", r.reasons(), ticket.OK)
	})
}

func TestAForeignClaimThatFiredAloneIsNotOverruled(t *testing.T) {
	inBubble(t, answering(20*time.Millisecond, ticket.AnswerFirst), func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		p := peer(1, 1, 0, ticket.Pending, time.Now().Add(-time.Second))
		p.Claim.Alone = true
		r.learn(p)
		r.wait(21 * time.Millisecond)
		r.want("they may have opened", r.reasons(), ticket.InProgress)
	})
}

func TestRevocationWhileWaiting(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.learn(peer(1, 1, 0, ticket.Pending, time.Now()))
		r.line(r.mint(1))
		rev := &ticket.FeedRevoke{Format: ticket.FormatA1, Ticket: ticket.ID{1}, Revoked: true}
		r.learn(ticket.Record{Source: "ledger/1", Run: 7, Pos: 2, Feed: &ticket.Feed{
			Subject: ticket.RevokeSubject(ticket.FormatA1, ticket.ID{1}), Version: 1, At: 1, Revoke: rev}})
		r.want("revoked", r.reasons(), ticket.InProgress, ticket.Revoked)
	})
}

func TestStaffAnnul(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(2 * time.Second)
		id := r.wire.claims(ticket.Admitted)[0].ID
		if err := r.g.Annul(t.Context(), id, "steward"); err != nil {
			t.Fatal(err)
		}
		r.wantEnds(ticket.Admitted, ticket.Annulled)
		r.line(r.mint(1))
		r.wait(2 * time.Second)
		r.want("works again", r.reasons(), ticket.OK, ticket.OK)
		second := r.wire.claims(ticket.Admitted)[1].ID
		r.wait(16 * time.Minute)
		if err := r.g.Annul(t.Context(), second, "steward"); err == nil {
			t.Fatal("annulled after 15 minutes")
		}
		other := ticket.ClaimID{Gate: "b", Run: 5, Pos: 1}
		r.learn(peer(9, 1, 0, ticket.Admitted, time.Now()))
		if err := r.g.Annul(t.Context(), other, "steward"); err == nil {
			t.Fatal("annulled another gate's claim")
		}
	})
}

func TestHoldAfter(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.ts.passage, r.o.Lanes[0].Hold, r.o.Lanes[0].HoldAfter = 0, true, time.Second
	}, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		r.wait(time.Second)
		r.ts.events <- gate.PassageIn
		r.wait(time.Millisecond)
		if opens, _, _ := r.ts.told(); opens != 2 || r.ts.pulsed() != 0 {
			t.Fatalf("%d opens, %d pulses", opens, r.ts.pulsed())
		}
	})
}

func TestWithoutAProgrammeNothingIsReady(t *testing.T) {
	inBubble(t, func(r *rig) { r.o.Place = "North" }, func(t *testing.T, r *rig) {
		r.stop()
		r.mem = newMem()
		r.bare = true
		r.start()
		r.line(r.mint(1))
		r.want("no programme", r.reasons(), ticket.NotReady)
		if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalRefuse {
			t.Fatalf("signals %v", signals)
		}
		r.wait(3 * time.Second)
		if _, _, signals := r.ts.told(); signals[len(signals)-1] != gate.SignalFault {
			t.Fatalf("not red steady: %v", signals)
		}
	})
}

// What has arrived counts in the decision, however long the disk takes with it.
func TestArrivedButNotDurableCounts(t *testing.T) {
	peers := ticket.Link{Peers: true, PeerPatience: 50 * time.Millisecond}
	inBubble(t, func(r *rig) { r.wire.link = peers }, func(t *testing.T, r *rig) {
		r.line(r.mint(1))
		release := make(chan struct{})
		r.mem.OnCommit(func(int) kv.Fate { <-release; return kv.Durable })
		theirs := peer(1, 1, 0, ticket.Pending, time.Now().Add(-time.Second))
		raw, err := theirs.Encode()
		if err != nil {
			t.Fatal(err)
		}
		go r.g.Learn(t.Context(), true, []ticket.Arrival{{Stream: theirs.Stream(), Pos: 1, Raw: raw, Record: &theirs}})
		r.wait(60 * time.Millisecond)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened against a claim that had arrived")
		}
		close(release)
		r.wait(time.Millisecond)
		r.want("crossed", r.reasons(), ticket.InProgress)
	})
}

func TestStayingClaimDoesNotOpenForNobody(t *testing.T) {
	peers := ticket.Link{Peers: true, PeerPatience: 50 * time.Millisecond}
	inBubble(t, func(r *rig) { r.wire.link = peers }, func(t *testing.T, r *rig) {
		r.g.Look(0, gate.Look{Text: r.mint(1), At: time.Now()})
		at := time.Now().Add(time.Second)
		r.wait(time.Millisecond)
		r.learn(peer(1, 1, 0, ticket.Pending, at))
		r.wait(4 * time.Second)
		r.want("stays", r.reasons(), ticket.InProgress)
		r.learn(peer(1, 2, 1, ticket.Refused, at))
		r.wait(time.Second)
		if r.ts.pulsed() != 0 {
			t.Fatal("opened for a ticket that nobody shows any more")
		}
	})
}

func TestASpareTakesOverAPlace(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		place := func(pos uint64, device ticket.Source, place string) ticket.Record {
			return ticket.Record{Source: "ledger/1", Run: 7, Pos: pos, Feed: &ticket.Feed{
				Subject: ticket.GateSubject(device), Version: pos, At: 1,
				Gate: &ticket.FeedGate{Device: device, Place: place, Role: "gate", State: "enrolled"}}}
		}
		r.learn(place(2, "other", "East"))
		r.line(r.mint(1))
		if v := r.last(); v.Gate != "North" {
			t.Fatalf("took another device's place: %+v", v)
		}
		r.learn(place(3, "a", "West"))
		r.wait(2 * time.Second)
		r.line(r.mint(2))
		if v := r.last(); v.Gate != "West" {
			t.Fatalf("%+v", v)
		}
		r.crash()
		r.line(r.mint(3))
		if v := r.last(); v.Gate != "West" {
			t.Fatalf("forgot its place over a restart: %+v", v)
		}
	})
}
