package lab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Gates, ledger and broker are killed at random moments, 200 times in all, while
// tickets are shown at both gates. Whatever a process was doing, nobody enters
// twice at one gate, nobody's admission is lost, and nobody's ticket is eaten. What
// the relays did is audited at the end, as for every lab.
func TestKills(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	crowd := s.rush(seed, map[string]int{"1": 75, "2": 75, "ledger": 30, "broker": 20})
	s.healAll()
	for k := 1; k <= 2; k++ {
		s.must(s.AwaitOnline(t.Context(), k))
		s.idle(k)
	}
	s.level()
	s.nothingLost()
	conflicts := map[string]bool{}
	for c, err := range s.c.AllConflicts(t.Context()) {
		s.must(err)
		conflicts[c.Ticket] = true
	}
	tally := map[string]int{}
	var usable []pass
	fired := s.firedAnywhere()
	for _, p := range crowd {
		claims := s.claims(p)
		s.afterKills(p, claims, fired, conflicts[p.id], tally)
		if len(claims) > 0 && !slices.ContainsFunc(claims, stands) {
			usable = append(usable, p)
		}
	}
	t.Logf("%d tickets shown: %v; %d claimed and never let in", len(crowd), tally, len(usable))
	if tally["admitted"] < 50 || tally["presumed"] == 0 || tally["refused"] == 0 {
		t.Errorf("the kills met too little: %v", tally)
	}
	s.pause(rearm)
	for i, p := range usable[:min(len(usable), 20)] {
		s.admit(1+i%2, p)
	}
}

// firedAnywhere maps the claims for which a relay was moved to their gate.
func (s *stage) firedAnywhere() map[string]int {
	out := map[string]int{}
	for k := 1; k <= s.o.Gates; k++ {
		for _, id := range s.fired(k) {
			out[id] = k
		}
	}
	return out
}

// afterKills checks one ticket.
func (s *stage) afterKills(p pass, claims []ledger.TicketClaim, fired map[string]int, conflict bool, tally map[string]int) {
	s.t.Helper()
	at := map[string]int{}
	for _, c := range claims {
		tally[c.State.String()]++
		k, moved := fired[c.Claim]
		switch {
		case c.State == ticket.Pending:
			s.t.Errorf("%s: claim %s is still pending", p.id, c.Claim)
		case moved && !stands(c):
			s.t.Errorf("%s: claim %s opened gate %d and is %v", p.id, c.Claim, k, c.State)
		case !moved && stands(c):
			s.t.Errorf("%s: claim %s is %v, though it never opened a gate", p.id, c.Claim, c.State)
		}
		if stands(c) {
			at[c.Gate]++
		}
	}
	for gate, n := range at {
		if n > 1 {
			s.t.Errorf("%s was admitted %d times at gate %s: %+v", p.id, n, gate, claims)
		}
	}
	if conflict {
		tally["conflict"]++
	}
	if conflict != (len(at) > 1) {
		s.t.Errorf("%s: conflict %v, admitted at %v", p.id, conflict, at)
	}
}

// rush shows tickets at all gates, new ones and ones that were shown before, while
// processes are killed and started again. It gives all tickets.
func (s *stage) rush(seed uint64, kills map[string]int) []pass {
	s.t.Helper()
	crowd := s.mint(2000, nil)
	var shown struct {
		sync.Mutex
		n int
	}
	stop := make(chan struct{})
	var people, killers sync.WaitGroup
	for k := 1; k <= s.o.Gates; k++ {
		people.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(k)))
			for {
				shown.Lock()
				i := shown.n
				if i == len(crowd) || i > 0 && rng.IntN(2) == 0 {
					i = max(0, shown.n-1-rng.IntN(10)) // somebody who was just here, or there
				} else {
					shown.n++
				}
				shown.Unlock()
				_ = s.tryLook(k, crowd[i].text) // nobody reads it while the gate is dead
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(20+rng.IntN(200)) * time.Millisecond):
				}
			}
		})
	}
	for name, n := range kills {
		killers.Go(func() {
			if err := s.killOften(rand.New(rand.NewPCG(seed, uint64(len(name))<<8|uint64(name[0]))), name, n); err != nil {
				s.t.Error(err)
			}
		})
	}
	killers.Wait()
	close(stop)
	people.Wait()
	return crowd[:shown.n]
}

func (s *stage) killOften(rng *rand.Rand, name string, n int) error {
	for i := range n {
		select {
		case <-s.t.Context().Done():
			return s.t.Context().Err()
		case <-time.After(time.Duration(rng.IntN(1200)) * time.Millisecond):
		}
		if err := s.Kill(name); err != nil {
			return fmt.Errorf("kill %s, time %d: %w", name, i, err)
		}
		if err := s.Start(s.t.Context(), name); err != nil {
			return fmt.Errorf("start %s, time %d: %w", name, i, err)
		}
	}
	return nil
}
