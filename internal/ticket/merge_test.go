package ticket

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// merge is what every node does with two revisions of one claim.
func merge(a, b Claim) Claim {
	if Wins(b, a) {
		return b
	}
	return a
}

// drawRevisions gives revisions of one claim, equal numbers with other contents
// among them.
func drawRevisions(t *rapid.T, n int) []Claim {
	id := drawClaimID(t)
	out := make([]Claim, n)
	for i := range out {
		out[i] = drawClaim(t)
		out[i].ID = id
		if i > 0 && rapid.Bool().Draw(t, "same") {
			out[i] = out[i-1]
		}
		if i > 0 && rapid.Bool().Draw(t, "nearly_same") {
			out[i] = out[i-1]
			out[i].At++
		}
	}
	return out
}

func same(a, b Claim) bool { return bytes.Equal(a.bytes(), b.bytes()) }

func TestMergeIsASemilattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRevisions(t, 3)
		a, b, d := c[0], c[1], c[2]
		if !same(merge(a, b), merge(b, a)) {
			t.Fatalf("not commutative: %+v, %+v", a, b)
		}
		if !same(merge(merge(a, b), d), merge(a, merge(b, d))) {
			t.Fatalf("not associative: %+v, %+v, %+v", a, b, d)
		}
		if !same(merge(a, a), a) || Wins(a, a) {
			t.Fatalf("not idempotent: %+v", a)
		}
		if !same(a, b) && Wins(a, b) == Wins(b, a) {
			t.Fatalf("neither or both win: %+v, %+v", a, b)
		}
	})
}

func TestWinsGoesByRevThenStateThenBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRevisions(t, 2)
		a, b := c[0], c[1]
		want := cmp.Or(cmp.Compare(a.Rev, b.Rev), cmp.Compare(a.State, b.State), bytes.Compare(a.bytes(), b.bytes())) > 0
		if Wins(a, b) != want {
			t.Fatalf("Wins(%+v, %+v) = %v", a, b, !want)
		}
		if Forked(a, b) != (a.Rev == b.Rev && !same(a, b)) {
			t.Fatalf("Forked(%+v, %+v) = %v", a, b, Forked(a, b))
		}
	})
	order := []State{Pending, Refused, Annulled, Presumed, Admitted}
	if !slices.IsSorted(order) {
		t.Errorf("states in the order in which they win: %v", order)
	}
	if Forked(Claim{ID: ClaimID{Pos: 1}}, Claim{ID: ClaimID{Pos: 2}}) {
		t.Error("other claims are no fork")
	}
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawClaim(t), drawClaim(t), drawClaim(t)
		if Compare(a, b) != -Compare(b, a) {
			t.Fatalf("not antisymmetric: %+v, %+v", a, b)
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("not transitive: %+v, %+v, %+v", a, b, c)
		}
		if a.ID != b.ID && Compare(a, b) == 0 {
			t.Fatalf("two claims are equal: %+v, %+v", a, b)
		}
		if a.Claimed.Class == Trusted && b.Claimed.Class == Untrusted && Compare(a, b) >= 0 {
			t.Fatalf("untrusted before trusted: %+v, %+v", a, b)
		}
	})
}

func TestHolds(t *testing.T) {
	for state := Pending; state <= Admitted; state++ {
		for bits := range 1 << 4 {
			k := Known{Claim: Claim{State: state}}
			k.Released, k.Overdue = bits&1 != 0, bits&2 != 0
			k.Unanswered, k.Claim.Alone = bits&4 != 0, bits&8 != 0
			want := state == Admitted || state == Presumed || state == Pending
			if state == Pending && k.Unanswered && !k.Claim.Alone {
				want = false
			}
			if k.Released {
				want = false
			}
			if k.Holds() != want {
				t.Errorf("%+v holds: %v", k, k.Holds())
			}
			if fresh := state == Pending && !k.Overdue; k.FreshPending() != fresh {
				t.Errorf("%+v is a fresh pending: %v", k, k.FreshPending())
			}
		}
	}
}

// drawView gives a unit with up to four claims of different ids.
func drawView(t *rapid.T) View {
	v := View{Unit: drawUnit(t), Revoked: rapid.IntRange(0, 4).Draw(t, "revoked") == 0}
	seen := map[ClaimID]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "claims") {
		c := drawClaim(t)
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		c.Unit = v.Unit
		v.Claims = append(v.Claims, Known{
			Claim:      c,
			Released:   rapid.IntRange(0, 3).Draw(t, "released") == 0,
			Overdue:    rapid.IntRange(0, 3).Draw(t, "overdue") == 0,
			Unanswered: rapid.IntRange(0, 3).Draw(t, "unanswered") == 0,
		})
	}
	return v
}

