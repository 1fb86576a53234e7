package ledgerhttp

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"admitone/internal/audit"
	"admitone/internal/ledger"
	"admitone/internal/seen"
)

// Signer may sign admin requests. Several keys of one name are one signer, as with
// callers.
type Signer struct {
	Name      string
	Public    ed25519.PublicKey
	Scopes    []string
	NotBefore time.Time // the key holds from then on; zero: at once
	NotAfter  time.Time // and no more at that time; zero: until it is taken out
}

// may reports whether the signer has a scope, or all of them.
func (k Signer) may(scope string) bool {
	return slices.Contains(k.Scopes, scope) || slices.Contains(k.Scopes, ScopeAdmin)
}

// write is one signed request that may be executed, but for its nonce.
type write struct {
	*http.Request
	By   string // the signer's name
	Body []byte

	signer Signer
	sig    signature
	now    time.Time // when it was found to be in time
}

// job is what a signed request asks for. It may run more than once; only its last
// run counts.
type job func(w *ledger.Within) (any, error)

// post makes a handler for a signed admin write with a JSON body of at most
// maxBody bytes, or none. fn reads the request; what is wrong with it is a problem.
func (s *Server) post(scope string, fn func(q write) (job, *Problem)) http.HandlerFunc {
	return s.upload(scope, maxBody, jsonOnly, fn)
}

// upload is post with a body of at most limit bytes, of the media types that accepts
// takes.
func (s *Server) upload(scope string, limit int64, accepts func(*http.Request) *Problem, fn func(q write) (job, *Problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, p := s.signed(w, r, limit)
		if p != nil {
			s.failed(r, p).write(w)
			return
		}
		var do job
		if !q.signer.may(scope) {
			p = problem(forbidden, "the signer %q has the scopes %s; this request needs %s", q.By, strings.Join(q.signer.Scopes, ", "), scope)
		} else if p = accepts(r); p == nil {
			do, p = fn(q)
		}
		if p != nil {
			s.refuse(q, p).write(w)
			return
		}
		v, p := s.execute(q, do)
		s.answer(w, http.StatusOK, v, p)
	}
}

// signed checks all of a signed request but its nonce: its signature, its time, its
// body. The body, at most limit bytes, is read only after the head proved to be
// signed by a known key.
func (s *Server) signed(w http.ResponseWriter, r *http.Request, limit int64) (q write, p *Problem) {
	q = write{Request: r, now: s.opt.Now()}
	var err error
	if q.sig, err = parseSignature(r.Header); err != nil {
		return q, problem(badSignature, "%v", err)
	}
	if q.signer, p = s.signer(q.sig.keyID, q.now); p != nil {
		return q, p
	}
	q.By = q.signer.Name
	if !q.sig.verify(r, q.signer.Public) {
		return q, problem(badSignature, "the signature of %q does not fit this request: something in it was changed, or it was not signed as it was sent", q.By)
	}
	if p := checkTime(q.sig.created, q.now); p != nil {
		return q, p
	}
	if p := s.paced("signer " + q.By); p != nil {
		return q, p
	}
	if q.Body, p = s.readBody(w, r, limit); p != nil {
		return q, p
	}
	if err := checkDigest(r.Header, q.Body); err != nil {
		return q, problem(badSignature, "%v", err)
	}
	return q, nil
}

// signer finds whose key signed, and that it holds now.
func (s *Server) signer(keyID string, now time.Time) (Signer, *Problem) {
	for _, k := range s.access.Load().Signers {
		if KeyID(k.Public) != keyID {
			continue
		}
		if word, at := holds(now, k.NotBefore, k.NotAfter); word != "" {
			return k, problem(badSignature, "the key %q of %q %s at %s", keyID, k.Name, word, stamp(at))
		}
		return k, nil
	}
	return Signer{}, problem(badSignature, "no signer has the key %q; the ledger's configuration lists the public keys under [[signer]]", keyID)
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

// execute does a job once: its nonce, the work and the line of the audit log are
// one transaction. What cannot be done leaves its nonce and its line alone.
func (s *Server) execute(q write, do job) (v any, p *Problem) {
	err := s.opt.Ledger.Within(q.Context(), func(w *ledger.Within) (err error) {
		if err := spend(w.Tx().Seen(), q); err != nil {
			return err
		}
		if v, err = do(w); err != nil {
			return err
		}
		return note(w, q, nil)
	})
	p = s.outcome(q.Method+" "+q.URL.Path, err)
	if p == nil || p.is(replayed) || p.is(internal) {
		return v, p
	}
	return nil, s.refuse(q, p)
}

// refuse spends the nonce of a request that is not executed, and writes down why.
func (s *Server) refuse(q write, why *Problem) *Problem {
	err := s.opt.Ledger.Within(q.Context(), func(w *ledger.Within) error {
		if err := spend(w.Tx().Seen(), q); err != nil {
			return err
		}
		return note(w, q, why)
	})
	if p := s.outcome("note a refused request", err); p != nil {
		return p
	}
	return why
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

// spend uses up the nonce. The error is a *Problem where it was here before. A
// request that fails for our own reasons spends none, and may be sent again as it
// is: where it was executed after all, that is the answer.
func spend(rows seen.Tx, q write) error {
	policy := noncePolicy()
	if _, err := rows.Prune(policy.Endpoint, q.now.Add(-nonceMargin), pruneNonces); err != nil {
		return fmt.Errorf("prune nonces: %w", err)
	}
	key := seen.Key{Endpoint: policy.Endpoint, Scope: q.sig.keyID, ID: q.sig.nonce}
	a, err := rows.Claim(policy, seen.Request{Key: key, At: q.now, Place: q.By, Holder: q.By, Until: q.sig.created.Add(Window)})
	if err != nil {
		return fmt.Errorf("spend nonce: %w", err)
	}
	if a.Outcome != seen.Won {
		p := problem(replayed, "this request came at %s; sign a new one to do it again", stamp(a.Row.FirstSeen))
		p.FirstSeen = stamp(a.Row.FirstSeen)
		return p
	}
	_, err = rows.Finish(key, q.By, nil)
	return err
}

// note appends a request to the audit log; a nil problem: it was executed.
func note(w *ledger.Within, q write, why *Problem) error {
	tx, err := rowsOf(w.Tx())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(q.Body)
	path := q.URL.EscapedPath()
	if q.URL.RawQuery != "" {
		path += "?" + q.URL.RawQuery
	}
	l := audit.Line{
		Time: stamp(q.now), By: q.By, Key: q.sig.keyID, Method: q.Method, Path: path,
		Digest: hex.EncodeToString(sum[:]), Nonce: q.sig.nonce, Status: http.StatusOK,
	}
	if why != nil {
		l.Status, l.Problem = why.Status, strings.TrimPrefix(why.Type, problemBase)
	}
	_, err = audit.Append(tx, l)
	return err
}
