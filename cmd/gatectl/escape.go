package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape gives a text on one line in which everything shows: what does not print
// (control characters, line breaks, marks that turn the direction of writing,
// bytes that are not UTF-8) and the backslash stand as in a Go string.
func escape(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func hidden(r rune) bool { return r == '\\' || r == utf8.RuneError || !strconv.IsPrint(r) }

// escapeJSON writes the characters of encoded JSON that do not print as \u
// escapes: they can stand in its strings only, and mean the same there.
func escapeJSON(s string) string {
	odd := func(r rune) bool { return r > unicode.MaxASCII && !strconv.IsPrint(r) }
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !odd(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
