package reader

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// hands type on a keyboard that is not there: they write the events of the kernel,
// in the layout of a word of 4 or 8 bytes.
type hands struct {
	word int
	now  time.Duration // of the events
	pace time.Duration // from key to key
	b    []byte
}

func (h *hands) event(typ, code uint16, value int32) *hands {
	n := binary.NativeEndian
	for _, v := range []time.Duration{h.now / time.Second, h.now % time.Second / time.Microsecond} {
		if h.word == 8 {
			h.b = n.AppendUint64(h.b, uint64(v))
		} else {
			h.b = n.AppendUint32(h.b, uint32(v))
		}
	}
	h.b = n.AppendUint16(n.AppendUint16(h.b, typ), code)
	h.b = n.AppendUint32(h.b, uint32(value))
	return h
}

// set moves one key, as a keyboard's driver tells it: with its scan code and a
// report.
func (h *hands) set(key uint16, value int32) *hands {
	return h.event(evMisc, 4, int32(key)+0x70000).event(evKey, key, value).event(evSyn, synReport, 0)
}

func (h *hands) tap(keys ...uint16) *hands {
	for _, k := range keys {
		h.now += h.pace
		h.set(k, 1).set(k, 0)
	}
	return h
}

// with taps keys while another is down.
func (h *hands) with(held uint16, keys ...uint16) *hands {
	return h.set(held, 1).tap(keys...).set(held, 0)
}

// typed finds the keys of a text in a layout.
func (h *hands) typed(t *testing.T, l layout, text string) *hands {
	t.Helper()
	for _, r := range text {
		h.character(t, l, r)
	}
	return h
}

func (h *hands) character(t *testing.T, l layout, r rune) {
	t.Helper()
	for i, row := range rows() {
		for j, key := range row {
			switch {
			case r == ' ':
				h.tap(57)
			case at([]rune(l.plain[i]), j) == r:
				h.tap(key)
			case at([]rune(l.shift[i]), j) == r:
				h.with(42, key)
			case at([]rune(l.altgr[i]), j) == r:
				h.with(100, key)
			default:
				continue
			}
			return
		}
	}
	t.Fatalf("the layout has no %q", r)
}

// read gives what a typist makes of the events, in pieces, and the typist.
func (h *hands) read(l layout, piece func() int) ([]string, *typist) {
	t := newTypist(l, h.word)
	var looks []string
	b := h.b
	for len(b) > 0 {
		n := min(piece(), len(b))
		t.take(b[:n], time.Time{}, collect(&looks))
		b = b[n:]
	}
	return looks, t
}

func collect(looks *[]string) func(Look) {
	return func(l Look) {
		text := l.Text
		if l.Cut {
			text += "<cut>"
		}
		*looks = append(*looks, text)
	}
}

func whole24() int { return 24 * 64 }

// typing holds what is typed in a layout to what is read, for both sizes of the
// kernel's events, whole and in odd pieces.
func typing(t *testing.T, name string, typed func(h *hands), want ...string) {
	t.Helper()
	for _, word := range []int{4, 8} {
		h := &hands{word: word, now: 1_700_000_000 * time.Second}
		typed(h)
		for _, piece := range []int{1, 7, 16, 24, 4096} {
			if got, _ := h.read(layouts()[name], func() int { return piece }); !slices.Equal(got, want) {
				t.Errorf("words of %d, pieces of %d: %.40q, want %.40q", word, piece, got, want)
			}
		}
	}
}

func TestEndsOfACode(t *testing.T) {
	us := layouts()["us"]
	typing(t, "us", func(h *hands) {
		h.tap(keyEnter).typed(t, us, "one").tap(keyEnter).typed(t, us, "two").tap(keyEnter2)
		h.typed(t, us, "three").tap(keyTab).tap(keyTab).typed(t, us, "four").with(29, 50) // control and m
		h.typed(t, us, "five").with(97, 36).typed(t, us, "no end yet")                    // control and j
	}, "one", "two", "three", "four", "five")
}

