package ledgerhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"admitone/internal/ticket"
)

// problemBase is the stable beginning of every problem's type.
const problemBase = "urn:admitone:problem:"

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// Problem is an error of the API, RFC 9457. The client gives it as an error, so
// that its detail reaches whoever typed the command.
type Problem struct {
	Type      string `json:"type"` // urn:admitone:problem:NAME; stable
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`     // what happened this time, and what to do
	Field     string `json:"field,omitempty"`      // which part of the request is wrong, as in events[0].name
	FirstSeen string `json:"first_seen,omitempty"` // replayed, already-used, in-progress: when the same was first presented

	Reason    ticket.Reason `json:"reason,omitempty"`     // of a claim: why the ticket is refused
	FirstGate string        `json:"first_gate,omitempty"` // of a claim: the place where the ticket was first seen

	RetryAfter int `json:"-"` // seconds, for the header of that name; 0: none
}

// Error gives the detail, which is written for people.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Is reports whether two problems are of one type, for errors.Is.
func (p *Problem) Is(target error) bool {
	q, ok := target.(*Problem)
	return ok && p.Type == q.Type
}

// about names the part of the request that the problem is about.
func (p *Problem) about(field string) *Problem {
	p.Field = field
	return p
}

func (p *Problem) is(k kind) bool { return p.Type == problemBase+string(k) }

// kind is the last part of a problem's type.
type kind string

// The kinds of problems: one closed list, one status each.
const (
	badRequest   kind = "bad-request"
	unauthorized kind = "unauthorized"
	badSignature kind = "signature"
	stale        kind = "stale"
	forbidden    kind = "forbidden"
	notLetIn     kind = "ticket-refused"
	notFound     kind = "not-found"
	badMethod    kind = "method"
	replayed     kind = "replayed"
	notNow       kind = "conflict"
	noKey        kind = "idempotency-key-missing"
	keyReused    kind = "idempotency-key-reused"
	inProgress   kind = "in-progress"
	repeated     kind = "repeated"
	alreadyUsed  kind = "already-used"
	claimReused  kind = "claim-reused"
	declined     kind = "declined"
	unavailable  kind = "unavailable"
	tooOften     kind = "rate"
	tooSlow      kind = "timeout"
	tooLarge     kind = "too-large"
	mediaType    kind = "media-type"
	invalid      kind = "invalid"
	internal     kind = "internal"
)

func (k kind) status() (code int, title string) {
	switch k {
	case badRequest:
		return http.StatusBadRequest, "The request cannot be understood"
	case unauthorized:
		return http.StatusUnauthorized, "No valid bearer key"
	case badSignature:
		return http.StatusUnauthorized, "No valid signature"
	case stale:
		return http.StatusUnauthorized, "Signed too long ago, or by a clock that is wrong"
	case forbidden:
		return http.StatusForbidden, "Not in this key's scope"
	case notFound:
		return http.StatusNotFound, "There is no such thing"
	case badMethod:
		return http.StatusMethodNotAllowed, "Not a method of this path"
	case replayed:
		return http.StatusConflict, "This signed request was executed before"
	case notNow:
		return http.StatusConflict, "Not as things stand"
	case noKey:
		return http.StatusBadRequest, "This request needs an idempotency key"
	case keyReused:
		return http.StatusUnprocessableEntity, "The idempotency key came with another request before"
	case inProgress:
		return http.StatusConflict, "The same request is being worked on"
	case repeated:
		return http.StatusConflict, "This was done before"
	case alreadyUsed:
		return http.StatusConflict, "The ticket was used before"
	case claimReused:
		return http.StatusUnprocessableEntity, "The claim id came with another ticket before"
	case notLetIn:
		return http.StatusForbidden, "The ticket is not let in"
	case declined:
		return http.StatusPaymentRequired, "The payment was declined"
	case unavailable:
		return http.StatusServiceUnavailable, "Not at the moment"
	case tooLarge:
		return http.StatusRequestEntityTooLarge, "The body is too large"
	case tooSlow:
		return http.StatusRequestTimeout, "The request did not come in time"
	case tooOften:
		return http.StatusTooManyRequests, "Too many requests"
	case mediaType:
		return http.StatusUnsupportedMediaType, "Not a kind of content that belongs here"
	case invalid:
		return http.StatusUnprocessableEntity, "The content is not valid"
	}
	return http.StatusInternalServerError, "The ledger could not find out"
}

// problem makes a problem of a kind; detail is a format.
func problem(k kind, detail string, args ...any) *Problem {
	code, title := k.status()
	return &Problem{Type: problemBase + string(k), Title: title, Status: code, Detail: fmt.Sprintf(detail, args...)}
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	b, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Title, p.Status) // strings and a number always marshal
		return
	}
	h := w.Header()
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="admitone"`)
	}
	w.WriteHeader(p.Status)
	w.Write(append(b, '\n'))
}
