package reader

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"
)

// What events are made of (linux/input-event-codes.h).
const (
	evSyn, evKey, evMisc, evLED = 0, 1, 4, 0x11
	synReport                   = 0
	synDropped                  = 3 // the kernel's queue was full: what came before this is lost
	keyUp, keyDown              = 0, 1
	keyTab, keyEnter            = 15, 28
	keySpace, keyCaps           = 57, 58
	keyNumLock, keyEnter2       = 69, 96
	ledCaps                     = 1
)

// modifiers are keys that change what others give, one bit each.
type modifiers uint8

const (
	leftShift modifiers = 1 << iota
	rightShift
	leftCtrl
	rightCtrl
	leftAlt
	altGr
	leftMeta
	rightMeta
)

func modifierKeys() map[uint16]modifiers {
	return map[uint16]modifiers{
		42: leftShift, 54: rightShift, 29: leftCtrl, 97: rightCtrl, 56: leftAlt, 100: altGr, 125: leftMeta, 126: rightMeta,
	}
}

// A person presses a key every 150 to 250 ms; the slowest setting of a scanner
// that anybody would stand in a queue for is a fifth of that.
const (
	handPace = 100 * time.Millisecond // from key to key, on average
	handKeys = 6                      // and at least so many: a short code says little
)

var errByHand = errors.New("the last code was typed as slowly as by hand: if this is a keyboard and no scanner, name the scanner's path instead (ls /dev/input/by-id)")

// typist turns the key events of a scanner into lines.
//
// A key that gives no text in the layout spoils its line: that is told as cut, for
// a text of which a character is missing must not be taken for a code.
type typist struct {
	splitter
	keys      map[uint16]meaning
	modifiers map[uint16]modifiers
	long      int                    // bytes of the kernel's long in an event
	pressed   func() ([]byte, error) // the keys that are down now, a bit each; nil: cannot be asked

	part    []byte // of an event
	held    modifiers
	caps    bool
	dead    rune
	spoilt  bool
	lost    bool // events are missing: nothing counts until the next report
	strokes int  // in this line
	began   time.Duration
	ended   time.Duration
	byHand  bool
}

// wordBytes is the size of this process's long, which is that of an event's times:
// struct input_event is 24 bytes on 64-bit systems and 16 on 32-bit ones, under a
// 64-bit kernel too.
const wordBytes = bits.UintSize / 8

func newTypist(l layout, long int) *typist {
	return &typist{keys: l.keys(), modifiers: modifierKeys(), long: long}
}

// event is struct input_event. Its time is the kernel's, from some beginning.
type event struct {
	time      time.Duration
	typ, code uint16
	value     int32
}

func (t *typist) size() int { return 2*t.long + 8 }

func (t *typist) decode(b []byte) event {
	n := binary.NativeEndian
	word := func(b []byte) time.Duration {
		if t.long == 8 {
			return time.Duration(n.Uint64(b))
		}
		return time.Duration(n.Uint32(b))
	}
	rest := b[2*t.long:]
	return event{
		time: word(b)*time.Second + word(b[t.long:])*time.Microsecond,
		typ:  n.Uint16(rest), code: n.Uint16(rest[2:]), value: int32(n.Uint32(rest[4:])),
	}
}

// take takes events as they were read. The kernel delivers whole ones; a part is
// kept until its rest arrives.
func (t *typist) take(data []byte, at time.Time, out func(Look)) {
	t.part = append(t.part, data...)
	for len(t.part) >= t.size() {
		e := t.decode(t.part)
		t.part = t.part[t.size():]
		t.event(e, at, out)
	}
	t.part = append([]byte(nil), t.part...) // the buffer does not grow with what was read
}

func (t *typist) event(e event, at time.Time, out func(Look)) {
	switch {
	case e.typ == evSyn && e.code == synDropped:
		t.lost = true
	case t.lost && e.typ == evSyn && e.code == synReport:
		t.lost = false
		t.drop(at, out)
	case t.lost || e.typ != evKey:
	case t.modifiers[e.code] != 0:
		t.hold(e.code, e.value != keyUp)
	case e.value == keyDown: // no repeat
		t.press(e, at, out)
	}
}

