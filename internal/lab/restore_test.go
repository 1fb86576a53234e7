package lab

import (
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// The ledger's file is put back from a copy: what it decided, sent and was told
// since then comes back from the gates.
func TestLedgerRestored(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	before := s.one()
	s.admit(1, before)
	s.level()
	s.must(s.Stop("ledger"))
	file, copied := s.at.path("ledger", "ledger.db"), s.at.path("ledger", "copy")
	s.copyFile(file, copied)
	s.must(s.Start(t.Context(), "ledger"))
	s.level()

	at1, at2, revoked, double := s.one(), s.one(), s.one(), s.one()
	s.admit(1, at1)
	s.admit(2, at2)
	s.must(s.c.Revoke(t.Context(), ticket.FormatA1, revoked.ticket.ID, true))
	version := s.pushMore()
	s.must(s.Cut("1", Down))
	s.must(s.Cut("2", Down))
	s.admit(1, double)
	s.admit(2, double)
	s.healAll()
	s.level()
	s.eventually("the conflict", func() bool { return len(s.conflictsOf(double)) == 1 })
	was := s.conflictsOf(double)[0]

	s.must(s.Stop("ledger"))
	s.copyFile(copied, file)
	s.must(s.Start(t.Context(), "ledger"))
	s.level()
	s.refuse(2, at1, "1")
	s.refuse(1, at2, "2")
	s.refuse(2, before, "1")
	for k := 1; k <= 2; k++ {
		if v := s.show(k, revoked); v.Reason != ticket.Revoked {
			t.Errorf("gate %d, revoked after the copy was made: %+v", k, v)
		}
	}
	s.nothingLost()
	s.eventually("the conflict again", func() bool { return len(s.conflictsOf(double)) == 1 })
	if is := s.conflictsOf(double)[0]; is.ID != was.ID || is.First != was.First || !slices.Equal(is.Others, was.Others) {
		t.Errorf("the conflict was %+v and is %+v", was, is)
	}
	s.eventually("the ledger's own feeds", func() bool {
		r, err := s.c.Ticket(t.Context(), ticket.FormatA1, revoked.ticket.ID)
		s.must(err)
		p, err := s.c.Programme(t.Context())
		s.must(err)
		return r.Revoked && p.Version >= version
	})
	s.eventually("an alarm about the restore", func() bool {
		for a, err := range s.c.AllAlarms(t.Context()) {
			s.must(err)
			if a.Kind == ledger.AlarmRestored {
				return true
			}
		}
		return false
	})
}

// pushMore pushes a programme with one more event.
func (s *stage) pushMore() uint64 {
	s.t.Helper()
	p, err := s.programme()
	s.must(err)
	key, err := config.ReadKey(s.at.mintKey())
	s.must(err)
	later := time.Now().UTC().Truncate(time.Second).Add(100 * 24 * time.Hour)
	more := programmeOf(key, ticket.ProgrammeEvent{ID: "encore", Open: later, Close: later.Add(time.Hour)})
	p.Events = append(p.Events, more.Events...)
	version, err := s.c.PushProgramme(s.t.Context(), p)
	s.must(err)
	return version
}

// What is on changes by the clock, also at a gate that is cut off; one that does
// not know the time stays with what was on.
func TestProgrammeWhileCutOff(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	change := now.Add(25 * time.Second)
	s := stand(t, Options{Gates: 2, TicketKey: key, Programme: programmeOf(key,
		ticket.ProgrammeEvent{ID: "friday", Open: now.Add(-time.Hour), Close: change},
		ticket.ProgrammeEvent{ID: "saturday", Open: change, Close: now.Add(time.Hour)},
	)})
	on := func(event string) pass { return s.mint(1, func(t *ticket.Ticket) { t.Event = event })[0] }
	s.must(s.Cut("1", Down))
	s.must(s.Cut("2", Down))
	s.must(s.Kill("2"))
	s.must(s.Start(t.Context(), "2")) // now it has no idea of the time
	for k := 1; k <= 2; k++ {
		s.admit(k, on("friday"))
		if v := s.show(k, on("saturday")); v.Reason != ticket.WrongEvent {
			t.Errorf("gate %d, saturday's ticket on friday: %+v", k, v)
		}
	}
	if !time.Now().Before(change) {
		t.Fatal("this machine is too slow for an event of 25 s")
	}
	s.pause(time.Until(change.Add(time.Second)))
	s.admit(1, on("saturday"))
	if v := s.show(1, on("friday")); v.Reason != ticket.WrongEvent {
		t.Errorf("friday's ticket on saturday: %+v", v)
	}
	if v := s.admit(2, on("friday")); v.Clock != ticket.Untrusted {
		t.Errorf("a gate that does not know the time: %+v", v)
	}
	s.healAll()
	s.level()
	s.eventually("saturday at the gate that was lost in time", func() bool { return slices.Equal(s.status(2).Events, []string{"saturday"}) })
	s.admit(2, on("saturday"))
}
