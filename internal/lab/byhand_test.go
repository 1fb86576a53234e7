package lab

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"

	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
)

// A gate is cut off for good, as it seems, and its records are carried to the ledger
// by hand, the later file before the earlier one. A double admission is reported
// once. Then the link heals after all, and nothing changes.
func TestByHand(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	s.must(s.Cut("1", Down))
	s.linked(1, "alone")
	double, single := s.one(), s.one()
	s.admit(1, double)
	early := s.export(1)
	s.admit(2, double)
	s.admit(1, single)
	late := s.export(1)
	if got := s.conflictsOf(double); len(got) != 0 {
		t.Fatalf("a conflict before anything was carried: %+v", got)
	}
	if n := s.carry(late); n == 0 {
		t.Error("nothing in the file was new")
	}
	s.eventually("the conflict", func() bool { return len(s.conflictsOf(double)) == 1 })
	was := s.conflictsOf(double)
	s.refuse(2, single, "1")
	for _, file := range [][]ticket.SignedBatch{early, late} {
		if n := s.carry(file); n != 0 {
			t.Errorf("of a file that was imported already, or an older one, %d records were new", n)
		}
	}
	s.tampered(late)
	s.must(s.Heal("1"))
	s.level()
	if is := s.conflictsOf(double); !reflect.DeepEqual(is, was) {
		t.Errorf("after the heal the conflict is %+v, and was %+v", is, was)
	}
	s.nothingLost()
}

// export gives all that gate k exports.
func (s *stage) export(k int) []ticket.SignedBatch {
	s.t.Helper()
	var b bytes.Buffer
	s.must(s.Gate(k).Export(s.t.Context(), &b))
	parts, err := ticket.ReadBatches(&b)
	s.must(err)
	if parts[0].Place != strconv.Itoa(k) {
		s.t.Errorf("gate %d exports as %q", k, parts[0].Place)
	}
	return parts
}

// carry imports a file and gives how many of its records were new.
func (s *stage) carry(parts []ticket.SignedBatch) (fresh int) {
	s.t.Helper()
	for _, p := range parts {
		got, err := s.c.Import(s.t.Context(), p.Device, p.Signed)
		s.must(err)
		fresh += got.New
	}
	return fresh
}

// tampered sends what is not as the device signed it.
func (s *stage) tampered(parts []ticket.SignedBatch) {
	s.t.Helper()
	other := s.export(2)
	changed := bytes.Clone(parts[0].Signed)
	changed[len(changed)/2] ^= 1
	for what, c := range map[string]struct {
		device ticket.Source
		signed []byte
		status int
	}{
		"a changed byte":      {parts[0].Device, changed, 422},
		"another gate's file": {parts[0].Device, other[0].Signed, 422},
		"half a part":         {parts[0].Device, parts[0].Signed[:100], 422},
		"a gate of nobody's":  {"aaaaaaaaaaaaaaaa", parts[0].Signed, 404},
		"junk":                {parts[0].Device, []byte("junk"), 422},
	} {
		_, err := s.c.Import(s.t.Context(), c.device, c.signed)
		if p, ok := err.(*ledgerhttp.Problem); !ok || p.Status != c.status {
			s.t.Errorf("%s: %v, want %d", what, err, c.status)
		}
	}
}
