package lab

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// Two gates, one ticket, and a network that is whole, or half there.
func TestTwoGates(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 2}).play([]scene{
		{"200 ms apart", twoApart},
		{"at once", atOnce},
		{"an answer is late", answerLate},
		{"an answer is lost", answerLost},
		{"the ledger dies", ledgerDies},
		{"200 ms apart, with peers alone", twoApart},
		{"at once, with peers alone", atOnce},
		{"the ledger is back", ledgerBack},
		{"revoked while connected", revoked},
	})
}

// twoApart: the second shows amber while the first goes through, then red.
func twoApart(s *stage) {
	p, pulses := s.one(), s.pulses(1)+s.pulses(2)
	s.must(s.Passage(s.t.Context(), "1", "never"))
	s.look(1, p.text)
	s.pause(200 * time.Millisecond)
	if v := s.show(2, p); v.Verdict != ticket.Wait || v.Reason != ticket.InProgress || v.FirstGate != "1" || v.FirstSeen.IsZero() {
		s.t.Errorf("the second, while the first goes through: %+v", v)
	}
	s.must(s.Passage(s.t.Context(), "1", "auto"))
	s.must(s.Passage(s.t.Context(), "1", "now"))
	won := s.verdict(1, p, 1)
	lost := s.verdict(2, p, 2)
	if won.Verdict != ticket.Admit || lost.Reason != ticket.AlreadyUsed || lost.FirstGate != "1" {
		s.t.Errorf("200 ms apart: %+v, then %+v", won, lost)
	}
	if d := won.Time.Sub(lost.FirstSeen); d < 0 || d > time.Second {
		s.t.Errorf("the loser cites %v, the winner was let in at %v", lost.FirstSeen, won.Time)
	}
	s.idle(1)
	if n := s.pulses(1) + s.pulses(2) - pulses; n != 1 {
		s.t.Errorf("%d pulses for one admission", n)
	}
}

// atOnce: whoever of the two is first, it is one, and the other cites it.
func atOnce(s *stage) {
	for _, p := range s.mint(10, nil) {
		var wg sync.WaitGroup
		for k := 1; k <= 2; k++ {
			wg.Go(func() { s.look(k, p.text) })
		}
		wg.Wait()
		won, lost := 0, ticket.Verdict{}
		for k := 1; k <= 2; k++ {
			if v := s.final(k, p); v.Verdict == ticket.Admit {
				won = k
			} else {
				lost = v
			}
		}
		if lost.Reason != ticket.AlreadyUsed || lost.FirstGate != strconv.Itoa(won) || lost.FirstSeen.IsZero() {
			s.t.Errorf("at once: gate %d opened, the other said %+v", won, lost)
		}
		s.idle(1)
		s.idle(2)
	}
}

// answerLate: the ledger's link stands still for a moment during an ask, so that
// the ask is repeated, and both arrive. One claim, one answer.
func answerLate(s *stage) {
	for _, p := range s.mint(3, nil) {
		s.must(s.Cut("ledger", Hang))
		s.look(1, p.text)
		s.pause(200 * time.Millisecond)
		s.must(s.Heal("ledger"))
		s.answeredOnce(p)
	}
}

// answerLost: the link breaks during an ask, so that nobody will ever know what
// the ledger said.
func answerLost(s *stage) {
	for _, p := range s.mint(3, nil) {
		s.look(1, p.text)
		s.pause(5 * time.Millisecond)
		s.must(s.Cut("ledger", Down))
		s.pause(200 * time.Millisecond)
		s.must(s.Heal("ledger"))
		s.answeredOnce(p)
	}
}

func (s *stage) answeredOnce(p pass) {
	s.t.Helper()
	if v := s.verdict(1, p, 1); v.Verdict != ticket.Admit {
		s.t.Errorf("%+v", v)
	}
	s.idle(1)
	s.eventually("the claim at the ledger", func() bool {
		c := s.claims(p)
		return len(c) == 1 && c[0].State == ticket.Admitted && (c[0].Answer == ticket.AnswerFirst || c[0].Answer == ticket.AnswerNone)
	})
	s.linked(1, "up")
	s.linked(2, "up")
	s.refuse(2, p, "1")
	if c := s.conflictsOf(p); len(c) != 0 {
		s.t.Errorf("a conflict: %+v", c)
	}
}

func ledgerDies(s *stage) {
	s.must(s.Kill("ledger"))
	p := s.one()
	s.admit(1, p) // the first ask without an answer takes its patience, and no more
	s.refuse(2, p, "1")
	for k := 1; k <= 2; k++ {
		s.linked(k, "peers", "suspect")
	}
}

func ledgerBack(s *stage) {
	s.must(s.Start(s.t.Context(), "ledger"))
	s.level()
	list, err := s.c.Conflicts(s.t.Context(), "", 10)
	s.must(err)
	if len(list.Conflicts) != 0 {
		s.t.Errorf("conflicts between gates that heard each other: %+v", list.Conflicts)
	}
}

// revoked: a signed request reaches connected gates in a moment.
func revoked(s *stage) {
	p := s.one()
	began := time.Now()
	s.must(s.c.Revoke(s.t.Context(), ticket.FormatA1, p.ticket.ID, true))
	s.pause(time.Until(began.Add(2 * time.Second))) // what is promised
	for k := 1; k <= 2; k++ {
		// Refused before it is claimed: the gate itself knows.
		if v := s.show(k, p); v.Reason != ticket.Revoked || v.Claim != "" {
			s.t.Errorf("gate %d, 2 s after the revocation: %+v", k, v)
		}
		s.admit(k, s.one())
	}
	s.must(s.c.Revoke(s.t.Context(), ticket.FormatA1, p.ticket.ID, false))
	s.pause(2 * time.Second)
	s.admit(1, p)
}
