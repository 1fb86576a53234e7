package ledgerhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/fxamacker/cbor/v2"

	"admitone/internal/office"
	"admitone/internal/seen"
)

// The header fields of draft-ietf-httpapi-idempotency-key-header-07, and of the
// answer to a repeat.
const (
	keyField      = "Idempotency-Key"
	replayedField = "Idempotency-Replayed"
)

// maxIdempotencyKey bounds a key, in characters.
const maxIdempotencyKey = 255

// The endpoints of the seen table that bearers' writes have, as the policy rows of
// the configuration name them.
const (
	EndpointOrders  = "orders"
	EndpointRefunds = "refunds"
)

// Policies are rows of the policy table (specification, section 7) by their
// endpoints; one that is not there is echo, for 24 hours.
type Policies map[string]Policy

// Policy is one row of the policy table.
type Policy struct {
	seen.Policy
	RepeatStatus int // of the answer to a repeat that is refused: 409, or 200 with a Duplicate; 0: 409
}

// policy gives an endpoint's row: the configuration's, or the one of the
// specification.
func (s *Server) policy(endpoint string) Policy {
	if p, ok := s.opt.Policies[endpoint]; ok {
		return p
	}
	return Policy{Policy: seen.Policy{Endpoint: endpoint, OnRepeat: seen.Echo, Remember: 24 * time.Hour}}
}

// idempotencyKey reads the key of a request. It is a string of structured fields
// (RFC 8941), and may stand bare where it has no space, quote, comma or semicolon.
func idempotencyKey(h http.Header) (string, *Problem) {
	values := h.Values(keyField)
	if len(values) == 0 || len(values) == 1 && strings.TrimSpace(values[0]) == "" {
		return "", problem(noKey, "send a header %s: \"…\", a new key for each order and the same one for each retry of it", keyField).about(keyField)
	}
	bad := problem(badRequest, "%s is one string of 1 to %d printable ASCII characters, as in \"8e03978e-40d5-43dd-bc93-6894a57f9324\"", keyField, maxIdempotencyKey)
	bad.Field = keyField
	if len(values) > 1 {
		return "", bad
	}
	text := strings.TrimSpace(values[0])
	if !strings.HasPrefix(text, `"`) {
		if len(text) > maxIdempotencyKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) }) {
			return "", bad
		}
		return text, nil
	}
	item, err := httpsfv.UnmarshalItem([]string{text})
	key, ok := item.Value.(string)
	if err != nil || !ok || key == "" || len(key) > maxIdempotencyKey || len(item.Params.Names()) > 0 {
		return "", bad
	}
	return key, nil
}

