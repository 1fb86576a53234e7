package lab

import (
	"strconv"
	"testing"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/gatestore"
	"admitone/internal/ticket"
)

// Three gates that do not know what they admitted, and can ask nobody, each with
// another policy for it. All of them wait for a while first. Then one admits, one
// refuses, and one goes on waiting. Once they can ask, all of them know.
func TestAmnesiaPolicies(t *testing.T) {
	t.Parallel()
	policies := []config.Amnesia{config.AmnesiaAdmit, config.AmnesiaRefuse, config.AmnesiaWait}
	const wait = 3 * time.Second
	s := stand(t, Options{Gates: len(policies), Gate: func(k int, c *config.Gate) {
		c.Amnesia, c.AmnesiaWait = policies[k-1], config.Duration(wait)
	}})
	for i, policy := range policies {
		k := i + 1
		used := s.one()
		s.admit(k, used)
		s.level()
		s.must(s.Stop(strconv.Itoa(k)))
		s.forget(k)
		s.must(s.Cut(strconv.Itoa(k), Down))
		s.must(s.Start(t.Context(), strconv.Itoa(k)))
		early := s.one()
		if v := s.show(k, early); v.Reason != ticket.CatchingUp || v.Verdict != ticket.Wait {
			t.Errorf("%s: at first: %+v", policy, v)
		}
		s.pause(wait + rearm)
		late := s.one()
		switch v := s.show(k, late); {
		case policy == config.AmnesiaAdmit && v.Verdict != ticket.Admit,
			policy == config.AmnesiaRefuse && (v.Verdict != ticket.Refuse || v.Reason != ticket.Fault),
			policy == config.AmnesiaWait && (v.Verdict != ticket.Wait || v.Reason != ticket.CatchingUp):
			t.Errorf("%s: after %v: %+v", policy, wait, v)
		}
		s.idle(k)
		s.must(s.Heal(strconv.Itoa(k)))
		s.must(s.AwaitOnline(t.Context(), k))
		s.pause(rearm)
		s.refuse(k, used, strconv.Itoa(k))
		s.admit(k, s.one())
	}
	s.level()
	s.nothingLost()
}

// forget leaves a gate's store as one that was closed before it had caught up.
func (s *stage) forget(k int) {
	s.t.Helper()
	f, err := boltfile.Open(s.t.Context(), s.at.gate(k, "data", "gate.db"), boltfile.Options{Name: "gate", Version: gatestore.Version})
	s.must(err)
	store, err := gatestore.New(s.t.Context(), f, gatestore.Options{Device: s.device(k)})
	s.must(err)
	s.must(store.SetCatchingUp(s.t.Context(), true))
	s.must(f.Close())
}
