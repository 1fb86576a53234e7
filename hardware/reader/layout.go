package reader

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// layout says what the keys of a keyboard mean. A scanner that types presses the
// keys that give its text in the layout it is set to; ours must be the same.
type layout struct {
	plain, shift, altgr [4]string // what the keys of rows give; a space: nothing
	keypad              rune      // what the keypad's decimal key gives
}

// rows are the keys of a layout, by the kernel's numbers (KEY_* of
// linux/input-event-codes.h), in the order of the layouts' strings: the row of
// digits with the key left of them, the two rows of letters, and the lowest row
// with the key that only some keyboards have, left of it.
func rows() [4][]uint16 {
	return [4][]uint16{
		{41, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
		{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27},
		{30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 43},
		{86, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53},
	}
}

// Dead keys give nothing by themselves and an accent to the next key. They stand
// in layouts as combining characters.
const (
	deadGrave      = '\u0300'
	deadAcute      = '\u0301'
	deadCircumflex = '\u0302'
	deadTilde      = '\u0303'
	deadDiaeresis  = '\u0308'
)

// accents gives, for a dead key, its accent alone, then pairs of a letter without
// and with it.
func accents(dead rune) string {
	return map[rune]string{
		deadGrave:      "`aàeèiìoòuùAÀEÈIÌOÒUÙ",
		deadAcute:      "´aáeéiíoóuúyýAÁEÉIÍOÓUÚYÝ",
		deadCircumflex: "^aâeêiîoôuûAÂEÊIÎOÔUÛ",
		deadTilde:      "~aãnñoõAÃNÑOÕ",
		deadDiaeresis:  "¨aäeëiïoöuüyÿAÄEËIÏOÖUÜ",
	}[dead]
}

// layouts are those that are built in. The keys are as Windows has them, which is
// what scanners are made for: so fr's tilde and grave accent are dead.
func layouts() map[string]layout {
	return map[string]layout{
		"us": {
			plain:  [4]string{"`1234567890-=", "qwertyuiop[]", `asdfghjkl;'\`, `\zxcvbnm,./`},
			shift:  [4]string{"~!@#$%^&*()_+", "QWERTYUIOP{}", `ASDFGHJKL:"|`, "|ZXCVBNM<>?"},
			keypad: '.',
		},
		"gb": {
			plain:  [4]string{"`1234567890-=", "qwertyuiop[]", "asdfghjkl;'#", `\zxcvbnm,./`},
			shift:  [4]string{`¬!"£$%^&*()_+`, "QWERTYUIOP{}", "ASDFGHJKL:@~", "|ZXCVBNM<>?"},
			altgr:  [4]string{"¦   €", "  é   úíó", "á"},
			keypad: '.',
		},
		"de": {
			plain:  [4]string{"\u03021234567890ß\u0301", "qwertzuiopü+", "asdfghjklöä#", "<yxcvbnm,.-"},
			shift:  [4]string{"°!\"§$%&/()=?\u0300", "QWERTZUIOPÜ*", "ASDFGHJKLÖÄ'", ">YXCVBNM;:_"},
			altgr:  [4]string{`  ²³   {[]}\`, "@ €        ~", "", "|      µ"},
			keypad: ',',
		},
		"fr": {
			plain:  [4]string{`²&é"'(-è_çà)=`, "azertyuiop\u0302$", "qsdfghjklmù*", "<wxcvbn,;:!"},
			shift:  [4]string{" 1234567890°+", "AZERTYUIOP\u0308£", "QSDFGHJKLM%µ", ">WXCVBN?./§"},
			altgr:  [4]string{"  \u0303#{[|\u0300\\^@]}", "  €        ¤"},
			keypad: '.',
		},
	}
}

// meaning is what one key gives without and with its modifiers; 0: nothing.
type meaning struct{ plain, shift, altgr rune }

// keys gives the meaning of every key that gives text.
func (l layout) keys() map[uint16]meaning {
	m := keypad(l.keypad)
	for i, row := range rows() {
		plain, shift, altgr := []rune(l.plain[i]), []rune(l.shift[i]), []rune(l.altgr[i])
		for j, key := range row {
			m[key] = meaning{at(plain, j), at(shift, j), at(altgr, j)}
		}
	}
	m[keySpace] = meaning{' ', ' ', 0}
	return m
}

// keypad gives the keys of the keypad: digits always, for a scanner that uses it
// means them, whatever it takes the state of the lock to be.
func keypad(decimal rune) map[uint16]meaning {
	m := map[uint16]meaning{}
	for i, key := range []uint16{71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 55, 98, 117} {
		r := rune("789-456+1230*/="[i])
		m[key] = meaning{plain: r, shift: r}
	}
	m[83] = meaning{plain: decimal, shift: decimal}
	return m
}

func at(row []rune, i int) rune {
	if i >= len(row) || row[i] == ' ' {
		return 0
	}
	return row[i]
}

// give gives the character of a key, or 0.
func (m meaning) give(shift, altgr, caps bool) rune {
	switch {
	case altgr && shift:
		return 0
	case altgr:
		return m.altgr
	case caps && unicode.ToUpper(m.plain) == m.shift:
		shift = !shift // the lock is for letters whose capitals are on their keys
	}
	if shift {
		return m.shift
	}
	return m.plain
}

// accented gives the text of a dead key and the character after it: the letter
// with its accent, the accent alone before a space, or both, one after the other.
func accented(dead, r rune) string {
	table := accents(dead)
	alone, n := utf8.DecodeRuneInString(table)
	if r == ' ' {
		return string(alone)
	}
	for pairs := table[n:]; pairs != ""; {
		letter, a := utf8.DecodeRuneInString(pairs)
		with, b := utf8.DecodeRuneInString(pairs[a:])
		if letter == r {
			return string(with)
		}
		pairs = pairs[a+b:]
	}
	return string(alone) + string(r)
}

// alone gives a dead key's accent without a letter.
func alone(dead rune) string { return accented(dead, ' ') }

// isDead tells a dead key.
func isDead(r rune) bool {
	return strings.ContainsRune(string([]rune{deadGrave, deadAcute, deadCircumflex, deadTilde, deadDiaeresis}), r)
}