func TestModifiers(t *testing.T) {
	de := layouts()["de"]
	for name, c := range map[string]struct {
		typed func(h *hands)
		want  string
	}{
		"either shift":                     {func(h *hands) { h.with(42, 30, 48).with(54, 46) }, "ABC"},
		"both shifts, one let go":          {func(h *hands) { h.set(42, 1).set(54, 1).set(42, 0).tap(30).set(54, 0).tap(30) }, "Aa"},
		"capitals' lock, letters only":     {func(h *hands) { h.tap(keyCaps, 30, 2, 26, 12, 71, 57).with(42, 30, 2).tap(keyCaps, 30) }, "A1Üß7 a!a"},
		"capitals' lock that is held":      {func(h *hands) { h.with(keyCaps, 30).tap(30, keyCaps) }, "AA"},
		"repeats":                          {func(h *hands) { h.set(30, 1).set(30, 2).set(30, 2).set(30, 0).tap(48) }, "ab"},
		"a repeating shift":                {func(h *hands) { h.set(42, 1).set(42, 2).tap(30).set(42, 0) }, "A"},
		"AltGr":                            {func(h *hands) { h.with(100, 16, 18) }, "@€"},
		"control and Alt are AltGr":        {func(h *hands) { h.set(29, 1).set(56, 1).tap(16).set(56, 0).set(29, 0).tap(16) }, "@q"},
		"a control character":              {func(h *hands) { h.tap(30).with(29, 34).tap(48) }, "a\ab"},
		"dead keys":                        {func(h *hands) { h.tap(13, 18, 41, 30).with(42, 13).tap(30) }, "éâà"},
		"a dead key and no such letter":    {func(h *hands) { h.tap(13, 16, 41, 41, 57) }, "´q^^"},
		"a dead key at the end":            {func(h *hands) { h.tap(30, 41) }, "a^"},
		"the keypad, locked or not":        {func(h *hands) { h.tap(79, 80, keyNumLock, 81, 82, 83).with(42, 71) }, "1230,7"},
		"a key that gives nothing":         {func(h *hands) { h.tap(30, 59, 48) }, "ab<cut>"},
		"a letter that AltGr has not":      {func(h *hands) { h.tap(30).with(100, 48) }, "a<cut>"},
		"Alt and a number":                 {func(h *hands) { h.tap(30).with(56, 79, 80) }, "a<cut>"},
		"the key of Windows":               {func(h *hands) { h.tap(30).with(125, 19) }, "a<cut>"},
		"a correction":                     {func(h *hands) { h.tap(30, 48, 14) }, "ab<cut>"},
		"an unknown event and a scan code": {func(h *hands) { h.tap(30).event(evMisc, 4, 7).event(77, 30, 1).event(evSyn, 1, 0).tap(48) }, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			typing(t, "de", func(h *hands) {
				c.typed(h)
				h.tap(keyEnter).typed(t, de, "next").tap(keyEnter)
			}, c.want, "next")
		})
	}
}

// TestOverrun: where the kernel lost events, the line under way is lost whole,
// with the line that may hang on it; after its end, or a silence, all is well.
func TestOverrun(t *testing.T) {
	us := layouts()["us"]
	overrun := func(h *hands) { h.event(evSyn, synDropped, 0) }
	typing(t, "us", func(h *hands) {
		h.typed(t, us, "one").tap(keyEnter).typed(t, us, "tw")
		overrun(h)
		h.typed(t, us, "orest").tap(keyEnter).typed(t, us, "three").tap(keyEnter)
	}, "one", "tw<cut>", "three")
	typing(t, "us", func(h *hands) {
		overrun(h) // before the first code: its beginning may be gone
		h.typed(t, us, "rest").tap(keyEnter).typed(t, us, "good").tap(keyEnter)
	}, "good")
	typing(t, "us", func(h *hands) {
		h.typed(t, us, "tw")
		overrun(h)
		h.event(evKey, keyEnter, 1).event(evKey, 30, 1) // still before the report: not to be trusted
		overrun(h)
		h.event(evSyn, synReport, 0).typed(t, us, "rest").tap(keyEnter).typed(t, us, "good").tap(keyEnter)
	}, "tw<cut>", "good")
}

// TestOverrunAsksWhatIsHeld: a shift whose release was lost is not held for ever,
// and one that is down stays down.
func TestOverrunAsksWhatIsHeld(t *testing.T) {
	for _, down := range []bool{false, true} {
		h := &hands{word: wordBytes}
		h.set(42, 1).event(evSyn, synDropped, 0).event(evSyn, synReport, 0).tap(keyEnter, 30, keyEnter)
		k := newTypist(layouts()["us"], wordBytes)
		asked := 0
		k.pressed = func() ([]byte, error) {
			asked++
			bitmap := make([]byte, maxKeys/8)
			if down {
				bitmap[42/8] |= 1 << (42 % 8)
			}
			return bitmap, nil
		}
		var looks []string
		k.take(h.b, time.Time{}, collect(&looks))
		want := map[bool]string{false: "a", true: "A"}[down]
		if asked != 1 || !slices.Equal(looks, []string{want}) {
			t.Errorf("shift down %v: asked %d times, %q", down, asked, looks)
		}
	}
	h := &hands{word: wordBytes}
	h.set(42, 1).event(evSyn, synDropped, 0).event(evSyn, synReport, 0).tap(keyEnter, 30, keyEnter)
	k := newTypist(layouts()["us"], wordBytes)
	k.pressed = func() ([]byte, error) { return nil, errors.New("gone") }
	var looks []string
	if k.take(h.b, time.Time{}, collect(&looks)); !slices.Equal(looks, []string{"a"}) {
		t.Errorf("cannot be asked: %q", looks)
	}
}

