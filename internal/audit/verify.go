package audit

import "fmt"

// BrokenError says which is the first line that does not fit.
type BrokenError struct {
	N   uint64 // where it stands, counted from 1
	Why string
}

// Error names the line.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the audit log does not fit at line %d: %s", e.N, e.Why)
}

// Verifier holds the lines of a log, one after the other from the first, against
// each other and against a head that was kept from before.
type Verifier struct {
	kept Head
	head Head
}

// NewVerifier begins before the first line. kept is a head from before; its zero
// value: none.
func NewVerifier(kept Head) *Verifier { return &Verifier{kept: kept} }

// Next takes the next line. It returns a *BrokenError where the line does not fit
// behind those before it.
func (v *Verifier) Next(l Line) error {
	n := v.head.N + 1
	broken := func(format string, args ...any) error { return &BrokenError{N: n, Why: fmt.Sprintf(format, args...)} }
	switch {
	case l.N != n:
		return broken("it says that it is line %d", l.N)
	case l.Prev != v.head.hash():
		return broken("it follows another line than the one before it")
	case l.Hash != l.sum():
		return broken("its content is not what was hashed")
	case n == v.kept.N && l.Hash != v.kept.Hash:
		return broken("it is another line than the one that the kept head names")
	}
	v.head = Head{N: n, Hash: l.Hash}
	return nil
}

// End gives the head after the last line. It returns a *BrokenError where the kept
// head names a line that did not come.
func (v *Verifier) End() (Head, error) {
	if v.head.N < v.kept.N {
		return v.head, &BrokenError{N: v.head.N + 1, Why: fmt.Sprintf("the log ends before it, and the kept head knows %d lines", v.kept.N)}
	}
	return v.head, nil
}
