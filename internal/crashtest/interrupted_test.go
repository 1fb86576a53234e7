package crashtest

import (
	"sync/atomic"
	"syscall"
	"testing"

	"admitone/internal/ticket"
)

// TestInterruptedCalls interrupts every second call that a gate and a ledger make on
// their files (EINTR). It costs nothing: nobody stops, and everybody enters. A flush
// of data is left out: it is bbolt's own, which takes an interrupted one for a
// failed one, and so it is one of the sweeps' failures.
func TestInterruptedCalls(t *testing.T) {
	t.Parallel()
	r := bare(t, 0, nil)
	var calls, hits atomic.Int64
	interrupt := func(c Call) syscall.Errno {
		if c.Name != "fdatasync" && c.Name != "read" && calls.Add(1)%2 == 0 {
			hits.Add(1)
			return syscall.EINTR
		}
		return 0
	}
	r.ledger.disk.SetFault(interrupt)
	r.startLedger()
	r.programme()
	g := r.addGate(0, nil)
	g.disk.SetFault(interrupt)
	g.start()
	if !r.ready(g, true) {
		t.Fatal("the gate ended")
	}
	for range 3 {
		text, id := r.ticket()
		if v, _ := r.visit(g, text, id); v.Verdict != ticket.Admit || !v.Online {
			t.Errorf("a visitor: %+v", v)
		}
		if v, _ := r.visit(g, text, id); v.Reason != ticket.AlreadyUsed {
			t.Errorf("the same again: %+v", v)
		}
	}
	if code := g.stop(); code != 0 {
		t.Errorf("the gate ended with %d", code)
	}
	if code := r.ledger.stop(); code != 0 {
		t.Errorf("the ledger ended with %d", code)
	}
	if hits.Load() < 50 {
		t.Errorf("%d calls were interrupted", hits.Load())
	}
	r.audit("interrupted", Of(g.log.Recording(g.device), "data"))
	r.audit("interrupted", Of(r.ledger.log.Recording(""), "data"))
}

// TestLinesThatCannotBeWritten: the files of verdicts and results cannot be written.
// The gate says so once in its log, and works on.
func TestLinesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g := r.addGate(0, nil)
	g.start()
	if !r.ready(g, true) {
		t.Fatal("the gate ended")
	}
	g.disk.SetFault(func(c Call) syscall.Errno {
		if c.Name == "write" && (c.Path == "out/verdicts.jsonl" || c.Path == "out/results.jsonl") {
			return syscall.EIO
		}
		return 0
	})
	for n := range 3 {
		text, _ := r.ticket()
		r.must(g.look(text))
		r.eventually("a passage", func() bool { return r.moved(g) == n+1 })
		r.eventually("an idle lane", func() bool {
			s, err := g.state()
			return g.ended() || err == nil && len(s.Lanes[0].Open) == 0
		})
	}
	if code := g.stop(); code != 0 {
		t.Errorf("the gate ended with %d", code)
	}
}

// moved counts how often a gate's relay moved.
func (r *rig) moved(g *gate) (n int) {
	for _, e := range Of(g.log.Recording(g.device), "data").Events {
		if e.Kind == Said && e.Note.Relay != "" {
			n++
		}
	}
	return n
}
