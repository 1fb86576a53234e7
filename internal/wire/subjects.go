package wire

import (
	"strings"

	"admitone/internal/ticket"
)

// group is the queue group in which ledger processes share requests.
const group = "ledger"

// ledgerName is how requests address whichever ledger process answers.
const ledgerName = "ledger"

func gateSubject(gate ticket.Source, verb string) string { return "gate." + string(gate) + "." + verb }

func ledgerSubject(process, verb string) string { return "ledger." + process + "." + verb }

// LedgerSource is the source under which a ledger process writes.
func LedgerSource(process string) ticket.Source { return ticket.Source("ledger/" + process) }

// author gives who published on a subject, which the broker's permissions prove:
// the source of a gate, or LedgerSource of a ledger process.
func author(subject string) (ticket.Source, bool) {
	kind, rest, ok := strings.Cut(subject, ".")
	name, _, ok2 := strings.Cut(rest, ".")
	switch {
	case !ok || !ok2 || name == "":
		return "", false
	case kind == "gate":
		return ticket.Source(name), true
	case kind == "ledger":
		return LedgerSource(name), true
	}
	return "", false
}

// mayWrite reports whether the author may publish records of the source live: a
// gate its own, a ledger process its own and those it writes for HTTP callers.
func mayWrite(author, source ticket.Source) bool {
	if author == source {
		return true
	}
	return isLedger(author) && strings.HasPrefix(string(source), "http/")
}

func isLedger(s ticket.Source) bool { return strings.HasPrefix(string(s), "ledger/") }

// central reports whether a ledger process writes the source.
func central(s ticket.Source) bool { return strings.Contains(string(s), "/") }

// validToken reports whether a name can stand as one token of a subject.
func validToken(s string) bool {
	return s != "" && !strings.ContainsAny(s, ".*> \t\r\n\x00")
}
