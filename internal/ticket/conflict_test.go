package ticket

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawRivals gives a unit whose claims mostly were admitted and name each other.
func drawRivals(t *rapid.T) View {
	v := drawView(t)
	for i := range v.Claims {
		c := &v.Claims[i].Claim
		if rapid.IntRange(0, 3).Draw(t, "through") > 0 {
			c.State = rapid.SampledFrom([]State{Admitted, Presumed}).Draw(t, "side")
		}
		if i > 0 && rapid.Bool().Draw(t, "knows") {
			before := v.Claims[rapid.IntRange(0, i-1).Draw(t, "which")].Claim
			c.After = append(c.After, Ref{Claim: before.ID, Rev: rapid.SampledFrom([]uint32{before.Rev, before.Rev + 1}).Draw(t, "at")})
		}
	}
	return v
}

func TestConflictIsIndependentOfOrder(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		v := drawRivals(t)
		a, aok := DeriveConflict(v)
		b, bok := DeriveConflict(shuffled(t, v))
		if aok != bok || !reflect.DeepEqual(a, b) {
			t.Fatalf("%v %+v\nin another order %v %+v", aok, a, bok, b)
		}
		if aok {
			found++
		}
	})
	if found == 0 {
		t.Error("no conflict was ever drawn")
	}
}

// The definition of protocol.md, pair by pair.
func TestConflictIsThePairsNotFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawRivals(t)
		counts := func(k Known) bool {
			return (k.Claim.State == Admitted || k.Claim.State == Presumed) && !k.Released && k.Claim.Reason != Free
		}
		knew := func(a, b Claim) bool { return slices.Contains(a.After, Ref{Claim: b.ID, Rev: b.Rev}) }
		want := map[ClaimID]bool{}
		for _, a := range v.Claims {
			for _, b := range v.Claims {
				if a.Claim.ID != b.Claim.ID && counts(a) && counts(b) && !knew(a.Claim, b.Claim) && !knew(b.Claim, a.Claim) {
					want[a.Claim.ID] = true
				}
			}
		}
		got, ok := DeriveConflict(v)
		if ok != (len(want) > 0) || len(got.Claims) != len(want) {
			t.Fatalf("got %v of %d claims, want %d", ok, len(got.Claims), len(want))
		}
		certain, ordered := true, true
		for i, c := range got.Claims {
			if !want[c.ID] || i > 0 && Compare(got.First(), c) >= 0 {
				t.Fatalf("claim %d is %s, first is %s, want all of %v in order", i, c.ID, got.First().ID, want)
			}
			certain = certain && c.State == Admitted
			ordered = ordered && (i == 0 || OrderCertain(got.First(), c))
		}
		if ok && (got.Certain != certain || got.Ordered != ordered) {
			t.Fatalf("certain %v, ordered %v, want %v, %v", got.Certain, got.Ordered, certain, ordered)
		}
	})
}

func TestConflictID(t *testing.T) {
	u := Unit{Event: "gala", Format: FormatA1, Ticket: ID{1}, Entry: 2}
	if got, want := ConflictID(u), (Conflict{Unit: u}).ID(); got != want || len(got) != 16 {
		t.Errorf("got %q and %q, want 16 hex digits twice", got, want)
	}
	others := []Unit{
		{Event: "gala", Format: FormatCode, Ticket: ID{1}, Entry: 2},
		{Event: "gala", Format: FormatA1, Ticket: ID{2}, Entry: 2},
		{Event: "gala", Format: FormatA1, Ticket: ID{1}, Entry: 1},
		{Event: "derby", Format: FormatA1, Ticket: ID{1}, Entry: 2},
	}
	for _, o := range others {
		if ConflictID(o) == ConflictID(u) {
			t.Errorf("%+v has the conflict of %+v", o, u)
		}
	}
}

// A second claim made knowing that the first was annulled is none; when a late
// passage gives the first a new rev, it is one after all.
func TestLatePassageMakesAConflict(t *testing.T) {
	first := Claim{ID: ClaimID{Gate: "a", Run: 1, Pos: 1}, Rev: 1, State: Annulled, Claimed: Stamp{Wall: int64(time.Second)}}
	second := Claim{
		ID: ClaimID{Gate: "b", Run: 1, Pos: 1}, State: Admitted, Claimed: Stamp{Wall: int64(2 * time.Second)},
		After: []Ref{{Claim: first.ID, Rev: first.Rev}},
	}
	view := func() View { return View{Claims: []Known{{Claim: second}, {Claim: first}}} }
	if c, ok := DeriveConflict(view()); ok {
		t.Errorf("conflict %+v though the first was annulled", c)
	}
	first.Rev, first.State = 2, Admitted
	c, ok := DeriveConflict(view())
	if !ok || c.First().ID != first.ID || !c.Certain || !c.Ordered {
		t.Errorf("got %v %+v, want a certain conflict with %s first", ok, c, first.ID)
	}
}
