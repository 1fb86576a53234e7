package reader

import (
	"slices"
	"strings"
	"testing"
)

// TestKeysOfTheLayouts presses keys by their numbers: what is printed on them in
// each country.
func TestKeysOfTheLayouts(t *testing.T) {
	// The same keys everywhere: the row of digits, then q w e r t y a z m ; ' and so on.
	keys := []uint16{41, 2, 3, 4, 8, 9, 10, 11, 12, 13, 16, 17, 21, 26, 27, 30, 39, 40, 43, 44, 50, 51, 52, 53, 86}
	for name, want := range map[string][3]string{
		"us": {"`1237890-=qwy[]a;'\\zm,./\\", "~!@#&*()_+QWY{}A:\"|ZM<>?|", ""},
		"gb": {"`1237890-=qwy[]a;'#zm,./\\", "¬!\"£&*()_+QWY{}A:@~ZM<>?|", "¦á"},
		"de": {"^1237890ß´qwzü+aöä#ym,.-<", "°!\"§/()=?`QWZÜ*AÖÄ'YM;:_>", "²³{[]}\\@~µ|"},
		"fr": {"²&é\"è_çà)=azy^$qmù*w,;:!<", "1237890°+AZY¨£QM%µW?./§>", "~#`\\^@]}¤"},
	} {
		t.Run(name, func(t *testing.T) {
			l := layouts()[name]
			for level, held := range []uint16{0, 42, 100} {
				if want[level] == "" {
					continue
				}
				h := &hands{word: 8}
				for _, k := range keys {
					m := l.keys()[k]
					r := []rune{m.plain, m.shift, m.altgr}[level]
					switch {
					case r == 0:
						continue // the key gives nothing there
					case held == 0:
						h.tap(k)
					default:
						h.with(held, k)
					}
					if isDead(r) {
						h.tap(keySpace)
					}
				}
				got, _ := h.tap(keyEnter).read(l, whole24)
				if !slices.Equal(got, []string{want[level]}) {
					t.Errorf("level %d: %q, want %q", level, got, want[level])
				}
			}
		})
	}
}

// TestTicketsInEveryLayout types what tickets are made of, and all of ASCII.
func TestTicketsInEveryLayout(t *testing.T) {
	var ascii strings.Builder
	for c := rune('!'); c <= '~'; c++ {
		ascii.WriteRune(c)
	}
	for _, name := range Layouts() {
		l := layouts()[name]
		for _, text := range []string{"A1:0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:", ascii.String()} {
			typing(t, name, func(h *hands) {
				for _, r := range text {
					dead := map[string]map[rune]rune{
						"de": {'^': deadCircumflex, '`': deadGrave}, "fr": {'~': deadTilde, '`': deadGrave},
					}[name][r]
					if dead != 0 {
						h.character(t, l, dead)
						r = ' '
					}
					h.character(t, l, r)
				}
				h.tap(keyEnter)
			}, text)
		}
	}
}
