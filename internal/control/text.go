package control

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"admitone/internal/ticket"
)

// Text gives a verdict as one line for people: time, gate, a sign and a word (a
// colour never stands alone), the ticket, and for a refusal when and where it was
// first seen.
func Text(v ticket.Verdict, colour bool) string {
	sign, code := "✗ refuse", "31"
	switch v.Verdict {
	case ticket.Admit:
		sign, code = "✓ admit ", "32"
	case ticket.Wait:
		sign, code = "… wait  ", "33"
	}
	if colour {
		sign = "\x1b[1;" + code + "m" + sign + "\x1b[0m"
	}
	name := "-"
	if v.Ticket != "" {
		name = v.Ticket[:min(8, len(v.Ticket))]
	}
	line := fmt.Sprintf("%s  gate %-8s %s  %-8s  %-15s", v.Time.Local().Format("15:04:05.000"), printable(v.Gate), sign, name, v.Reason)
	if v.FirstGate != "" {
		line += fmt.Sprintf("  first seen %s at gate %s", v.FirstSeen.Local().Format(time.TimeOnly), printable(v.FirstGate))
	}
	if v.Reason == ticket.OK {
		mode := "offline"
		if v.Online {
			mode = "online"
		}
		line += fmt.Sprintf("  %s, %.0f ms", mode, float64(v.Took)/float64(time.Millisecond))
	}
	return strings.TrimRight(line, " ")
}

// printable keeps a name from writing to the terminal what it should not.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
