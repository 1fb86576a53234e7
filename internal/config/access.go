package config

import (
	"slices"
	"strings"
	"time"
)

// Scope is what a caller or signer of the HTTP API may do.
type Scope string

// The scopes of callers.
const (
	ScopeRead   Scope = "read"   // what is known
	ScopeOrders Scope = "orders" // the box office's requests
	ScopeClaims Scope = "claims" // claims of hand-held scanners
)

// The scopes of signers.
const (
	ScopeAdmin     Scope = "admin"     // every admin write
	ScopeRevoke    Scope = "revoke"    // revocations and releases
	ScopeProgramme Scope = "programme" // programmes, code lists, the end of events
	ScopeGates     Scope = "gates"     // enrolment of devices
	ScopeConflicts Scope = "conflicts" // acknowledgements
)

// Caller is a user of the API with a bearer key. The key itself is not kept.
// Several of one name are several keys of one caller, each with its time: that is
// how a key is replaced without a gap.
type Caller struct {
	Name      string    `toml:"name"`
	KeySHA256 string    `toml:"key_sha256"`           // 64 hex digits: SHA-256 of the key's text
	Scopes    []Scope   `toml:"scopes"`               // read, orders, claims
	Place     string    `toml:"place,omitempty"`      // where its hand-held scanners stand; with the scope claims
	NotBefore time.Time `toml:"not_before,omitempty"` // the key holds from then on; absent: at once
	NotAfter  time.Time `toml:"not_after,omitempty"`  // and no more at that time; absent: until it is taken out
}

// Signer may sign admin requests. Several of one name are several keys of one
// signer, as with callers.
type Signer struct {
	Name      string    `toml:"name"`
	Public    string    `toml:"public"` // 64 hex digits: Ed25519
	Scopes    []Scope   `toml:"scopes"` // admin, revoke, programme, gates, conflicts
	NotBefore time.Time `toml:"not_before,omitempty"`
	NotAfter  time.Time `toml:"not_after,omitempty"`
}

func (l *Ledger) checkCallers(r *report) {
	keys, places := map[string]int{}, map[string]string{}
	for i, c := range l.Callers {
		at := index("caller", i)
		if !token(c.Name) { // it stands in the source "http/NAME"
			r.addf(at+".name", "write 1 to 32 of a-z, 0-9 and -", "%s is no name for a caller", show(c.Name))
		}
		r.hex32(at+".key_sha256", c.KeySHA256, "`printf %s KEY | sha256sum`")
		r.unique(at+".key_sha256", strings.ToLower(c.KeySHA256), "caller", keys, i)
		r.scopes(at+".scopes", c.Scopes, ScopeRead, ScopeOrders, ScopeClaims)
		r.standing(at, c, places)
		r.period(at, c.NotBefore, c.NotAfter)
	}
}

// standing checks where a caller's scanners stand. All keys of a caller stand at
// one place: its claims are one source.
func (r *report) standing(at string, c Caller, places map[string]string) {
	claims := slices.Contains(c.Scopes, ScopeClaims)
	switch before, known := places[c.Name]; {
	case !claims:
		r.absent(at+".place", c.Place != "", "only a caller with the scope \"claims\" stands at a place", "remove it")
		return
	case c.Place == "":
		r.add(at+".place", "missing", "say where its hand-held scanners stand, as refusals will cite it")
		return
	case known && before != c.Place:
		r.addf(at+".place", "give another place a caller of its own", "the same caller stands at %s, too", show(before))
	}
	places[c.Name] = c.Place
	r.name(at+".place", c.Place)
}

// period checks from when until when a key holds.
func (r *report) period(at string, from, to time.Time) {
	if !to.IsZero() && !from.Before(to) {
		r.add(at+".not_after", "is not after not_before", "write a later time")
	}
}

func (l *Ledger) checkSigners(r *report) {
	keys := map[string]int{}
	for i, s := range l.Signers {
		at := index("signer", i)
		if !token(s.Name) {
			r.addf(at+".name", "write 1 to 32 of a-z, 0-9 and -", "%s is no name for a signer", show(s.Name))
		}
		r.hex32(at+".public", s.Public, "the public half of the signing key")
		r.unique(at+".public", strings.ToLower(s.Public), "signer", keys, i)
		r.scopes(at+".scopes", s.Scopes, ScopeAdmin, ScopeRevoke, ScopeProgramme, ScopeGates, ScopeConflicts)
		r.period(at, s.NotBefore, s.NotAfter)
	}
}

// unique tells a value that an earlier entry of the list has, too.
func (r *report) unique(key, value, list string, seen map[string]int, i int) {
	if value == "" {
		return
	}
	if j, taken := seen[value]; taken {
		r.addf(key, "give each its own", "is that of %s, too", index(list, j))
		return
	}
	seen[value] = i
}

func (r *report) scopes(key string, list []Scope, known ...Scope) {
	var all, got []string
	for _, s := range known {
		all = append(all, string(s))
	}
	for _, s := range list {
		got = append(got, string(s))
	}
	if len(list) == 0 {
		r.add(key, "missing", "list some of "+quoted(all))
	}
	r.names(key, got, all)
}

// token reports whether a name can stand in a NATS subject, a URL and a source.
func token(s string) bool {
	ok := len(s) >= 1 && len(s) <= 32
	for _, c := range s {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	return ok
}