// TestFarTooLongACode: a megabyte without an end is one look, and memory does not
// grow with it.
func TestFarTooLongACode(t *testing.T) {
	k := newTypist(layouts()["us"], 8)
	var looks []string
	h := &hands{word: 8}
	for range 1 << 16 {
		h.b = h.b[:0]
		k.take(h.tap(45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45, 45).b, time.Time{}, collect(&looks))
	}
	h.b = h.b[:0]
	k.take(h.tap(keyEnter, 30, keyEnter).b, time.Time{}, collect(&looks))
	if want := []string{strings.Repeat("x", MaxLine) + "<cut>", "a"}; !slices.Equal(looks, want) {
		t.Errorf("%d looks", len(looks))
	}
	if cap(k.line) > 2*MaxLine || cap(k.part) > 1024 {
		t.Errorf("holds %d and %d bytes", cap(k.line), cap(k.part))
	}
}

// TestTypedByHand: a keyboard that is no scanner is told from one.
func TestTypedByHand(t *testing.T) {
	us := layouts()["us"]
	for _, c := range []struct {
		pace time.Duration
		code string
		hand bool
	}{
		{time.Millisecond, "A1:ABCDEFG", false},
		{30 * time.Millisecond, "A1:ABCDEFG", false},
		{150 * time.Millisecond, "A1:ABCDEFG", true},
		{150 * time.Millisecond, "short", false}, // cannot be told
	} {
		h := &hands{word: 8, pace: c.pace}
		_, k := h.typed(t, us, c.code).tap(keyEnter).read(us, whole24)
		if got := k.doubt() != nil; got != c.hand {
			t.Errorf("%q, a key every %v: by hand %v", c.code, c.pace, got)
		}
		h.b, h.pace, h.now = h.b[:0], time.Millisecond, h.now+time.Hour
		if k.take(h.typed(t, us, c.code+"x").tap(keyEnter).b, time.Time{}, func(Look) {}); k.doubt() != nil {
			t.Errorf("a quick code after it: %v", k.doubt())
		}
	}
}

// TestAnyEvents: whatever events come, in whatever pieces, the looks are the same,
// none is empty or too long, and what is typed after a silence is read.
func TestAnyEvents(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		l := layouts()[Layouts()[rnd.IntN(len(Layouts()))]]
		h := &hands{word: []int{4, 8}[rnd.IntN(2)]}
		for range rnd.IntN(2000) {
			h.event([]uint16{evSyn, evKey, evKey, evKey, evLED, uint16(rnd.Uint32())}[rnd.IntN(6)],
				[]uint16{0, 3, uint16(rnd.IntN(130)), uint16(rnd.IntN(60)), uint16(rnd.Uint32())}[rnd.IntN(5)], int32(rnd.IntN(4))-1)
		}
		looks, k := h.read(l, func() int { return 1 + rnd.IntN(500) })
		again, _ := h.read(l, whole24)
		if !slices.Equal(looks, again) {
			t.Fatal("the looks depend on the pieces")
		}
		for _, text := range looks {
			if text == "" || text == "<cut>" || len(text) > MaxLine+len("<cut>") || len(text) < MaxLine && !utf8.ValidString(text) {
				t.Fatalf("look %q", text)
			}
		}
		k.flush(time.Time{}, true, func(Look) {})
		h.b = nil
		h.event(evSyn, synReport, 0)
		for key := range modifierKeys() {
			h.set(key, 0)
		}
		var after []string
		k.take(h.tap(3, keyEnter).tap(11, keyEnter).b, time.Time{}, collect(&after))
		if len(after) == 0 || strings.HasSuffix(after[len(after)-1], "<cut>") {
			t.Fatalf("after it: %q", after)
		}
	}
}
