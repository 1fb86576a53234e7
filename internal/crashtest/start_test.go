package crashtest

import (
	"strings"
	"testing"

	"admitone/internal/config"
)

// starts is how many states are given to gated itself.
const starts = 12

// few gives n of the states, spread over all.
func few(states []State, n int) (out []State) {
	for i := range min(n, len(states)) {
		out = append(out, states[i*len(states)/min(n, len(states))])
	}
	return out
}

// TestFirstStartCut cuts the power while a ledger with a broker of its own starts for
// the first time and makes its store, its keys and its certificate: the next start
// works, without a person.
func TestFirstStartCut(t *testing.T) {
	t.Parallel()
	r := bare(t, 0, func(c *config.Ledger) { c.NATS.PlainLoopback = false })
	r.startLedger()
	if code := r.ledger.stop(); code != 0 {
		t.Fatalf("the ledger ended with %d", code)
	}
	rec := Of(r.ledger.log.Recording(""), "data")
	states := Enumerate(rec, "data", 1, 0, len(rec.Events))
	replay := NewReplay(rec)
	for _, s := range states {
		r.must(replay.Volume(s).Store("data", r.ledger.disk.Back("data")))
		r.ledger.start()
		r.eventually("the ledger", func() bool { return r.ledger.ended() || r.healthy() })
		if r.ledger.ended() {
			t.Fatalf("cut at %d of %d with %v kept: the ledger does not start any more", s.Cut, len(rec.Events), s.Keep)
		}
		r.ledger.kill()
	}
	t.Logf("%d states", len(states))
	if len(states) < 20 {
		t.Error("they are too few: not all was seen")
	}
}

// TestGateStartsAfterCut gives states that a power cut could have left to gated
// itself: it starts, sets nothing aside, and refuses the ticket that it admitted.
func TestGateStartsAfterCut(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g := r.addGate(slow, nil)
	g.start()
	if !r.ready(g, true) {
		t.Fatal("the gate ended")
	}
	text, id := r.ticket()
	if v, _ := r.visit(g, text, id); v.Verdict != "admit" {
		t.Fatalf("the first visitor: %+v", v)
	}
	shown := g.log.Next()
	for range 3 {
		other, otherID := r.ticket()
		r.visit(g, other, otherID)
	}
	if code := g.stop(); code != 0 {
		t.Fatalf("the gate ended with %d", code)
	}
	g.tap.Close() // from now on it has only its own disk to know from
	rec := Of(g.log.Recording(g.device), "data")
	replay := NewReplay(rec)
	for _, s := range few(Enumerate(rec, "data", 1, shown, len(rec.Events)), starts) {
		r.must(replay.Volume(s).Store("data", g.disk.Back("data")))
		g.start()
		if !r.ready(g, false) {
			t.Fatalf("cut at %d with %v kept: the gate does not start any more", s.Cut, s.Keep)
		}
		if v, _ := r.visit(g, text, id); v.Reason != "already_used" {
			t.Errorf("cut at %d with %v kept: the ticket that was used: %+v", s.Cut, s.Keep, v)
		}
		if code := g.stop(); code != 0 {
			t.Errorf("cut at %d: the gate ended with %d", s.Cut, code)
		}
	}
	if strings.Contains(g.logged(), "set aside") {
		t.Error("a store was set aside")
	}
}
