package ledgerhttp

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"admitone/internal/seen"
)

// The scopes of keys.
const (
	ScopeRead   = "read"   // bearer: what is known
	ScopeOrders = "orders" // bearer: the box office's requests
	ScopeAdmin  = "admin"  // signer: admin writes
)

// Caller has a bearer key. Several keys of one name are one caller: that is how a
// key is replaced by another without a gap.
type Caller struct {
	Name      string
	Hash      [sha256.Size]byte // SHA-256 of the key's text; the key itself is not kept
	Scopes    []string
	NotBefore time.Time // the key holds from then on; zero: at once
	NotAfter  time.Time // and no more at that time; zero: until it is taken out
}

// Signer may sign admin requests.
type Signer struct {
	Name   string
	Public ed25519.PublicKey
	Scopes []string
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
	if word, at := found.holds(s.opt.Now()); word != "" {
		return Caller{}, problem(unauthorized, "this key of %q %s at %s", found.Name, word, stamp(at))
	}
	return *found, nil
}

// signed checks a signed request: its signature, its time, its body, and at last
// that it was never here before. The body, at most limit bytes, is read only
// after the head proved to be signed by a known key.
func (s *Server) signed(w http.ResponseWriter, r *http.Request, limit int64) (signer Signer, body []byte, p *Problem) {
	sig, err := parseSignature(r.Header)
	if err != nil {
		return signer, nil, problem(badSignature, "%v", err)
	}
	signer, ok := s.signer(sig.keyID)
	if !ok {
		return signer, nil, problem(badSignature, "no signer has the key %q; the ledger's configuration lists the public keys under [[signer]]", sig.keyID)
	}
	if !sig.verify(r, signer.Public) {
		return signer, nil, problem(badSignature, "the signature of %q does not fit this request: something in it was changed, or it was not signed as it was sent", signer.Name)
	}
	if !slices.Contains(signer.Scopes, ScopeAdmin) {
		return signer, nil, problem(forbidden, "the signer %q has not the scope %s", signer.Name, ScopeAdmin)
	}
	now := s.opt.Now()
	if p := checkTime(sig.created, now); p != nil {
		return signer, nil, p
	}
	if p := s.paced("signer " + signer.Name); p != nil {
		return signer, nil, p
	}
	if body, p = s.readBody(w, r, limit); p != nil {
		return signer, nil, p
	}
	if err := checkDigest(r.Header, body); err != nil {
		return signer, nil, problem(badSignature, "%v", err)
	}
	return signer, body, s.spend(r.Context(), sig, signer, now)
}

func (s *Server) signer(keyID string) (Signer, bool) {
	for _, k := range s.access.Load().Signers {
		if KeyID(k.Public) == keyID {
			return k, true
		}
	}
	return Signer{}, false
}

// checkTime holds created to the window. Its end is exclusive: at created + Window
// the nonce may be forgotten already.
func checkTime(created, now time.Time) *Problem {
	skew, word := now.Sub(created), "behind"
	if skew < 0 {
		skew, word = -skew, "ahead of"
	}
	if skew < Window {
		return nil
	}
	return problem(stale, "your clock is %s %s the ledger's, or the request was held up; at most %s is accepted: set your clock and sign the request anew",
		skew.Round(time.Second), word, Window)
}

// noncePolicy is the endpoint's row of the policy table (specification, section
// 7): a nonce is refused until its own timestamp + the window.
func noncePolicy() seen.Policy {
	return seen.Policy{Endpoint: "nonce", OnRepeat: seen.Refuse, Remember: Window}
}

// Old nonces are taken out a few at a time by the requests that bring new ones,
// and an hour late: a ledger's clock that is set back meanwhile opens no window
// for them.
const (
	pruneNonces = 16
	nonceMargin = time.Hour
)

// spend uses up the nonce, before the write that it is sent for. Where the write
// then fails, nothing was done and the request must be signed anew: a client
// does that by itself.
func (s *Server) spend(ctx context.Context, sig signature, by Signer, now time.Time) *Problem {
	policy := noncePolicy()
	key := seen.Key{Endpoint: policy.Endpoint, Scope: sig.keyID, ID: sig.nonce}
	var a seen.Answer
	err := s.opt.Rows.Seen(ctx, func(rows seen.Tx) error {
		if _, err := rows.Prune(policy.Endpoint, now.Add(-nonceMargin), pruneNonces); err != nil {
			return fmt.Errorf("prune nonces: %w", err)
		}
		var err error
		a, err = rows.Claim(policy, seen.Request{Key: key, At: now, Place: by.Name, Holder: by.Name, Until: sig.created.Add(Window)})
		if err != nil || a.Outcome != seen.Won {
			return err
		}
		_, err = rows.Finish(key, by.Name, nil)
		return err
	})
	if err != nil {
		return s.internal("spend nonce", err)
	}
	if a.Outcome == seen.Won {
		return nil
	}
	p := problem(replayed, "this request was executed at %s; sign a new one to do it again", stamp(a.Row.FirstSeen))
	p.FirstSeen = stamp(a.Row.FirstSeen)
	return p
}
