package ledgerhttp

import (
	"slices"
	"time"
)

// Access is who may call. It is replaced as a whole while the server runs
// (Server.SetAccess), so that a key that is taken out ends at once.
type Access struct {
	Callers []Caller // several of one name are several keys of one caller
	Signers []Signer
}

// SetAccess puts other keys in force, for every request that comes from now on.
func (s *Server) SetAccess(a Access) {
	a.Callers, a.Signers = slices.Clone(a.Callers), slices.Clone(a.Signers)
	s.access.Store(&a)
}

// holds reports on which side of its time, from (inclusive) to (exclusive), a key
// is: a word and that time where it
// does not hold, or "". Zero times bound nothing.
func holds(now, from, to time.Time) (word string, at time.Time) {
	switch {
	case !from.IsZero() && now.Before(from):
		return "begins", from
	case !to.IsZero() && !now.Before(to):
		return "ended", to
	}
	return "", time.Time{}
}
