package ledgerhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

const revocation = `{"ticket":"30303030303030303030303030303031","revoked":true}`

// problemIn reads a problem and holds it to the form of RFC 9457.
func problemIn(t *testing.T, status int, body string) Problem {
	t.Helper()
	var p Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != status || !strings.HasPrefix(p.Type, problemBase) || p.Title == "" || p.Detail == "" {
		t.Errorf("status %d with %q: %v, want a problem with all its members", status, body, err)
	}
	return p
}

func TestReadsNeedAKeyOfTheirScope(t *testing.T) {
	s := newStage(t)
	for _, path := range []string{"/v1/conflicts", "/v1/conflicts.csv", "/v1/conflicts?format=csv", "/v1/conflicts/x", "/v1/alarms", "/v1/gates",
		"/v1/stats", "/v1/verdicts", "/v1/tickets/x", "/v1/programme", "/metrics"} {
		for key, want := range map[string]int{"": 401, "wrong": 401, readKey + " ": 200, orderKey: 403} {
			status, body := s.read(path, key)
			if want == 200 {
				if status == 401 || status == 403 {
					t.Errorf("%s with the right key: %d %s", path, status, body)
				}
				continue
			}
			if status != want {
				t.Errorf("%s with key %q: %d, want %d", path, key, status, want)
			}
			problemIn(t, status, body)
		}
	}
	if status, body := s.read("/healthz", ""); status != 200 || body != "{\"status\":\"ok\"}\n" {
		t.Errorf("healthz: %d %s", status, body)
	}
	if _, body := s.read("/v1/gates", orderKey); !strings.Contains(body, "needs read") || !strings.Contains(body, "orders") {
		t.Errorf("the problem does not tell the scopes: %s", body)
	}
}

func TestABearerKeyIsNoSignature(t *testing.T) {
	s := newStage(t)
	r, err := http.NewRequest("POST", s.url+"/v1/revocations", strings.NewReader(revocation))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+readKey)
	status, body := s.send(r)
	if p := problemIn(t, status, body); status != 401 || p.Type != problemBase+"signature" {
		t.Errorf("got %d %s, want 401 signature", status, body)
	}
}

// revoked says what the ledger knows, past the API.
func (s *stage) revoked(id ticket.ID) bool {
	s.t.Helper()
	r, err := s.ledger.Ticket(context.Background(), ticket.FormatA1, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Revoked
}

func TestSignedRequestWorksOnce(t *testing.T) {
	s := newStage(t)
	first := s.Now()
	status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), first, "0123456789abcdef"))
	if status != 200 || !s.revoked(ticketID(1)) {
		t.Fatalf("got %d %s, want that the ticket is revoked", status, body)
	}
	if err := s.ledger.Revoke(context.Background(), ticket.FormatA1, ticketID(1), false, "test"); err != nil {
		t.Fatal(err)
	}
	s.pass(Window - time.Second)
	status, body = s.send(s.request("/v1/revocations", revocation, testKey(1), first, "0123456789abcdef"))
	p := problemIn(t, status, body)
	if status != 409 || p.Type != problemBase+"replayed" || p.FirstSeen != stamp(first) {
		t.Errorf("the same request again: %d %s, want 409 with its first time", status, body)
	}
	if s.revoked(ticketID(1)) {
		t.Error("a replayed request was executed")
	}
	s.pass(time.Second) // the nonce's row may go now: the signature must not pass any more
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), first, "0123456789abcdef")); status != 401 {
		t.Errorf("at the end of the window: %d %s, want 401", status, body)
	}
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), "fedcba9876543210")); status != 200 {
		t.Errorf("a new nonce: %d %s", status, body)
	}
}

// TestReplayAfterTheClockWasSetBack: nonces are taken out late, so that a ledger
// whose clock goes back refuses what it executed.
func TestReplayAfterTheClockWasSetBack(t *testing.T) {
	s := newStage(t)
	created := s.Now()
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), created, "0123456789abcdef")); status != 200 {
		t.Fatal(status, body)
	}
	s.pass(30 * time.Minute)
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce())); status != 200 {
		t.Fatal(status, body)
	}
	s.pass(-29 * time.Minute)
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(1), created, "0123456789abcdef")); status != 409 {
		t.Errorf("got %d, want 409", status)
	}
}

func TestSignedRequestIsRefused(t *testing.T) {
	s := newStage(t)
	now := s.Now()
	with := func(change func(r *http.Request)) *http.Request {
		r := s.request("/v1/revocations", revocation, testKey(1), now, NewNonce())
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		r      *http.Request
		status int
		kind   kind
		detail string
	}{
		"behind":        {s.request("/v1/revocations", revocation, testKey(1), now.Add(-7*time.Minute-12*time.Second), NewNonce()), 401, stale, "7m12s behind"},
		"ahead":         {s.request("/v1/revocations", revocation, testKey(1), now.Add(6*time.Minute), NewNonce()), 401, stale, "6m0s ahead of"},
		"unknown key":   {s.request("/v1/revocations", revocation, testKey(3), now, NewNonce()), 401, badSignature, "no signer has the key"},
		"without scope": {s.request("/v1/revocations", revocation, testKey(2), now, NewNonce()), 403, forbidden, "guest"},
		"other path":    {with(func(r *http.Request) { r.URL.Path = "/v1/releases" }), 401, badSignature, "does not fit"},
		"a query":       {with(func(r *http.Request) { r.URL.RawQuery = "x=1" }), 401, badSignature, "does not fit"},
		"other method":  {with(func(r *http.Request) { r.Method = "PUT" }), 405, badMethod, "POST"},
		"other body": {with(func(r *http.Request) {
			*r = *s.request("/v1/revocations", strings.Replace(revocation, "true", "null", 1), testKey(1), now, "0123456789abcdef")
			r.Header = s.request("/v1/revocations", revocation, testKey(1), now, "0123456789abcdef").Header
		}), 401, badSignature, "not the one that was signed"},
	} {
		status, body := s.send(c.r)
		if p := problemIn(t, status, body); status != c.status || p.Type != problemBase+string(c.kind) || !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: got %d %s, want %d %s with %q", name, status, body, c.status, c.kind, c.detail)
		}
	}
	if s.revoked(ticketID(1)) {
		t.Error("a refused request was executed")
	}
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), now, "0123456789abcdef")); status != 200 {
		t.Errorf("a refused request used up its nonce: %d %s", status, body)
	}
}

