package ledgerhttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The scopes of keys.
const (
	ScopeRead   = "read"   // bearer: what is known
	ScopeOrders = "orders" // bearer: the box office's requests
	ScopeClaims = "claims" // bearer: claims of hand-held scanners

	ScopeAdmin     = "admin"     // signer: every admin write
	ScopeRevoke    = "revoke"    // signer: revocations and releases
	ScopeProgramme = "programme" // signer: programmes, code lists, the end of events
	ScopeGates     = "gates"     // signer: enrolment of devices
	ScopeConflicts = "conflicts" // signer: acknowledgements
)

// Caller has a bearer key. Several keys of one name are one caller: that is how a
// key is replaced by another without a gap.
type Caller struct {
	Name      string
	Hash      [sha256.Size]byte // SHA-256 of the key's text; the key itself is not kept
	Scopes    []string
	Place     string    // where its hand-held scanners stand; with the scope claims
	NotBefore time.Time // the key holds from then on; zero: at once
	NotAfter  time.Time // and no more at that time; zero: until it is taken out
}

// bearer finds the caller of a request, and checks the scope and the pace.
func (s *Server) bearer(r *http.Request, scope string) (Caller, *Problem) {
	c, p := s.caller(r, scope)
	if p != nil {
		return Caller{}, s.failed(r, p)
	}
	if !slices.Contains(c.Scopes, scope) {
		return c, problem(forbidden, "the key of %q has the scopes %s; this request needs %s", c.Name, strings.Join(c.Scopes, ", "), scope)
	}
	return c, s.paced(c.Name)
}

// caller finds whose key a request has. The key is compared as its hash, in
// constant time and with every caller, so that the time taken tells nothing.
func (s *Server) caller(r *http.Request, scope string) (Caller, *Problem) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return Caller{}, problem(unauthorized, "send a key of the scope %q as the header Authorization: Bearer KEY", scope)
	}
	sum := sha256.Sum256([]byte(key))
	var found *Caller
	access := s.access.Load()
	for i := range access.Callers {
		if subtle.ConstantTimeCompare(sum[:], access.Callers[i].Hash[:]) == 1 {
			found = &access.Callers[i]
		}
	}
	if found == nil {
		return Caller{}, problem(unauthorized, "this key is not known; the ledger's configuration lists the SHA-256 of each key under [[caller]]")
	}
	if word, at := holds(s.opt.Now(), found.NotBefore, found.NotAfter); word != "" {
		return Caller{}, problem(unauthorized, "this key of %q %s at %s", found.Name, word, stamp(at))
	}
	return *found, nil
}
