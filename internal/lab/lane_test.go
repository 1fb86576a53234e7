package lab

import (
	"context"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// One lane, as people stand before it: presentations, rotations, families.
func TestOneLane(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 1}).play([]scene{
		{"held for ten seconds", held},
		{"two in view for ten seconds", alternating},
		{"taken away and shown again", shownAgain},
		{"two tickets, one rotation", oneRotation},
		{"a family of four", family},
	})
}

// held: the holder keeps the phone up, and hears of their admission once.
func held(s *stage) {
	p, before := s.one(), s.pulses(1)
	s.holdFor(1, p.text, 10*time.Second)
	if v := s.said(1, p); len(v) != 1 || v[0].Verdict != ticket.Admit {
		s.t.Errorf("verdicts on a ticket that was held: %+v", v)
	}
	if n := s.pulses(1) - before; n != 1 {
		s.t.Errorf("%d pulses for a ticket that was held", n)
	}
}

// alternating: two phones side by side must not flap.
func alternating(s *stage) {
	p, before := s.mint(2, nil), s.pulses(1)
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	go s.hold(ctx, 1, p[0].text)
	s.hold(ctx, 1, p[1].text)
	admits := 0
	for _, p := range p {
		for _, v := range s.said(1, p) {
			switch v.Verdict {
			case ticket.Admit:
				admits++
			case ticket.Refuse:
				s.t.Errorf("red for a ticket that stayed in view: %+v", v)
			}
		}
	}
	if n := s.pulses(1) - before; admits != 2 || n != 2 {
		s.t.Errorf("two tickets in view: %d admissions, %d pulses", admits, n)
	}
}

// rearm is the default, and some: a ticket that was gone for so long is shown anew.
const rearm = 1500*time.Millisecond + 500*time.Millisecond

func shownAgain(s *stage) {
	p := s.one()
	s.admit(1, p)
	s.pause(rearm)
	v := s.refuse(1, p, "1")
	if first := s.said(1, p)[0]; v.FirstSeen.Sub(first.Time).Abs() > time.Second {
		s.t.Errorf("first seen at %v, admitted at %v", v.FirstSeen, first.Time)
	}
}

// oneRotation: the second waits while the first goes through, then is decided.
func oneRotation(s *stage) {
	p, before := s.mint(2, nil), s.pulses(1)
	s.must(s.Passage(s.t.Context(), "1", "never"))
	s.look(1, p[0].text)
	s.pause(200 * time.Millisecond)
	if v := s.show(1, p[1]); v.Reason != ticket.Busy || v.Verdict != ticket.Wait || v.Claim != "" {
		s.t.Fatalf("the second, while the first has the lane: %+v", v)
	}
	if n := s.pulses(1) - before; n != 1 {
		s.t.Errorf("%d pulses before the first rotation", n)
	}
	s.must(s.Passage(s.t.Context(), "1", "auto"))
	s.must(s.Passage(s.t.Context(), "1", "now"))
	if v := s.verdict(1, p[1], 2); v.Verdict != ticket.Admit {
		s.t.Errorf("the second, after the rotation: %+v", v)
	}
	s.idle(1)
	if n := s.pulses(1) - before; n != 2 {
		s.t.Errorf("%d pulses for two admissions", n)
	}
}

// family: four tickets of one order are four admissions, one after the other.
func family(s *stage) {
	before := s.pulses(1)
	for _, p := range s.mint(4, nil) {
		s.admit(1, p)
	}
	if n := s.pulses(1) - before; n != 4 {
		s.t.Errorf("%d pulses for a family of four", n)
	}
}
