package ticket

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName returns an error when a name cannot be that of an event, session,
// zone or product: 1 to MaxNames ASCII letters, digits and . _ + -, beginning
// with a letter or digit. Such a name has one spelling, is safe in a file, a
// subject and a log, and fits a ticket; what people read is the programme's Name.
func CheckName(s string) error {
	if s == "" {
		return fmt.Errorf("empty, want 1 to %d characters of A-Z a-z 0-9 . _ + -", MaxNames)
	}
	for i := range len(s) {
		c := s[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("._+-", c) < 0) {
			return fmt.Errorf("%q has %q, want A-Z a-z 0-9 . _ + -, a letter or digit first", shorten(s), c)
		}
	}
	if len(s) > MaxNames {
		return fmt.Errorf("%q has %d characters, want at most %d", shorten(s), len(s), MaxNames)
	}
	return nil
}

// checkLabel returns an error when a text that people read, such as a place's
// name, is empty, has more than most bytes, white space at an end, or anything
// that does not print.
func checkLabel(s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("empty, want 1 to %d bytes", most)
	case len(s) > most:
		return fmt.Errorf("%q has %d bytes, want at most %d", shorten(s), len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%q has a character that does not print", s)
	case strings.TrimSpace(s) != s:
		return fmt.Errorf("%q has white space at an end", s)
	}
	return nil
}

// shorten keeps an error message readable whatever is in it.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
