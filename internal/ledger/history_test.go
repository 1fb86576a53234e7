package ledger_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
)

// history plays gates, asks, lost asks, uploads and supervisors at random.
type history struct {
	rt    *rapid.T
	r     *rig
	gates []*gate
	open  []ticket.Claim
	owner []*gate
	first map[ticket.ClaimID]ticket.Answer
}

func (h *history) step() {
	r, rt := h.r, h.rt
	r.clock.add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
	i := rapid.IntRange(0, len(h.gates)-1).Draw(rt, "gate")
	g, ctx := h.gates[i], context.Background()
	switch do := rapid.IntRange(0, 9).Draw(rt, "do"); {
	case do < 3 || len(h.open) == 0:
		c := g.claim(unit(rapid.IntRange(1, 3).Draw(rt, "unit")))
		h.open, h.owner = append(h.open, c), append(h.owner, g)
		if do > 0 {
			h.ask(g, c)
		}
	case do < 7:
		k := rapid.IntRange(0, len(h.open)-1).Draw(rt, "claim")
		s := rapid.SampledFrom([]ticket.State{ticket.Refused, ticket.Annulled, ticket.Presumed, ticket.Admitted}).Draw(rt, "state")
		h.open[k] = h.owner[k].revise(h.open[k], s)
	case do == 7:
		k := rapid.IntRange(0, len(h.open)-1).Draw(rt, "claim")
		err := r.Release(ctx, h.open[k].ID, "ops", "")
		if err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.Is(err, ledger.ErrDone) {
			rt.Fatal(err)
		}
	case do == 8:
		u := unit(rapid.IntRange(1, 3).Draw(rt, "unit"))
		if err := r.Revoke(ctx, u.Format, u.Ticket, rapid.Bool().Draw(rt, "revoked"), "ops"); err != nil {
			rt.Fatal(err)
		}
	default:
		h.send(r, g, rapid.IntRange(0, len(g.log)).Draw(rt, "from"))
	}
}

// ask also asks again now and then: the answer must not change.
func (h *history) ask(g *gate, c ticket.Claim) {
	for range rapid.IntRange(1, 2).Draw(h.rt, "asks") {
		out, err := h.r.Ask(context.Background(), g.src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{g.raw(c)}})
		if err != nil {
			h.rt.Fatal(err)
		}
		if was, ok := h.first[c.ID]; ok && was != out.Answer {
			h.rt.Fatalf("claim %s was answered %s, now %s", c.ID, was, out.Answer)
		}
		h.first[c.ID] = out.Answer
	}
}

func (h *history) send(r *rig, g *gate, after int) {
	_, err := r.Upload(context.Background(), g.src, ledger.Upload{Run: g.run, From: uint64(after) + 1, Records: g.log[after:]})
	if err != nil {
		h.rt.Fatal(err)
	}
}

// standing is what must be the same wherever the same records are.
func (h *history) standing(r *rig) (out []any) {
	for _, c := range tidy(r.conflicts()) {
		if c.State != ledger.ConflictWithdrawn {
			out = append(out, c)
		}
	}
	for n := 1; n <= 3; n++ {
		got, err := r.Ticket(context.Background(), ticket.FormatA1, unit(n).Ticket)
		if err != nil {
			h.rt.Fatal(err)
		}
		for i := range got.Claims {
			got.Claims[i].Answer = "" // a lost answer is lost
		}
		out = append(out, got)
	}
	return out
}

// Whatever happened, and whenever the backup was made: after the heal a restored
// ledger holds and derives what the one that was lost did.
func TestAnyBackupConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &clock{t: begin}
		r := openRig(t, kv.NewMem(), c, new(uint64))
		r.push(0)
		h := &history{rt: rt, r: r, first: map[ticket.ClaimID]ticket.Answer{},
			gates: []*gate{newGate("a", c), newGate("bb", c), newGate("ccc", c)}}
		feeds := heldFeeds{}
		steps := rapid.IntRange(1, 20).Draw(rt, "steps")
		at := rapid.IntRange(0, steps-1).Draw(rt, "backup")
		var old map[string][]byte
		for n := range steps {
			if n == at {
				old = r.dump()
			}
			h.step()
			feeds.follow(r.Ledger)
			ledgertest.Check(rt2{rt, t}, r.store)
		}
		mem := kv.NewMem()
		ledgertest.Load(t, mem, old)
		back := openRig(t, mem, c, r.runs)
		for _, g := range rapid.Permutation(h.gates).Draw(rt, "heal") {
			if len(g.log) > 0 {
				h.send(r, g, 0)
			}
			heal(t, back, g, feeds)
		}
		ledgertest.Check(rt2{rt, t}, back.store)
		if one, two := h.standing(r), h.standing(back); !reflect.DeepEqual(one, two) {
			rt.Fatalf("lost:\n%+v\nrestored:\n%+v", one, two)
		}
	})
}
