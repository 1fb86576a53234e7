package reader

import (
	"strings"
	"testing"
	"time"
)

// onKeyboard runs f with a reader of a scanner whose events the test writes.
func onKeyboard(t *testing.T, f func(t *testing.T, s *stage, typed func(*hands))) {
	t.Helper()
	var write func([]byte)
	open := func(s *stage) (source, error) {
		src, far := pipeSource()
		k := newTypist(layouts()["us"], wordBytes)
		src.decoder, src.doubt = k, k.doubt
		write = func(b []byte) {
			if _, err := far.Write(b); err != nil {
				s.t.Fatal(err)
			}
		}
		return src, nil
	}
	onStage(t, open, func(t *testing.T, s *stage) {
		f(t, s, func(h *hands) { write(h.b); h.b = nil })
	})
}

func TestScannerThatTypes(t *testing.T) {
	us := layouts()["us"]
	onKeyboard(t, func(t *testing.T, s *stage, typed func(*hands)) {
		h := &hands{word: wordBytes}
		typed(h.typed(t, us, "A1:ONE").tap(keyEnter).typed(t, us, "A1:TWO").tap(keyEnter))
		s.wantTexts("A1:ONE", "A1:TWO")
		// A code whose end never comes, and keys alone that give nothing.
		typed(h.typed(t, us, "half"))
		s.pass(silence)
		typed(h.tap(59))
		s.pass(silence)
		typed(h.typed(t, us, "good").tap(keyEnter))
		s.wantTexts("A1:ONE", "A1:TWO", "half<cut>", "good")
		if s.opens != 1 || s.State() != nil || s.log.Len() != 0 {
			t.Errorf("%d opens, state %v, log %s", s.opens, s.State(), s.log.String())
		}
	})
}

// TestKeyboardThatIsNoScanner: its codes are read, and the state and the log say
// what is wrong, once, until a code comes from a scanner.
func TestKeyboardThatIsNoScanner(t *testing.T) {
	us := layouts()["us"]
	onKeyboard(t, func(t *testing.T, s *stage, typed func(*hands)) {
		h := &hands{word: wordBytes, pace: 200 * time.Millisecond}
		for range 3 {
			typed(h.typed(t, us, "bytheperson").tap(keyEnter))
			s.pass(time.Minute)
			if err := s.State(); err == nil || !strings.Contains(err.Error(), "by hand") {
				t.Errorf("state %v", err)
			}
		}
		if s.told("WARN") != 1 || strings.Contains(s.log.String(), "bytheperson") {
			t.Errorf("told: %s", s.log.String())
		}
		h.pace = time.Millisecond
		typed(h.typed(t, us, "scanned").tap(keyEnter))
		s.wantTexts("bytheperson", "bytheperson", "bytheperson", "scanned")
		if s.State() != nil || s.opens != 1 {
			t.Errorf("state %v, %d opens", s.State(), s.opens)
		}
	})
}

func TestEvdevOptions(t *testing.T) {
	for name, o := range map[string]EvdevOptions{"no path": {}, "no such layout": {Path: "x", Layout: "dvorak"}} {
		if _, err := NewEvdev(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := NewEvdev(EvdevOptions{Path: "x"}); err != nil {
		t.Error(err)
	}
}

// bitmap is what a device offers.
func bitmap(bits ...[]uint16) []byte {
	b := make([]byte, maxKeys/8)
	for _, list := range bits {
		for _, n := range list {
			b[n/8] |= 1 << (n % 8)
		}
	}
	return b
}

func TestWhatIsNoScannerIsRefused(t *testing.T) {
	letters := [][]uint16{row(16, 25), row(30, 38), row(44, 50)}
	for name, c := range map[string]struct {
		offer
		want string // "": taken
	}{
		"a scanner":         {offer{"BF SCAN", bitmap([]uint16{0, 1, 4}), bitmap(row(1, 127))}, ""},
		"a sparing scanner": {offer{"BF SCAN", bitmap([]uint16{0, 1}), bitmap(append(letters, row(2, 11), []uint16{keyEnter2, 42})...)}, ""},
		"a mouse": {offer{"Mouse", bitmap([]uint16{0, 1, 2, 4}), bitmap(row(0x110, 0x114))},
			`"Mouse" is no scanner that types: it has no letters, no digits, no Enter or Tab; it offers 5 buttons, movements, as a mouse`},
		"a power button": {offer{"Power", bitmap([]uint16{0, 1}), bitmap([]uint16{116})},
			`"Power" is no scanner that types: it has no letters, no digits, no Enter or Tab; it offers 1 keys`},
		"a keypad": {offer{"Pad", bitmap([]uint16{0, 1, evLED}), bitmap(row(2, 11), []uint16{keyEnter})},
			`"Pad" is no scanner that types: it has no letters; it offers 11 keys, lights`},
		"a keyboard without an end": {offer{"K", bitmap([]uint16{0, 1}), bitmap(append(letters, row(2, 11))...)},
			`"K" is no scanner that types: it has no Enter or Tab; it offers 36 keys`},
		"a name that would deceive": {offer{"x\n\x1b[2J", nil, nil},
			`"x\n\x1b[2J" is no scanner that types: it has no letters, no digits, no Enter or Tab; it offers nothing`},
	} {
		err := c.refuse()
		if err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
