package reader

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// looksOf splits a text that arrives in pieces of at most n bytes.
func looksOf(text string, piece func() int) (looks []Look) {
	var s splitter
	out := func(l Look) { looks = append(looks, l) }
	for len(text) > 0 {
		n := min(piece(), len(text))
		s.take([]byte(text[:n]), time.Time{}, out)
		text = text[n:]
	}
	return looks
}

func whole(texts ...string) (looks []Look) {
	for _, t := range texts {
		looks = append(looks, Look{Text: t})
	}
	return looks
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for name, c := range map[string]struct {
		text string
		want []Look
	}{
		"nothing":             {"", nil},
		"LF":                  {"one\ntwo\n", whole("one", "two")},
		"CRLF":                {"one\r\ntwo\r\n", whole("one", "two")},
		"CR":                  {"one\rtwo\r", whole("one", "two")},
		"empty lines":         {"\n\r\n\r\r\none\n\n", whole("one")},
		"no end":              {"one\ntwo", whole("one")},
		"white space is kept": {" one\t\n", whole(" one\t")},
		"any bytes":           {"a\x00b\xff\xfe\x1b[2J\nü\n", whole("a\x00b\xff\xfe\x1b[2J", "ü")},
		"just long enough":    {long + "\none\n", whole(long, "one")},
		"too long":            {long + "y\none\n", []Look{{Text: long, Cut: true}, {Text: "one"}}},
		"far too long":        {strings.Repeat(long, 256) + "\r\none\n", []Look{{Text: long, Cut: true}, {Text: "one"}}},
		"too long, no end":    {strings.Repeat(long, 3), []Look{{Text: long, Cut: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 4095, 4096, 4097, 1 << 20} {
				got := looksOf(c.text, func() int { return n })
				if !slices.Equal(got, c.want) {
					t.Errorf("in pieces of %d: %d looks, want %d", n, len(got), len(c.want))
				}
			}
		})
	}
}

// TestSplitDoesNotDependOnThePieces: random texts give the same looks however
// they arrive, no look is too long, and no byte is invented.
func TestSplitDoesNotDependOnThePieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range rnd.IntN(40) {
			b.WriteString(strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(2)*rnd.IntN(3*MaxLine)+rnd.IntN(30)))
			b.WriteString([]string{"\n", "\r\n", "\r", ""}[rnd.IntN(4)])
		}
		text := b.String()
		want := looksOf(text, func() int { return len(text) })
		got := looksOf(text, func() int { return 1 + rnd.IntN(5000) })
		if !slices.Equal(got, want) {
			t.Fatalf("%d looks in pieces, %d at once", len(got), len(want))
		}
		rest := text
		for _, l := range want {
			at := strings.Index(rest, l.Text)
			if at < 0 || l.Text == "" || len(l.Text) > MaxLine || l.Cut != (len(l.Text) == MaxLine && rest[at+MaxLine:][0] != '\n' && rest[at+MaxLine:][0] != '\r') {
				t.Fatalf("a look of %d bytes, cut %v", len(l.Text), l.Cut)
			}
			rest = rest[at+len(l.Text):]
		}
	}
}