func (t *typist) hold(key uint16, down bool) {
	t.held &^= t.modifiers[key]
	if down {
		t.held |= t.modifiers[key]
	}
}

// drop ends the line of which events are lost, the end perhaps among them: what
// follows is skipped too, up to its end or a silence. What is held now has to be
// asked for.
func (t *typist) drop(at time.Time, out func(Look)) {
	t.splitter.flush(at, true, out)
	t.skip, t.dead, t.spoilt, t.strokes = true, 0, false, 0
	t.held = 0
	if t.pressed == nil {
		return
	}
	bitmap, err := t.pressed()
	if err != nil {
		return // the next read fails as well, and says why
	}
	t.look(bitmap)
}

// look takes over which modifiers are down.
func (t *typist) look(bitmap []byte) {
	for key := range t.modifiers {
		t.hold(key, hasBit(bitmap, int(key)))
	}
}

func (t *typist) press(e event, at time.Time, out func(Look)) {
	switch e.code {
	case keyCaps:
		t.caps = !t.caps
		return
	case keyNumLock:
		return
	case keyEnter, keyEnter2, keyTab:
		t.end(at, out)
		return
	}
	if t.strokes == 0 {
		t.began = e.time
	}
	t.strokes++
	t.ended = e.time
	text := t.text(e.code)
	if text == "\r" || text == "\n" || text == "\t" {
		t.end(at, out)
		return
	}
	t.add([]byte(text), at, out)
}

// text gives what a key adds to the line, and spoils the line where that is not
// known.
func (t *typist) text(key uint16) string {
	r := t.character(key)
	switch {
	case r == 0:
		t.spoilt = true
		return ""
	case isDead(r) && t.dead == 0:
		t.dead = r
		return ""
	case isDead(r):
		first := alone(t.dead)
		t.dead = r
		return first
	case t.dead != 0:
		dead := t.dead
		t.dead = 0
		return accented(dead, r)
	}
	return string(r)
}

// character gives a key's character with what is held. Control and Alt together
// are AltGr, as some scanners press it; control alone makes control characters, as
// scanners send them (GS, control and ], separates the fields of a GS1 code).
func (t *typist) character(key uint16) rune {
	m, known := t.keys[key]
	ctrl, alt := t.held&(leftCtrl|rightCtrl) != 0, t.held&leftAlt != 0
	gr := t.held&altGr != 0 || ctrl && alt
	if !known || t.held&(leftMeta|rightMeta) != 0 || alt && !gr {
		return 0
	}
	r := m.give(t.held&(leftShift|rightShift) != 0, gr, t.caps)
	if !ctrl || alt {
		return r
	}
	if r < '@' || r > 'z' {
		return 0
	}
	return r & 0x1f // 0, control and @, is no text either
}

// end ends a line at its end key.
func (t *typist) end(at time.Time, out func(Look)) {
	if t.strokes >= handKeys {
		t.byHand = (t.ended-t.began)/time.Duration(t.strokes-1) >= handPace
	}
	t.flush(at, false, out)
}

func (t *typist) flush(at time.Time, cut bool, out func(Look)) {
	if t.dead != 0 {
		t.add([]byte(alone(t.dead)), at, out)
	}
	t.splitter.flush(at, cut || t.spoilt, out)
	t.dead, t.spoilt, t.strokes = 0, false, 0
}

func (t *typist) inside() bool { return t.splitter.inside() || t.dead != 0 || t.spoilt }

// doubt says that the device may not be a scanner.
func (t *typist) doubt() error {
	if t.byHand {
		return errByHand
	}
	return nil
}

func hasBit(bitmap []byte, n int) bool { return n/8 < len(bitmap) && bitmap[n/8]>>(n%8)&1 != 0 }
