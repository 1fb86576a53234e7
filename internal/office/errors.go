package office

import "fmt"

// Kind says what a caller can do about an Error.
type Kind uint8

// The kinds of errors.
const (
	Invalid     Kind = iota + 1 // the request itself is wrong: change it
	Missing                     // there is no such thing
	Conflict                    // not as things stand
	Unavailable                 // not now: nothing was done, and the same request may be sent again
)

// Error says why a request was not carried out, and that nothing of it stays: it is
// no result, and is not remembered.
type Error struct {
	Kind   Kind
	Field  string // of the request, where it is about one
	Detail string // for people
}

// Error gives the detail.
func (e *Error) Error() string { return e.Detail }

// Is reports whether two errors are of one kind, for errors.Is.
func (e *Error) Is(target error) bool {
	o, ok := target.(*Error)
	return ok && o.Kind == e.Kind && (o.Field == "" || o.Field == e.Field)
}

func refuse(k Kind, field, detail string, args ...any) *Error {
	return &Error{Kind: k, Field: field, Detail: fmt.Sprintf(detail, args...)}
}
