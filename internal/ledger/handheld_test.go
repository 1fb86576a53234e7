package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// text mints the ticket of a unit.
func text(t testing.TB, u ticket.Unit, change ...func(*ticket.Ticket)) string {
	t.Helper()
	tk := ticket.Ticket{Format: u.Format, ID: u.Ticket, Event: u.Event, Entry: u.Entry}
	for _, c := range change {
		c(&tk)
	}
	s, err := ticket.NewSigner(key()).Mint(tk)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hand shows a text to a hand-held of the caller "shop" at the place "Tent".
func (r *rig) hand(claim, token string) ledger.Handled {
	r.t.Helper()
	out, err := r.Admit(context.Background(), ledger.Handheld{Caller: "shop", Place: "Tent", Claim: claim, Token: token})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r *rig) wantHand(claim, token string, want ticket.Reason) ledger.Handled {
	r.t.Helper()
	out := r.hand(claim, token)
	if out.Reason != want {
		r.t.Fatalf("claim %q: %q, want %q", claim, out.Reason, want)
	}
	return out
}

func admission(t testing.TB, h ledger.Handled) (a ledger.Admission) {
	t.Helper()
	if err := json.Unmarshal(h.Body, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestHandHeldClaimIsEchoedAndItsTicketRefused(t *testing.T) {
	r := newRig(t)
	drain(r)
	token := text(t, unit(1))
	first := r.wantHand("c1", token, ticket.OK)
	a := admission(t, first)
	want := ledger.Admission{Claim: "c1", State: ticket.Admitted, Ticket: unit(1).Ticket, Format: "a1", Event: event, Gate: "Tent",
		Time: begin.Format(ticket.TimeFormat), Record: a.Record}
	if a != want || a.Record.Gate != "http/shop" || a.Record.Pos != 1 || first.Replayed {
		t.Errorf("admitted as %+v, replayed %t; want %+v", a, first.Replayed, want)
	}
	published := drain(r)
	if len(published) != 1 || published[0].Claim == nil || published[0].Claim.ID != a.Record || published[0].Claim.State != ticket.Admitted {
		t.Errorf("published %+v, want the claim's record", published)
	}

	before := r.dump()
	r.clock.add(time.Hour)
	again := r.wantHand("c1", token, ticket.OK)
	if !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("a retry got %s, replayed %t; want the same bytes", again.Body, again.Replayed)
	}
	_, err := r.Admit(context.Background(), ledger.Handheld{Caller: "shop", Place: "Tent", Claim: "c1", Token: text(t, unit(2))})
	if !errors.Is(err, ledger.ErrOther) {
		t.Errorf("the same claim with another ticket: %v, want ErrOther", err)
	}
	other := r.wantHand("c2", token, ticket.AlreadyUsed)
	if other.First == nil || other.First.Place != "Tent" || other.First.Time != begin.UnixNano() {
		t.Errorf("another claim cites %+v, want the first's place and time", other.First)
	}
	if diff := ledgertest.Diff(before, r.dump()); len(diff) > 0 {
		t.Errorf("a retry and refusals changed the store: %v", diff)
	}

	r.wantHand("c2", text(t, unit(2)), ticket.OK) // a refused claim's id is free
	if n := len(r.conflicts()); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

func TestHandHeldIsJudgedAsAGateJudges(t *testing.T) {
	r := newRig(t)
	token := text(t, unit(1))
	if err := r.Revoke(context.Background(), ticket.FormatA1, unit(3).Ticket, true, "office"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, token string
		want        ticket.Reason
	}{
		{"junk", "junk", ticket.Invalid},
		{"a changed byte", token[:len(token)-1] + "A", ticket.Invalid},
		{"another event", text(t, unit(1), func(tk *ticket.Ticket) { tk.Event = "other" }), ticket.Unknown},
		{"a test ticket", text(t, unit(1), func(tk *ticket.Ticket) { tk.Test = true }), ticket.TestTicket},
		{"too early", text(t, unit(1), func(tk *ticket.Ticket) { tk.NotBefore = begin.Add(time.Hour) }), ticket.NotYetValid},
		{"too late", text(t, unit(1), func(tk *ticket.Ticket) { tk.Expires = begin }), ticket.Expired},
		{"revoked", text(t, unit(3)), ticket.Revoked},
		{"a good one", token, ticket.OK},
	} {
		if got := r.hand(c.what, c.token); got.Reason != c.want {
			t.Errorf("%s: %q, want %q", c.what, got.Reason, c.want)
		}
	}

	// An event that is over at the ledger lets nobody in, but a retry is a retry.
	if err := r.CloseEvent(context.Background(), event); err != nil {
		t.Fatal(err)
	}
	r.wantHand("after", text(t, unit(4)), ticket.Closed)
	if got := r.wantHand("a good one", token, ticket.OK); !got.Replayed {
		t.Error("a retry after the end of the event is not echoed")
	}
	bare := openRig(t, kv.NewMem(), r.clock, new(uint64))
	bare.wantHand("c", token, ticket.NotReady)
}

func TestHandHeldReadsCodesOfTheLastList(t *testing.T) {
	r := newRig(t)
	ctx, secret := context.Background(), bytes.Repeat([]byte{0xab}, 32)
	put := func(codes ...string) {
		var ids []ticket.ID
		for _, c := range codes {
			ids = append(ids, ticket.CodeHash(secret, c))
		}
		if _, err := r.PutCodes(ctx, event, ids); err != nil {
			t.Fatal(err)
		}
	}
	r.wantHand("1", "CODE-1", ticket.Invalid)
	put("CODE-1", "CODE-2")
	r.wantHand("1", "CODE-1", ticket.OK)
	r.wantHand("2", "CODE-1", ticket.AlreadyUsed)
	put("CODE-1", "CODE-3")
	r.wantHand("2", "CODE-2", ticket.Invalid)
	r.wantHand("2", "CODE-3", ticket.OK)
}

// A gate's claim and a hand-held's on one ticket, in both orders.
func TestHandHeldsAndGatesShareATicketsRow(t *testing.T) {
	r := newRig(t)
	g := newGate("g", r.clock)
	r.wantHand("1", text(t, unit(1)), ticket.OK)
	seen := r.want(g, g.claim(unit(1)), ticket.AnswerSeen)
	if seen.First == nil || seen.First.Place != "Tent" || len(seen.Records) == 0 {
		t.Errorf("the gate is told %+v, want the hand-held's place and record", seen)
	}

	c := g.claim(unit(2))
	r.want(g, c, ticket.AnswerFirst)
	wait := r.wantHand("2", text(t, unit(2)), ticket.InProgress)
	if wait.First == nil || wait.First.Claim != c.ID {
		t.Errorf("waits for %+v, want the gate's claim", wait.First)
	}
	freed := g.revise(c, ticket.Refused)
	r.upload(g, 1)
	drain(r)
	r.wantHand("2", text(t, unit(2)), ticket.OK) // the same claim, come again as Retry-After says
	if rec := drain(r)[0]; !slices.Equal(rec.Claim.After, []ticket.Ref{{Claim: c.ID, Rev: freed.Rev}}) {
		t.Errorf("the record names %v as freed, want the gate's claim: where it is given back without what freed it, there is no conflict", rec.Claim.After)
	}

	c = g.claim(unit(3))
	r.want(g, c, ticket.AnswerFirst)
	g.revise(c, ticket.Admitted)
	r.upload(g, 1)
	used := r.wantHand("3", text(t, unit(3)), ticket.AlreadyUsed)
	if used.First == nil || used.First.Place != "place g" {
		t.Errorf("cites %+v, want the gate's place", used.First)
	}
	if n := len(r.conflicts()); n != 0 {
		t.Errorf("%d conflicts, want none: nothing was admitted twice", n)
	}

	// A gate that was cut off let the ticket in as well: that is one.
	r.clock.add(time.Second)
	g.revise(g.claim(unit(1)), ticket.Admitted)
	r.upload(g, 1)
	if all := r.conflicts(); len(all) != 1 || all[0].First.Gate != "Tent" {
		t.Errorf("conflicts %+v, want one, the hand-held first", all)
	}
}

func TestHandHeldIsAnnulledByItsCallerInTime(t *testing.T) {
	r := newRig(t)
	ctx, token := context.Background(), text(t, unit(1))
	made := admission(t, r.wantHand("1", token, ticket.OK))
	if _, err := r.Annul(ctx, "other", "1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("annulled by another caller: %v, want ErrNotFound", err)
	}
	if _, err := r.Annul(ctx, "shop", "none"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("an unknown claim: %v, want ErrNotFound", err)
	}
	r.clock.add(15 * time.Minute)
	first, err := r.Annul(ctx, "shop", "1")
	if err != nil || first.Replayed {
		t.Fatalf("annul: %+v, %v", first, err)
	}
	if a := admission(t, first); a.State != ticket.Annulled || a.Record != made.Record || a.Ticket != unit(1).Ticket {
		t.Errorf("annulled as %+v", a)
	}
	r.clock.add(time.Hour)
	again, err := r.Annul(ctx, "shop", "1")
	if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("annulled again: %s, replayed %t, %v; want the same bytes", again.Body, again.Replayed, err)
	}
	r.wantHand("2", token, ticket.OK) // the ticket works again
	r.wantHand("1", token, ticket.OK) // and the stored answer never changes
	if n := len(r.conflicts()); n != 0 {
		t.Errorf("%d conflicts, want none: the first was taken back before the second", n)
	}
	r.clock.add(15*time.Minute + 1)
	if _, err := r.Annul(ctx, "shop", "2"); !errors.Is(err, ledger.ErrLate) {
		t.Errorf("too late: %v, want ErrLate", err)
	}
}

// A retry after the ledger was killed is echoed; its new opening writes under a
// new run, and still ends what an earlier one began.
func TestHandHeldRetryAfterARestart(t *testing.T) {
	r := newRig(t)
	token := text(t, unit(1))
	first := r.wantHand("1", token, ticket.OK)
	r.clock.add(time.Minute)
	r = openRig(t, r.mem, r.clock, r.runs)
	again := r.wantHand("1", token, ticket.OK)
	if !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("after a restart: %s, replayed %t; want the same bytes", again.Body, again.Replayed)
	}
	if _, err := r.Annul(context.Background(), "shop", "1"); err != nil {
		t.Fatal(err)
	}
	published := drain(r)
	if len(published) != 1 || published[0].Run == admission(t, first).Record.Run || published[0].Claim.Rev != 1 {
		t.Errorf("published %+v, want revision 1 under the new run", published)
	}
	if own := r.Own(); len(own) != 2 || own[1].Source != "http/shop" || own[1].Run != published[0].Run || own[1].Pos != 1 {
		t.Errorf("own runs %+v, want the feeds' and the caller's", own)
	}
	r.wantHand("2", token, ticket.OK)
}

// After a restore from a backup the gates give back what hand-helds claimed.
func TestHandHeldClaimsComeBackFromGates(t *testing.T) {
	r := newRig(t)
	held := heldFeeds{}
	held.follow(r.Ledger)
	backup := r.dump()
	r.wantHand("1", text(t, unit(1)), ticket.OK)
	held.follow(r.Ledger)

	mem := kv.NewMem()
	ledgertest.Load(t, mem, backup)
	r = openRig(t, mem, r.clock, r.runs)
	held.giveBack(t, r)
	if got := r.wantHand("2", text(t, unit(1)), ticket.AlreadyUsed); got.First.Place != "Tent" {
		t.Errorf("cites %+v", got.First)
	}
}

// Several processes on one store serve the same caller; with hand-helds at all of
// them and gates that ask, one ticket has one winner, and the winner's retries at
// any process are echoed.
func TestOneTicketOneWinnerOverHandHeldsAndGates(t *testing.T) {
	r := newRig(t)
	other := openRig(t, r.mem, r.clock, r.runs)
	gates := []*gate{newGate("g1", r.clock), newGate("gate2", r.clock)}
	ctx := context.Background()
	wins := map[string]int{}
	for n := range rounds / 5 {
		u, token := unit(n), text(t, unit(n))
		claims := []ticket.Claim{gates[0].claim(u), gates[1].claim(u)}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var winners []string
		won := func(who string) {
			mu.Lock()
			defer mu.Unlock()
			winners = append(winners, who)
		}
		for i, g := range gates {
			wg.Go(func() {
				out, err := []*rig{r, other}[i].Ask(ctx, g.src, ledger.Ask{Claim: claims[i].ID, Unit: u, Records: [][]byte{g.raw(claims[i])}})
				if err != nil {
					t.Error(err)
				} else if out.Answer == ticket.AnswerFirst {
					won(string(g.src))
				}
			})
		}
		for i := range 6 { // two claims, each sent three times, to both processes
			claim := fmt.Sprintf("%d-%d", n, i%2)
			wg.Go(func() {
				out, err := []*rig{r, other}[i/2%2].Admit(ctx, ledger.Handheld{Caller: "shop", Place: "Tent", Claim: claim, Token: token})
				if err != nil {
					t.Error(err)
				} else if out.Reason == ticket.OK && !out.Replayed {
					won(claim)
				}
			})
		}
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: winners %v, want one", n, winners)
		}
		who := winners[0]
		if who[0] != 'g' {
			who = "hand-held"
		}
		wins[who]++
	}
	if len(wins) < 2 {
		t.Errorf("winners %v: the race was none", wins)
	}
	if n := len(r.conflicts()); n != 0 {
		t.Errorf("%d conflicts", n)
	}
	if a, b := r.Own(), other.Own(); len(a) != 2 || len(b) != 2 || a[1].Run == b[1].Run {
		t.Errorf("own runs %v and %v, want a run a process", a, b)
	}
}

func TestRowsOfHandHeldsAreForgottenWithTheirEvent(t *testing.T) {
	r := newRig(t)
	token := text(t, unit(1))
	r.wantHand("1", token, ticket.OK)
	r.clock.add(24*time.Hour + 14*24*time.Hour - time.Second) // the event is forgotten after a day, the grace is 14
	if got := r.wantHand("1", token, ticket.OK); !got.Replayed {
		t.Error("a retry within the event's life and grace is not echoed")
	}
	r.clock.add(time.Second)
	r.wantHand("1", token, ticket.Closed) // a key that comes after its window is a new intent
}
