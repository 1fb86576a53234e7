package lab

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"admitone/internal/control"
)

// A reader whose path is taken from it: the gate's status and the ledger's list
// say so in words, a gate beside it works on, and so does this one when the path
// is back.
func TestALostReaderIsToldAndComesBack(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	s.admit(1, s.one())
	if note := s.noteOf(1); strings.Contains(note, "reader") {
		t.Fatalf("before: %q", note)
	}
	line := s.at.gate(1, "line")
	s.must(errors.Join(os.Remove(line), os.Mkdir(line, 0o700)))
	s.eventually("the status to name the reader", func() bool {
		d := s.devices(1)
		return len(d) == 1 && d[0].Name == "lane 1: reader 1 (line)" && strings.Contains(d[0].State, line) && strings.Contains(d[0].State, "is no FIFO")
	})
	s.eventually("the ledger to say so", func() bool { return strings.Contains(s.noteOf(1), "reader 1 (line)") })
	s.admit(2, s.one())
	s.must(os.Remove(line))
	s.eventually("the reader to come back", func() bool { d := s.devices(1); return len(d) == 1 && d[0].State == "ok" })
	s.eventually("the ledger to say so", func() bool { return !strings.Contains(s.noteOf(1), "reader") })
	s.admit(1, s.one())
}

type labDevice struct{ Name, State string }

// devices gives those of a gate besides its turnstile.
func (s *stage) devices(k int) []labDevice {
	s.t.Helper()
	raw, err := control.NewClient(s.at.gateSocket(k)).Status(s.t.Context())
	s.must(err)
	var st struct{ Devices []labDevice }
	s.must(json.Unmarshal(raw, &st))
	return slices.DeleteFunc(st.Devices, func(d labDevice) bool { return strings.HasSuffix(d.Name, ": turnstile") })
}

// noteOf gives what the ledger says of the gate at a place.
func (s *stage) noteOf(k int) string {
	s.t.Helper()
	gates, err := s.c.Gates(s.t.Context())
	s.must(err)
	for _, g := range gates {
		if g.Place == string(rune('0'+k)) {
			return g.Note
		}
	}
	s.t.Fatalf("the ledger lists no gate %d", k)
	return ""
}
