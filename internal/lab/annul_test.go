package lab

import (
	"context"
	"testing"

	"admitone/internal/ticket"
)

// The turnstile opened and nobody went through.
func TestNoRotation(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 3}).play([]scene{
		{"annulled, and used elsewhere", noRotation},
		{"late through", lateRotation},
		{"late through, and used elsewhere meanwhile", lateConflict},
		{"two gates wait for an annulment", twoWait},
	})
}

// annulled shows a ticket at gate 1 where nobody goes through, and waits until the
// claim is annulled there.
func (s *stage) annulled(p pass) {
	s.t.Helper()
	s.must(s.Passage(s.t.Context(), "1", "never"))
	if v := s.show(1, p); v.Verdict != ticket.Admit {
		s.t.Fatalf("%+v", v)
	}
	s.idle(1)
	s.must(s.Passage(s.t.Context(), "1", "auto"))
	if e := s.ended(1, p); len(e) != 1 || e[0] != ticket.Annulled {
		s.t.Fatalf("a release without a passage ended %v", e)
	}
}

// noRotation: annulled at the gate, the ledger and the peers; the ticket works
// elsewhere, once.
func noRotation(s *stage) {
	p := s.one()
	s.annulled(p)
	s.eventually("the annulment at the ledger", func() bool {
		c := s.claims(p)
		return len(c) == 1 && c[0].State == ticket.Annulled
	})
	s.admit(2, p)
	s.refuse(1, p, "2")
	if c := s.conflictsOf(p); len(c) != 0 {
		s.t.Errorf("a conflict after an annulment: %+v", c)
	}
}

func lateRotation(s *stage) {
	p := s.one()
	s.annulled(p)
	s.must(s.Passage(s.t.Context(), "1", "now"))
	s.eventually("a late admission", func() bool {
		e := s.ended(1, p)
		return len(e) == 2 && e[1] == ticket.Admitted
	})
	s.eventually("the late admission at the ledger", func() bool { return s.claims(p)[0].State == ticket.Admitted })
	s.refuse(2, p, "1")
}

func lateConflict(s *stage) {
	p := s.one()
	s.annulled(p)
	s.admit(2, p)
	s.must(s.Passage(s.t.Context(), "1", "now"))
	s.eventually("the conflict", func() bool { return len(s.conflictsOf(p)) == 1 })
	if c := s.conflictsOf(p)[0]; c.First.Gate != "1" || len(c.Others) != 1 || c.Others[0].Gate != "2" {
		s.t.Errorf("late through at 1, admitted at 2 meanwhile: %+v", c)
	}
}

// twoWait: a ticket is held at two gates while a third has it; the annulment lets
// one of them open, and the other learns from that.
func twoWait(s *stage) {
	p := s.one()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	s.must(s.Passage(s.t.Context(), "1", "never"))
	if v := s.show(1, p); v.Verdict != ticket.Admit {
		s.t.Fatalf("%+v", v)
	}
	for _, k := range []int{2, 3} {
		go s.hold(ctx, k, p.text)
		if v := s.verdict(k, p, 1); v.Reason != ticket.InProgress || v.FirstGate != "1" {
			s.t.Errorf("gate %d, while the ticket is gate 1's: %+v", k, v)
		}
	}
	s.final(2, p)
	s.final(3, p)
	s.must(s.Passage(s.t.Context(), "1", "auto"))
	admits := 0
	for _, k := range []int{2, 3} {
		for _, v := range s.said(k, p) {
			if v.Verdict == ticket.Admit {
				admits++
			}
		}
	}
	if admits != 1 || s.ended(1, p)[0] != ticket.Annulled {
		s.t.Errorf("%d gates opened on an annulment; gate 1: %v", admits, s.ended(1, p))
	}
}