// TestNonceIsDurableWithTheWrite: where the store fails, the request is neither
// executed nor confirmed, and the failure is no 200 and no 409.
func TestNonceIsDurableWithTheWrite(t *testing.T) {
	s := newStage(t)
	s.mem.FailNext(kv.FailLost)
	status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), "0123456789abcdef"))
	if p := problemIn(t, status, body); status != 500 || p.Type != problemBase+"internal" {
		t.Errorf("got %d %s, want 500", status, body)
	}
	if !strings.Contains(s.log.String(), "POST /v1/revocations") {
		t.Errorf("the log does not tell what failed: %s", s.log.String())
	}
}

func TestProblemsOfRequests(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for name, c := range map[string]struct {
		path, body string
		status     int
		detail     string
	}{
		"unknown key":       {"/v1/revocations", `{"ticket":"30303030303030303030303030303031","revoked":true,"x":1}`, 400, "x: no such field"},
		"no revoked":        {"/v1/revocations", `{"ticket":"30303030303030303030303030303031"}`, 400, "revoked"},
		"no JSON":           {"/v1/revocations", `revoke it`, 400, "JSON"},
		"two values":        {"/v1/revocations", revocation + revocation, 400, "after top-level value"},
		"no body":           {"/v1/revocations", ``, 400, "JSON"},
		"unknown format":    {"/v1/revocations", `{"ticket":"30303030303030303030303030303031","revoked":true,"format":"pdf"}`, 400, "a1 and code"},
		"upper case":        {"/v1/revocations", `{"ticket":"AA303030303030303030303030303031","revoked":true}`, 400, "lower-case"},
		"unknown claim":     {"/v1/releases", `{"claim":"u/0000000000000007/1","note":"x"}`, 404, "not found"},
		"no claim":          {"/v1/releases", `{"note":"x"}`, 400, "GATE/RUN/POSITION"},
		"unknown conflict":  {"/v1/conflicts/abc/acknowledge", `{"note":"x"}`, 404, "not found"},
		"unknown event":     {"/v1/events/nothing/close", ``, 404, "not found"},
		"codes of no event": {"/v1/codes/nothing", `{"hashes":[]}`, 404, "not on the programme"},
		"gate twice":        {"/v1/gates", `{"place":"North 2","key":"UX"}`, 409, "stands at"},
		"no key":            {"/v1/gates", `{"place":"West","key":"X"}`, 422, "user kind"},
		"no place":          {"/v1/gates", `{"place":"","key":"UX"}`, 422, "place"},
		"unknown action":    {"/v1/gates/South/paint", ``, 404, "swapped, revoked or lost"},
		"unknown gate":      {"/v1/gates/East/lost", ``, 404, "not found"},
		"bad programme":     {"/v1/programme", `{"events":[{"id":""}]}`, 422, "events"},
		"old programme":     {"/v1/programme", `{"version":1,"events":[]}`, 409, "version 1"},
		"no such path":      {"/v2/everything", ``, 404, "nothing at"},
		"too large":         {"/v1/revocations", strings.Repeat(" ", maxBody+1), 413, "bytes"},
	} {
		status, body := s.send(s.request(c.path, c.body, testKey(1), s.Now(), NewNonce()))
		if p := problemIn(t, status, body); status != c.status || !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: got %d %s, want %d with %q", name, status, body, c.status, c.detail)
		}
	}
	for _, path := range []string{"/v1/conflicts?limit=0", "/v1/conflicts?limit=1001", "/v1/alarms?limit=1e3", "/v1/conflicts?format=xml", "/v1/tickets/zz"} {
		if status, body := s.read(path, readKey); status != 400 {
			t.Errorf("%s: got %d %s, want 400", path, status, body)
		} else {
			problemIn(t, status, body)
		}
	}
}

func TestClientTellsTheProblem(t *testing.T) {
	s := newStage(t)
	c := s.client()
	c.Now = func() time.Time { return s.Now().Add(-10 * time.Minute) }
	err := c.Revoke(context.Background(), ticket.FormatA1, ticketID(1), true)
	var p *Problem
	if !errors.As(err, &p) || p.Status != 401 || !strings.Contains(err.Error(), "your clock is 10m0s behind the ledger's") {
		t.Errorf("got %v, want the ledger's own words", err)
	}
	c, err = NewClient(s.url, "wrong", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Gates(context.Background()); err == nil || !strings.Contains(err.Error(), "this key is not known") {
		t.Errorf("got %v", err)
	}
	if err := c.CloseEvent(context.Background(), "x"); err == nil || !strings.Contains(err.Error(), "signing key") {
		t.Errorf("got %v", err)
	}
}