func shuffled(t *rapid.T, v View) View {
	v.Claims = rapid.Permutation(v.Claims).Draw(t, "order")
	return v
}

func TestViewIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		w := shuffled(t, v)
		vk, vok := v.Holder(ClaimID{})
		wk, wok := w.Holder(ClaimID{})
		if vok != wok || !reflect.DeepEqual(vk, wk) {
			t.Fatalf("holder %+v, in another order %+v", vk, wk)
		}
		vr, vc := v.Blocked()
		wr, wc := w.Blocked()
		if vr != wr || !reflect.DeepEqual(vc, wc) {
			t.Fatalf("blocked %s, in another order %s", vr, wr)
		}
		if !reflect.DeepEqual(v.Freed(), w.Freed()) {
			t.Fatalf("freed %v, in another order %v", v.Freed(), w.Freed())
		}
	})
}

func TestHolderAndBlocked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		var except ClaimID
		if len(v.Claims) > 0 && rapid.Bool().Draw(t, "except_one") {
			except = v.Claims[0].Claim.ID
		}
		h, held := v.Holder(except)
		settled := false
		for _, k := range v.Claims {
			settled = settled || k.Holds() && !k.FreshPending()
			if k.Holds() && k.Claim.ID != except && (!held || Compare(k.Claim, h.Claim) < 0) {
				t.Fatalf("holder %+v, but %+v holds and is smaller", h, k)
			}
		}
		if held && (!h.Holds() || h.Claim.ID == except) {
			t.Fatalf("%+v is no holder", h)
		}
		first, any := v.Holder(ClaimID{})
		want := OK
		switch {
		case v.Revoked:
			want = Revoked
		case settled:
			want = AlreadyUsed
		case any:
			want = InProgress
		}
		got, cite := v.Blocked()
		if got != want || any && !v.Revoked && cite.ID != first.Claim.ID {
			t.Fatalf("blocked: %s citing %s, want %s citing %s", got, cite.ID, want, first.Claim.ID)
		}
	})
}

func TestFreedNamesWhatDoesNotHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		freed := v.Freed()
		for _, k := range v.Claims {
			if named := slices.Contains(freed, Ref{Claim: k.Claim.ID, Rev: k.Claim.Rev}); named == k.Holds() {
				t.Fatalf("%+v holds: %v, and is named as freed: %v", k, k.Holds(), named)
			}
		}
	})
	var v View
	for i := range maxAfter + 5 {
		v.Claims = append(v.Claims, Known{Claim: Claim{ID: ClaimID{Gate: "g", Pos: uint64(i + 1)}, State: Annulled}})
	}
	if n := len(v.Freed()); n != maxAfter {
		t.Errorf("%d claims named, want the %d that a record may name", n, maxAfter)
	}
}

func TestOrderCertain(t *testing.T) {
	at := func(class Class, wall, bound int64) Claim {
		return Claim{Claimed: Stamp{Class: class, Wall: wall, Bound: bound}}
	}
	const s = int64(time.Second)
	const top, bottom = 1<<63 - 1, -1 << 63
	tests := []struct {
		a, b Claim
		want bool
	}{
		{at(Trusted, 0, 0), at(Trusted, 1, 0), true},
		{at(Trusted, 0, 0), at(Trusted, 0, 0), false},
		{at(Trusted, 0, s), at(Trusted, 2*s, s), false},
		{at(Trusted, 0, s), at(Trusted, 2*s+1, s), true},
		{at(Untrusted, 0, 0), at(Trusted, 9*s, 0), false},
		{at(Trusted, 0, 0), at(Untrusted, 9*s, 0), false},
		{at(Trusted, 0, top), at(Trusted, 1, top), false},
		{at(Trusted, bottom, 0), at(Trusted, top, 0), true},
		{at(Trusted, bottom, s), at(Trusted, top, s), true},
		{at(Trusted, top, top), at(Trusted, bottom, 0), true},
	}
	for _, tt := range tests {
		if got, back := OrderCertain(tt.a, tt.b), OrderCertain(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("OrderCertain(%+v, %+v) = %v, and %v the other way, want %v", tt.a.Claimed, tt.b.Claimed, got, back, tt.want)
		}
	}
}