// fingerprint tells one request from another under the same key: method, path and
// body. Two spellings of one JSON document, by its spaces, escapes or the order of
// its fields, are one request; numbers are told apart by how they are written.
func fingerprint(r *http.Request, body []byte) ([]byte, *Problem) {
	var doc json.RawMessage
	if p := strict(body, &doc); p != nil {
		return nil, p
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, problem(badRequest, "the body is not JSON")
	}
	canonical, err := json.Marshal(v) // fields in order, no spaces, one spelling of each string
	if err != nil {
		return nil, problem(badRequest, "the body is not JSON")
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", r.Method, r.URL.EscapedPath())
	h.Write(canonical)
	return h.Sum(nil), nil
}

// once makes a handler for a write that is done once for each key of a caller:
// a bearer key of the scope orders, an Idempotency-Key, a JSON body.
func (s *Server) once(endpoint string, fn func(ctx context.Context, in office.Intent, r *http.Request, body []byte) (office.Reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, body, p := s.intent(w, r, endpoint)
		if p != nil {
			p.write(w)
			return
		}
		reply, err := fn(r.Context(), in, r, body)
		if p := s.officeProblem(endpoint, err); p != nil {
			p.write(w)
			return
		}
		s.reply(w, endpoint, reply)
	}
}

// intent reads all of a request that its work does not depend on.
func (s *Server) intent(w http.ResponseWriter, r *http.Request, endpoint string) (in office.Intent, body []byte, p *Problem) {
	caller, p := s.bearer(r, ScopeOrders)
	if p != nil {
		return in, nil, p
	}
	if s.opt.Office == nil {
		return in, nil, problem(notFound, noOffice)
	}
	in = office.Intent{Policy: s.policy(endpoint).Policy, Caller: caller.Name}
	if in.Key, p = idempotencyKey(r.Header); p != nil {
		return in, nil, p
	}
	if p = jsonOnly(r); p != nil {
		return in, nil, p
	}
	if body, p = s.readBody(w, r, maxBody); p != nil {
		return in, nil, p
	}
	in.Fingerprint, p = fingerprint(r, body)
	return in, body, p
}

// reply sends what the intent of a request came to.
func (s *Server) reply(w http.ResponseWriter, endpoint string, r office.Reply) {
	switch r.Outcome {
	case seen.Won, seen.Echoed:
		if r.Outcome == seen.Echoed {
			w.Header().Set(replayedField, "true")
		}
		if err := writeStored(w, r.Answer); err != nil {
			w.Header().Del(replayedField)
			s.internal("read stored answer", err).write(w)
		}
	case seen.Mismatch:
		problem(keyReused, "idempotency key reused with a different request body; nothing was changed: a new intent needs a new key").write(w)
	case seen.InProgress:
		p := problem(inProgress, "the first request with this key is still being worked on: send the same request again")
		p.RetryAfter = 1
		p.write(w)
	default:
		s.repeated(w, s.policy(endpoint), r.Row.FirstSeen)
	}
}

// repeated refuses a repeat, in the status of its policy row: for those who give up
// at anything but a success it is one, that says what happened.
func (s *Server) repeated(w http.ResponseWriter, p Policy, firstSeen time.Time) {
	if p.RepeatStatus == http.StatusOK {
		s.answer(w, http.StatusOK, Duplicate{Status: "duplicate", FirstSeen: stamp(firstSeen)}, nil)
		return
	}
	no := problem(repeated, "this was done at %s, and a repeat is refused here", stamp(firstSeen))
	no.FirstSeen = stamp(firstSeen)
	no.write(w)
}

// Duplicate is the answer to a repeat that was not executed, where its policy row
// wants a success.
type Duplicate struct {
	Status    string `json:"status"` // duplicate
	FirstSeen string `json:"first_seen"`
}

// officeProblem tells why the office did nothing.
func (s *Server) officeProblem(doing string, err error) *Problem {
	var e *office.Error
	var told *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told):
		return told
	case errors.Is(err, office.ErrCursor):
		return problem(badRequest, "after is the next of an earlier page").about("after")
	case !errors.As(err, &e):
		return s.internal(doing, err)
	}
	k := map[office.Kind]kind{office.Invalid: invalid, office.Missing: notFound, office.Conflict: notNow, office.Unavailable: unavailable}[e.Kind]
	p := problem(k, "%s", e.Detail)
	if p.Field = e.Field; k == unavailable {
		p.RetryAfter = 1
	}
	return p
}

// stored is an answer as the seen table keeps it: what every repeat gets, byte for
// byte.
type stored struct {
	_        struct{} `cbor:",toarray"`
	Form     int      // 1
	Status   int
	Type     string // Content-Type
	Location string // "": none
	Body     []byte
}

func (a stored) encode() ([]byte, error) {
	a.Form = 1
	return cbor.Marshal(a)
}

// writeStored sends a stored answer.
func writeStored(w http.ResponseWriter, b []byte) error {
	var a stored
	if err := cbor.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if a.Form != 1 || a.Status < 200 || a.Status > 599 {
		return errors.New("decode: of no known form")
	}
	h := w.Header()
	h.Set("Content-Type", a.Type)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
	return nil
}
