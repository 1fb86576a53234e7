package gate_test

import (
	"testing"
	"time"

	"admitone/internal/gate"
	"admitone/internal/ticket"
)

func TestAmnesia(t *testing.T) {
	for policy, want := range map[gate.Policy][]ticket.Reason{
		gate.PolicyAdmit:  {ticket.CatchingUp, ticket.OK},
		gate.PolicyRefuse: {ticket.CatchingUp, ticket.Fault},
		gate.PolicyWait:   {ticket.CatchingUp},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, func(r *rig) { r.o.Amnesia = policy }, func(t *testing.T, r *rig) {
				r.g.Forgot("a peer holds more of our run")
				r.hold(61*time.Second, r.mint(1))
				r.want("amnesia", r.reasons(), want...)
				if policy == gate.PolicyWait {
					r.g.CaughtUp()
					r.hold(time.Second, r.mint(1))
					r.want("caught up", r.reasons(), ticket.CatchingUp, ticket.OK)
				}
			})
		})
	}
}

func TestOwnClaimOfALostStoreIsPresumed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		lost := peer(1, 1, 0, ticket.Pending, time.Now())
		lost.Source, lost.Run = "a", 99
		lost.Claim.ID = ticket.ClaimID{Gate: "a", Run: 99, Pos: 1}
		r.learn(lost)
		r.wantEnds(ticket.Presumed)
		r.line(r.mint(1))
		r.want("used", r.reasons(), ticket.AlreadyUsed)
	})
}

// lostClaim is a revision of a claim that a lost store of this gate had made.
func lostClaim(run ticket.Run, rev uint32, s ticket.State) ticket.Record {
	c := peer(1, 1, rev, s, time.Now())
	c.Source, c.Run = "a", run
	c.Claim.ID = ticket.ClaimID{Gate: "a", Run: 99, Pos: 1}
	return c
}

// What became of a claim may stand in a later run than the claim: while the gate
// catches up it ends nothing of its own that the lost store may have ended.
func TestARegainedClaimKeepsItsEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.g.Forgot("the ledger holds more of our runs")
		r.learn(lostClaim(99, 0, ticket.Pending))
		r.learn(lostClaim(100, 1, ticket.Annulled))
		r.g.CaughtUp()
		r.wait(time.Second)
		r.wantEnds()
		r.line(r.mint(1))
		r.want("free again", r.reasons(), ticket.OK)
	})
}

// A gate that is restarted while it catches up goes on catching up.
func TestAmnesiaOutlivesARestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.g.Forgot("the ledger holds more of our runs")
		r.learn(lostClaim(99, 0, ticket.Pending))
		r.bare = true
		r.crash()
		r.line(r.mint(2))
		r.want("restarted", r.reasons(), ticket.CatchingUp)
		r.wantEnds()
		r.g.CaughtUp()
		r.wait(time.Second)
		r.wantEnds(ticket.Presumed, ticket.Admitted)
		r.bare = false
		r.crash()
		r.line(r.mint(3))
		r.want("caught up", r.reasons(), ticket.CatchingUp, ticket.OK, ticket.OK)
	})
}
