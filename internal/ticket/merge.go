package ticket

import (
	"bytes"
	"cmp"
	"slices"
)

// Compare orders claims by who was first: (class, time, gate, run, pos of rev 0).
// It is a total order on claims of different ids, and the same everywhere.
func Compare(a, b Claim) int {
	return cmp.Or(
		cmp.Compare(a.Claimed.Class, b.Claimed.Class),
		cmp.Compare(a.Claimed.Wall, b.Claimed.Wall),
		a.ID.Compare(b.ID))
}

// Wins reports whether revision a of a claim replaces revision b of the same
// claim. The highest rev wins. Equal revs with other content, which only a lost
// store can bring about, go by state (Admitted over Presumed over Annulled over
// Refused over Pending), then by the larger encoded bytes: any rule would do as
// long as it is the same everywhere.
func Wins(a, b Claim) bool {
	if a.Rev != b.Rev {
		return a.Rev > b.Rev
	}
	if a.State != b.State {
		return a.State > b.State
	}
	return bytes.Compare(a.bytes(), b.bytes()) > 0
}

// Forked reports whether two revisions have the same number and other content:
// the evidence of a lost store, worth an alarm.
func Forked(a, b Claim) bool {
	return a.ID == b.ID && a.Rev == b.Rev && !bytes.Equal(a.bytes(), b.bytes())
}

func (c Claim) bytes() []byte {
	b, err := encMode.Marshal(c)
	if err != nil {
		panic(err) // a struct of integers, strings and bytes always encodes
	}
	return b
}

// Known is a claim as one node knows it.
type Known struct {
	Claim Claim // the highest revision that has arrived

	// Released is set where a supervisor released the claim at this very revision.
	Released bool

	// Overdue is set where the claim is pending and this node has known it for
	// longer than its lease. It still holds: only a record frees, never time.
	Overdue bool

	// Unanswered is set at the ledger only, where a claim was not answered first.
	Unanswered bool
}

// Holds reports whether the claim holds its unit.
func (k Known) Holds() bool {
	if k.Released {
		return false
	}
	switch k.Claim.State {
	case Admitted, Presumed:
		return true
	case Pending:
		return !k.Unanswered || k.Claim.Alone
	}
	return false
}

// FreshPending reports whether the claim is still being decided, so that another
// presentation of the ticket waits rather than being refused.
func (k Known) FreshPending() bool { return k.Claim.State == Pending && !k.Overdue }

// View is what one node knows about one unit.
type View struct {
	Unit    Unit
	Claims  []Known // one per claim id, in no particular order
	Revoked bool    // the ticket, by the ledger's feed
}

// Find gives the claim of that id.
func (v View) Find(id ClaimID) (Known, bool) {
	i := slices.IndexFunc(v.Claims, func(k Known) bool { return k.Claim.ID == id })
	if i < 0 {
		return Known{}, false
	}
	return v.Claims[i], true
}

// Holder gives the first of the claims that hold the unit, leaving out one id
// (zero: none): the claim that a refusal cites.
func (v View) Holder(except ClaimID) (Known, bool) {
	var best Known
	found := false
	for _, k := range v.Claims {
		if k.Claim.ID == except || !k.Holds() {
			continue
		}
		if !found || Compare(k.Claim, best.Claim) < 0 {
			best, found = k, true
		}
	}
	return best, found
}

// Freed lists the claims that do not hold, at the revision known: what a new
// claim names in its After.
func (v View) Freed() []Ref {
	var refs []Ref
	for _, k := range v.Claims {
		if !k.Holds() {
			refs = append(refs, Ref{Claim: k.Claim.ID, Rev: k.Claim.Rev})
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return a.Claim.Compare(b.Claim) })
	if len(refs) > maxAfter {
		refs = refs[len(refs)-maxAfter:]
	}
	return refs
}

// Blocked judges a unit before anything is claimed: OK where a claim may be
// made; InProgress where every claim that holds is a fresh pending; AlreadyUsed
// otherwise, and Revoked. The claim is the one to cite.
func (v View) Blocked() (Reason, Claim) {
	if v.Revoked {
		return Revoked, Claim{}
	}
	h, held := v.Holder(ClaimID{})
	if !held {
		return OK, Claim{}
	}
	for _, k := range v.Claims {
		if k.Holds() && !k.FreshPending() {
			return AlreadyUsed, h.Claim
		}
	}
	return InProgress, h.Claim
}

// OrderCertain reports whether a was certainly claimed before b, or b before a:
// both clocks trusted and their error bounds apart.
func OrderCertain(a, b Claim) bool {
	if a.Claimed.Class != Trusted || b.Claimed.Class != Trusted {
		return false
	}
	early, late := min(a.Claimed.Wall, b.Claimed.Wall), max(a.Claimed.Wall, b.Claimed.Wall)
	// Unsigned, neither the distance nor the sum of two bounds can overflow.
	return uint64(late)-uint64(early) > uint64(a.Claimed.Bound)+uint64(b.Claimed.Bound)
}
