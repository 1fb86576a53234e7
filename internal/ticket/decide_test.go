package ticket

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawCase(t *rapid.T) Case {
	c := Case{
		View: drawView(t),
		Answer: rapid.SampledFrom([]Answer{
			AnswerNone, AnswerNone, AnswerFirst, AnswerFirst, AnswerSeen, AnswerInProgress, AnswerRevoked, AnswerUnknown,
			AnswerMismatch, AnswerSettled, "word from a newer ledger",
		}).Draw(t, "answer"),
		Looked:        rapid.IntRange(0, 5).Draw(t, "looked") > 0,
		InTime:        rapid.IntRange(0, 5).Draw(t, "in_time") > 0,
		Ready:         rapid.IntRange(0, 5).Draw(t, "ready") > 0,
		Normal:        rapid.IntRange(0, 5).Draw(t, "normal") > 0,
		RefuseOffline: rapid.IntRange(0, 5).Draw(t, "refuse_offline") == 0,
	}
	for i := range c.View.Claims {
		if rapid.Bool().Draw(t, "undecided") {
			c.View.Claims[i].Claim.State, c.View.Claims[i].Overdue = Pending, false
		}
	}
	if len(c.View.Claims) > 0 {
		own := &c.View.Claims[0]
		c.Own = own.Claim.ID
		if rapid.IntRange(0, 9).Draw(t, "own_pending") > 0 {
			*own = Known{Claim: own.Claim}
			own.Claim.State = Pending
		}
	}
	return c
}

type rule struct {
	applies bool
	step    Step
	reason  Reason
}

// rules is protocol.md's "Decision", line by line: the first that applies holds.
func rules(c Case) []rule {
	own, ok := c.View.Find(c.Own)
	var settled, anyPending, alonePending, smaller bool
	for _, k := range c.View.Claims {
		switch {
		case k.Claim.ID == c.Own || !k.Holds():
		case k.Claim.State != Pending || k.Overdue:
			settled = true
		default:
			anyPending = true
			alonePending = alonePending || k.Claim.Alone
			smaller = smaller || Compare(k.Claim, own.Claim) < 0
		}
	}
	return []rule{
		{!ok || own.Claim.State != Pending, Deny, Fault},
		{settled, Deny, AlreadyUsed},
		{c.Answer == AnswerSeen, Deny, AlreadyUsed},
		{c.Answer == AnswerInProgress, Yield, InProgress},
		{c.Answer == AnswerRevoked, Deny, Revoked},
		{c.Answer == AnswerUnknown, Deny, Unknown},
		{c.Answer != AnswerNone && c.Answer != AnswerFirst, Deny, Fault},
		{c.View.Revoked, Deny, Revoked},
		{!c.Looked || !c.InTime, Forget, InProgress},
		{!c.Ready, Deny, NotReady},
		{!c.Normal, Deny, Closed},
		{c.Answer == AnswerNone && c.RefuseOffline, Deny, Offline},
		{!anyPending, Open, OK},
		{c.Answer == AnswerFirst && !alonePending, Open, OK},
		{smaller, Yield, InProgress},
		{true, Stay, InProgress},
	}
}

func TestDecideFollowsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		got := Decide(c)
		if i, ok := follows(c, got); !ok {
			t.Fatalf("step %d, %s; want rule %d\n%+v", got.Step, got.Reason, i, c)
		}
		if again := Decide(Case{
			Own: c.Own, View: shuffled(t, c.View), Answer: c.Answer, Looked: c.Looked, InTime: c.InTime,
			Ready: c.Ready, Normal: c.Normal, RefuseOffline: c.RefuseOffline,
		}); !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v, in another order %+v", got, again)
		}
	})
}

// follows gives the first rule that applies, and whether the decision is its.
func follows(c Case, d Decision) (int, bool) {
	all := rules(c)
	i := slices.IndexFunc(all, func(r rule) bool { return r.applies })
	return i, d.Step == all[i].step && d.Reason == all[i].reason
}

// Every combination of what Decide looks at, with one foreign claim of each kind.
func TestDecideEveryCase(t *testing.T) {
	own := Claim{ID: ClaimID{Gate: "b", Run: 1, Pos: 1}, State: Pending, Claimed: Stamp{Wall: 5}}
	foreign := func(state State, wall int64, change func(*Known)) []Known {
		k := Known{Claim: Claim{ID: ClaimID{Gate: "a", Run: 1, Pos: 1}, State: state, Claimed: Stamp{Wall: wall}}}
		change(&k)
		return []Known{k}
	}
	alone := func(k *Known) { k.Claim.Alone = true }
	plain := func(*Known) {}
	others := [][]Known{
		nil,
		foreign(Pending, 4, plain), foreign(Pending, 5, plain), foreign(Pending, 6, plain),
		foreign(Pending, 4, alone), foreign(Pending, 6, alone),
		foreign(Pending, 6, func(k *Known) { k.Overdue = true }),
		foreign(Admitted, 6, plain), foreign(Presumed, 6, plain), foreign(Refused, 4, plain), foreign(Annulled, 4, plain),
		foreign(Admitted, 4, func(k *Known) { k.Released = true }),
		append(foreign(Pending, 4, plain), Known{Claim: Claim{ID: ClaimID{Gate: "c", Run: 1, Pos: 1}, State: Annulled, Alone: true}}),
	}
	answers := []Answer{AnswerNone, AnswerFirst, AnswerSeen, AnswerInProgress, AnswerRevoked, AnswerUnknown, AnswerMismatch, AnswerSettled}
	reached := map[int]int{}
	for _, state := range []State{Pending, Refused} {
		own.State = state
		for _, other := range others {
			for _, answer := range answers {
				for bits := range 1 << 6 {
					c := Case{
						Own: own.ID, View: View{Claims: append([]Known{{Claim: own}}, other...), Revoked: bits&1 != 0}, Answer: answer,
						Looked: bits&2 != 0, InTime: bits&4 != 0, Ready: bits&8 != 0, Normal: bits&16 != 0, RefuseOffline: bits&32 != 0,
					}
					i, ok := follows(c, Decide(c))
					if !ok {
						t.Errorf("%+v, want rule %d\n%+v", Decide(c), i, c)
					}
					reached[i]++
				}
			}
		}
	}
	if want := len(rules(Case{})); len(reached) != want {
		t.Errorf("%d rules reached, want all %d: %v", len(reached), want, reached)
	}
}

// A refusal cites the smallest claim that holds, and nothing where none does.
func TestDecideCites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		got := Decide(c)
		holder, held := c.View.Holder(c.Own)
		switch {
		case got.Reason == AlreadyUsed || got.Reason == InProgress && got.Step != Forget:
			if held && got.Cite.ID != holder.Claim.ID || !held && !got.Cite.ID.IsZero() {
				t.Fatalf("cites %s, the holder is %s", got.Cite.ID, holder.Claim.ID)
			}
		case !got.Cite.ID.IsZero():
			t.Fatalf("%s cites %s", got.Reason, got.Cite.ID)
		}
	})
}
