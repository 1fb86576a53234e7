package lab

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
)

// The network fails in all ways; verdicts keep coming, and doubles are reported.
func TestOutages(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	o := &outage{calm: s.pace(1, 10)}
	t.Logf("an admission takes %v at most while all is well", o.calm)
	s.play([]scene{
		{"broker down", o.down},
		{"broker hangs", o.hangs},
		{"broker dies", o.dies},
		{"broker flaps", o.flaps},
		{"the second heals first", o.secondFirst},
		{"the first heals first", o.firstFirst},
		{"all is told once", o.toldOnce},
	})
}

// outage is what the scenes of a failing network have in common.
type outage struct {
	calm    time.Duration // the slowest verdict while all was well
	doubled []pass        // admitted at both gates while they were cut off
}

// pace admits n tickets at gate k and gives the slowest verdict.
func (s *stage) pace(k, n int) (slowest time.Duration) {
	s.t.Helper()
	for _, p := range s.mint(n, nil) {
		slowest = max(slowest, s.admit(k, p).Took)
	}
	return slowest
}

// inTime wants admissions at a gate within the deadline of guarantee G10: the
// ledger's patience and a few local claims, whatever the network does. How long a
// claim takes is what it took on this machine while all was well, asked and all.
func (o *outage) inTime(s *stage, k, n int) {
	s.t.Helper()
	const patience = 400 * time.Millisecond
	if slowest, most := s.pace(k, n), patience+10*o.calm; slowest > most {
		s.t.Errorf("gate %d: a verdict took %v, while %v is the most", k, slowest, most)
	}
}

// double has one ticket admitted at gate 1, then at gate 2, which are cut off.
func (o *outage) double(s *stage) pass {
	s.t.Helper()
	p := s.one()
	s.admit(1, p)
	s.admit(2, p)
	o.doubled = append(o.doubled, p)
	return p
}

// healed waits until everybody has everything, and wants the one conflict.
func (o *outage) healed(s *stage, p pass) {
	s.t.Helper()
	s.level()
	s.eventually("the conflict", func() bool { return len(s.conflictsOf(p)) > 0 })
	c := s.conflictsOf(p)
	if len(c) != 1 || c[0].State != ledger.ConflictOpen || c[0].First.Gate != "1" || len(c[0].Others) != 1 || c[0].Others[0].Gate != "2" {
		s.t.Errorf("one ticket at two gates that were cut off: %+v", c)
	}
	s.pause(rearm) // or it would still be the same presentation
	// Both know now, and cite the first.
	s.refuse(1, p, "1")
	s.refuse(2, p, "1")
}

func (o *outage) down(s *stage) {
	s.must(s.Cut("broker", Down))
	o.inTime(s, 1, 5)
	s.linked(1, "alone")
	s.linked(2, "alone")
	o.inTime(s, 1, 3)
	p := o.double(s)
	s.must(s.Heal("broker"))
	o.healed(s, p)
}

func (o *outage) hangs(s *stage) {
	s.must(s.Cut("broker", Hang))
	o.inTime(s, 1, 5)
	s.linked(1, "alone")
	s.linked(2, "alone")
	o.inTime(s, 1, 3)
	p := o.double(s)
	s.must(s.Heal("broker"))
	o.healed(s, p)
}

func (o *outage) dies(s *stage) {
	s.must(s.Kill("broker"))
	o.inTime(s, 2, 3)
	p := o.double(s)
	s.must(s.Start(s.t.Context(), "broker"))
	o.healed(s, p)
}

func (o *outage) flaps(s *stage) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for broken := false; ; broken = !broken {
			select {
			case <-stop:
				return
			case <-every.C:
			}
			how := Down
			if broken {
				how = Whole
			}
			if err := s.Cut("broker", how); err != nil {
				s.t.Error(err)
			}
		}
	})
	o.inTime(s, 1, 8)
	o.inTime(s, 2, 8)
	close(stop)
	wg.Wait()
	s.must(s.Heal("broker"))
	s.level()
}

// The winner is a function of the records, so it does not matter whose come first.
func (o *outage) secondFirst(s *stage) { o.order(s, "2", "1") }
func (o *outage) firstFirst(s *stage)  { o.order(s, "1", "2") }

func (o *outage) order(s *stage, first, second string) {
	s.must(s.Cut("1", Down))
	s.must(s.Cut("2", Down))
	p := o.double(s)
	s.must(s.Heal(first))
	s.eventually("the claim of gate "+first, func() bool { return len(s.claims(p)) == 1 })
	if k, _ := strconv.Atoi(first); s.status(k).Amnesia {
		s.t.Error("a cut is no amnesia")
	}
	s.must(s.Heal(second))
	o.healed(s, p)
}

// toldOnce: each double is one conflict, announced by one log line, in the form
// that others read; nothing else is one, and no admission was lost.
func (o *outage) toldOnce(s *stage) {
	list := s.conflictsAsOthersReadThem()
	var want, got []string
	for _, p := range o.doubled {
		want = append(want, p.id)
	}
	for _, c := range list {
		got = append(got, c["ticket"].(string))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		s.t.Errorf("conflicts on %v, want on %v", got, want)
	}
	log, err := os.ReadFile(s.at.path("ledger", "log"))
	s.must(err)
	for _, c := range list {
		if n := strings.Count(string(log), fmt.Sprint(c["id"])); n != 1 {
			s.t.Errorf("conflict %v stands on %d lines of the ledger's log", c["id"], n)
		}
	}
	s.nothingLost()
}
