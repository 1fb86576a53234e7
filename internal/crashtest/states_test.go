package crashtest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"admitone/internal/control"
	"admitone/internal/ticket"
)

// slow is how long a flush takes in the recordings, so that what is said before a
// flush has ended comes before its end there, too.
const slow = 2 * time.Millisecond

// record has two gates and a ledger at work, and gives what their disks saw.
func record(t *testing.T, visits int) (ledger Recording, gates []Recording) {
	t.Helper()
	r := stand(t, slow)
	for range 2 {
		r.addGate(slow, nil).start()
	}
	for _, g := range r.gates {
		if !r.ready(g, true) {
			t.Fatal("a gate ended")
		}
	}
	var wg sync.WaitGroup
	for i, g := range r.gates {
		wg.Go(func() { r.people(g, i, visits) })
	}
	wg.Wait()
	for _, g := range r.gates {
		if code := g.stop(); code != 0 {
			t.Errorf("gate %s ended with %d", g.name, code)
		}
		gates = append(gates, Of(g.log.Recording(g.device), "data"))
	}
	if code := r.ledger.stop(); code != 0 {
		t.Errorf("the ledger ended with %d", code)
	}
	return Of(r.ledger.log.Recording(""), "data"), gates
}

// people come to a gate: most enter once, some try again, some turn back, the gate
// is killed once, and a ticket is revoked.
func (r *rig) people(g *gate, which, visits int) {
	var last struct {
		text string
		id   ticket.ID
	}
	for i := range visits {
		text, id := r.ticket()
		switch {
		case i == visits/3 && which == 0:
			r.must(g.control.Sim(r.t.Context(), control.Sim{Passage: "never"}))
		case i == visits/3+1 && which == 0:
			r.must(g.control.Sim(r.t.Context(), control.Sim{Passage: "auto"}))
		case i == visits/2 && which == 0:
			r.must(g.look(text))
			g.kill()
			g.start()
			r.ready(g, true)
		case i == visits/2 && which == 1:
			r.must(r.client.Revoke(r.t.Context(), ticket.FormatA1, id, true))
			r.ledger.log.Say(Note{Revoke: id})
		case i%7 == 6:
			text, id = last.text, last.id
		}
		if _, ok := r.visit(g, text, id); !ok {
			r.t.Errorf("gate %s is gone", g.name)
			return
		}
		last.text, last.id = text, id
	}
}

// TestPowerCuts rebuilds what a power cut could have left of two gates' and a
// ledger's stores at any moment of a recording: each state opens, is sound, and has
// all that had been announced by then. Then the same disks lie about one flush, and
// that must not go unnoticed.
func TestPowerCuts(t *testing.T) {
	ledger, gates := record(t, 18)
	all := 0
	for _, rec := range append(gates, ledger) {
		states := Enumerate(rec, "data", 1, 0, len(rec.Events))
		t.Logf("store of %q: %d events, %d announcements, %d states", rec.Device, len(rec.Events), len(Announced(rec, len(rec.Events))), len(states))
		all += len(states)
		for i, f := range bad(judge(t, rec, states)) {
			if i == 10 {
				break // more of the same
			}
			s := states[f.State]
			t.Errorf("store of %q, cut at %d with %v kept, %d torn at %d bytes: %s", rec.Device, s.Cut, s.Keep, s.Torn, s.Unit, f.Problem)
		}
	}
	if all < 3000 {
		t.Errorf("%d states are too few", all)
	}
	lied(t, "gate", gates[0])
	lied(t, "ledger", ledger)
}

// window is how many events after a lie states are looked at: some commits.
const window = 60

// lied has the disk lie about one flush at a time, a sample of them: before a meta
// page is written, so that it may name what is not there, and after it. Few are
// harmless: those of rows that nobody was told of, or for which the next flush makes
// up before anything was said.
func lied(t *testing.T, what string, rec Recording) {
	t.Helper()
	const lies = 8
	before, after := flushes(rec)
	for which, list := range map[string][]int{"before a meta page": before, "after a meta page": after} {
		noticed := 0
		for i := range lies {
			at := list[i*len(list)/lies]
			lie := rec.Without(at)
			states := Enumerate(lie, "data", 1, at, min(at+window, len(rec.Events)))
			if len(bad(judge(t, lie, states))) > 0 {
				noticed++
			}
		}
		t.Logf("%s: %d of %d flushes %s were noticed when they were left out", what, noticed, lies, which)
		if noticed < lies*5/8 {
			t.Errorf("%s: %d of %d flushes %s could be left out", what, lies-noticed, lies, which)
		}
	}
}

// flushes gives the flushes of the store's commits, less the first and last few: the
// next thing that happens to the file after the first one of a commit is that its
// meta page, one of the first two pages, is written.
func flushes(rec Recording) (before, after []int) {
	for i, e := range rec.Events {
		if e.Kind != Flush {
			continue
		}
		next := slices.IndexFunc(rec.Events[i+1:], func(n Event) bool { return n.File == e.File && n.Kind == Write })
		if next >= 0 && rec.Events[i+1+next].Off < 2*pageSize {
			before = append(before, i)
		} else {
			after = append(after, i)
		}
	}
	return before[4 : len(before)-2], after[4 : len(after)-2]
}
