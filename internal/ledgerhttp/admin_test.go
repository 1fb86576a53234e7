package ledgerhttp

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// captured is a signed request as it went over the wire, with nothing in it that is
// not signed but the framing.
func (s *stage) captured(path, body string, key ed25519.PrivateKey, created time.Time) []byte {
	s.t.Helper()
	r := s.request(path, body, key, created, NewNonce())
	r.Header.Del("Content-Type")
	r.Header.Set("User-Agent", "")
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		s.t.Fatal(err)
	}
	return b.Bytes()
}

// play sends captured bytes on a connection of their own.
func (s *stage) play(raw []byte) (status int, body string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(raw); err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatalf("%v after\n%q", err, raw)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A captured request is refused inside the window by its nonce, outside by its
// time, whatever the signer's clock said within the window.
func TestCapturedRequestsAreRefused(t *testing.T) {
	for _, off := range []time.Duration{0, -Window + time.Second, Window - time.Second} {
		t.Run(fmt.Sprint("clock off by ", off), func(t *testing.T) {
			s := newStage(t)
			created := s.Now().Add(off)
			raw := s.captured("/v1/revocations", revocation, testKey(1), created)
			if status, body := s.play(raw); status != 200 {
				t.Fatalf("the request itself: %d %s", status, body)
			}
			s.unrevoke()
			for s.Now().Before(created.Add(Window)) {
				if status, body := s.play(raw); status != 409 {
					t.Fatalf("%s after its timestamp: %d %s, want 409", s.Now().Sub(created), status, body)
				}
				s.pass(30 * time.Second)
			}
			for range 3 {
				if status, body := s.play(raw); status != 401 {
					t.Errorf("%s after its timestamp: %d %s, want 401", s.Now().Sub(created), status, body)
				}
				// Another request takes old nonces out; the captured one must not profit.
				s.pass(2 * time.Hour)
				s.unrevoke()
			}
			if s.revoked(ticketID(1)) {
				t.Error("a replay was executed")
			}
		})
	}
}

func (s *stage) unrevoke() {
	s.t.Helper()
	body := strings.Replace(revocation, "true", "false", 1)
	if status, answer := s.send(s.request("/v1/revocations", body, testKey(1), s.Now(), NewNonce())); status != 200 {
		s.t.Fatal(status, answer)
	}
}

// A changed byte anywhere in what is signed is told by the signature.
func TestAChangedByteAnywhereIsRefused(t *testing.T) {
	s := newStage(t)
	raw := s.captured("/v1/revocations?why=lost", revocation, testKey(1), s.Now())
	head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	tried := 0
	for i := range raw {
		line := bytes.LastIndexByte(raw[:i], '\n') + 1
		field := string(raw[line:min(len(raw), line+17)])
		inBody := i >= len(raw)-len(body)
		inValue := bytes.IndexByte(raw[line:i], ':') >= 0 && (strings.HasPrefix(field, "Content-Digest") || strings.HasPrefix(field, "Signature"))
		inQuery := i < bytes.IndexByte(head, '\r') && bytes.IndexByte(raw[:i], '?') >= 0 && i < bytes.Index(raw, []byte(" HTTP/"))
		if !inBody && !inValue && !inQuery || raw[i] == ' ' || raw[i] == '\r' || raw[i] == '\n' {
			continue
		}
		changed := bytes.Clone(raw)
		changed[i] = 'x'
		if raw[i] == 'x' {
			changed[i] = 'y'
		}
		tried++
		if status, answer := s.play(changed); status != 401 {
			t.Errorf("byte %d, %q for %q: %d %s, want 401", i, changed[i], raw[i], status, answer)
		}
	}
	for _, path := range []string{"/v1/revocationz?why=lost", "/v1/releases?why=lost", "/v1/revocations/?why=lost", "/v1//revocations?why=lost", "/v1/revocations"} {
		changed := bytes.Replace(raw, []byte("/v1/revocations?why=lost"), []byte(path), 1)
		if status, answer := s.play(changed); status == 200 {
			t.Errorf("sent to %s: %d %s", path, status, answer)
		}
	}
	if status, answer := s.play(bytes.Replace(raw, []byte("POST"), []byte("PUT"), 1)); status == 200 {
		t.Errorf("as PUT: %d %s", status, answer)
	}
	if s.revoked(ticketID(1)) {
		t.Fatal("a changed request was executed")
	}
	if status, answer := s.play(raw); status != 200 || tried < 300 {
		t.Errorf("the request itself after %d changed ones: %d %s", tried, status, answer)
	}
	if n := len(s.auditLines()); n != 1 {
		t.Errorf("%d lines in the audit log, want that of the one request", n)
	}
}

// Of many copies at once one is executed, and one line tells so; where the request
// cannot be done, one is told why.
func TestFiftyCopiesAtOnce(t *testing.T) {
	s := newStage(t)
	s.prepare()
	had := len(s.auditLines())
	for round, c := range []struct {
		path, body string
		want       int
	}{{"/v1/revocations", revocation, 200}, {"/v1/events/gala/close", "", 200}, {"/v1/releases", `{"claim":"un/0000000000000007/1","note":"x"}`, 404}} {
		raw := s.captured(c.path, c.body, testKey(1), s.Now())
		const copies = 50
		got := make([]int, copies)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i], _ = s.play(raw) })
		}
		wg.Wait()
		counts := map[int]int{}
		for _, status := range got {
			counts[status]++
		}
		if counts[c.want] != 1 || counts[409] != copies-1 {
			t.Errorf("%s: %v, want one %d and the rest 409", c.path, counts, c.want)
		}
		if n := len(s.auditLines()) - had; n != round+1 {
			t.Errorf("%s: %d lines in the audit log, want %d", c.path, n, round+1)
		}
	}
}

// What could not be done when it was sent is not done later by a copy.
func TestAFailedRequestIsNotReplayedEither(t *testing.T) {
	s := newStage(t)
	s.prepare()
	raw := s.captured("/v1/releases", `{"claim":"un/0000000000000007/1","note":"x"}`, testKey(1), s.Now())
	if status, body := s.play(raw); status != 404 {
		t.Fatalf("release of an unknown claim: %d %s", status, body)
	}
	id := s.admitted("un", "North 2", 1, ticketID(1))
	if status, body := s.play(raw); status != 409 {
		t.Errorf("the same request when it could be done: %d %s, want 409", status, body)
	}
	r, err := s.ledger.Ticket(t.Context(), ticket.FormatA1, ticketID(1))
	if err != nil || len(r.Claims) != 1 || r.Claims[0].Released || r.Claims[0].Claim != id.String() {
		t.Errorf("claims %+v, %v, want one that was not released", r.Claims, err)
	}
}

// Each signer may do what its scopes say, and what is refused for that is written
// down.
func TestSignersHaveScopes(t *testing.T) {
	s := newStage(t)
	s.prepare()
	requests := map[string][2]string{
		ScopeRevoke:    {"/v1/revocations", revocation},
		ScopeProgramme: {"/v1/codes/gala", `{"hashes":[]}`},
		ScopeGates:     {"/v1/gates/South/lost", ""},
		ScopeConflicts: {"/v1/conflicts/none/acknowledge", `{"note":"x"}`},
	}
	var signers []Signer
	keys := map[string]ed25519.PrivateKey{ScopeAdmin: testKey(20)}
	for i, scope := range []string{ScopeRevoke, ScopeProgramme, ScopeGates, ScopeConflicts, ScopeAdmin} {
		keys[scope] = testKey(byte(20 + i))
		signers = append(signers, Signer{Name: "has-" + scope, Public: keys[scope].Public().(ed25519.PublicKey), Scopes: []string{scope}})
	}
	callers := s.server.access.Load().Callers
	s.server.SetAccess(Access{Callers: callers, Signers: signers})
	lines := len(s.auditLines())
	for has, key := range keys {
		for needs, c := range requests {
			status, body := s.send(s.request(c[0], c[1], key, s.Now(), NewNonce()))
			lines++
			if allowed := has == needs || has == ScopeAdmin; allowed == (status == 403) {
				t.Errorf("signer with %s, request of %s: %d %s", has, needs, status, body)
			}
		}
	}
	all := s.auditLines()
	if len(all) != lines {
		t.Errorf("%d lines in the audit log, want %d", len(all), lines)
	}
	refused := 0
	for _, l := range all {
		if l.Problem == string(forbidden) && l.Status == 403 {
			refused++
		}
	}
	if want := 4 * 3; refused != want {
		t.Errorf("%d lines say that a scope was missing, want %d", refused, want)
	}
}

// A signer's key is replaced by another without a gap, and ends at its time.
func TestSignersKeysAreRotated(t *testing.T) {
	s := newStage(t)
	begin := s.Now()
	key := func(seed byte, from, to time.Time) Signer {
		return Signer{Name: "ops", Public: testKey(seed).Public().(ed25519.PublicKey), Scopes: []string{ScopeRevoke}, NotBefore: from, NotAfter: to}
	}
	s.server.SetAccess(Access{Callers: s.server.access.Load().Callers, Signers: []Signer{
		key(30, time.Time{}, begin.Add(2*time.Hour)), key(31, begin.Add(time.Hour), time.Time{}),
	}})
	for _, c := range []struct {
		after    time.Duration
		old, new int
	}{{0, 200, 401}, {time.Hour - time.Second, 200, 401}, {time.Hour, 200, 200}, {2*time.Hour - time.Second, 200, 200}, {2 * time.Hour, 401, 200}} {
		s.pass(begin.Add(c.after).Sub(s.Now()))
		for seed, want := range map[byte]int{30: c.old, 31: c.new} {
			status, body := s.send(s.request("/v1/revocations", revocation, testKey(seed), s.Now(), NewNonce()))
			if status != want {
				t.Errorf("%s after, key %d: %d %s, want %d", c.after, seed, status, body, want)
			}
			if want == 401 && !strings.Contains(body, "begins at") && !strings.Contains(body, "ended at") {
				t.Errorf("the problem does not say when the key holds: %s", body)
			}
		}
	}
	// A request that was signed while the key held, and came after its end.
	raw := s.captured("/v1/revocations", revocation, testKey(30), begin.Add(2*time.Hour-time.Second))
	if status, body := s.play(raw); status != 401 {
		t.Errorf("a late request of an ended key: %d %s, want 401", status, body)
	}
}

func TestAuditLogSaysWhoDidWhatWhenWithWhatOutcome(t *testing.T) {
	s := newStage(t)
	s.prepare()
	had := len(s.auditLines())
	send := func(path, body string, key ed25519.PrivateKey) int {
		status, _ := s.send(s.request(path, body, key, s.Now(), NewNonce()))
		return status
	}
	send("/v1/revocations", revocation, testKey(1))
	s.pass(time.Minute)
	send("/v1/gates/East%202/lost?x=1", "", testKey(1))
	send("/v1/releases", "no JSON", testKey(1))
	send("/v1/revocations", revocation, testKey(2)) // without any scope
	send("/v1/revocations", revocation, testKey(3)) // nobody's key: no line, or anybody could fill the disk
	lines := s.auditLines()[had:]
	digest := func(body string) string { sum := sha256.Sum256([]byte(body)); return hex.EncodeToString(sum[:]) }
	want := []struct {
		by, path, digest, problem string
		status                    int
	}{
		{"boss", "/v1/revocations", digest(revocation), "", 200},
		{"boss", "/v1/gates/East%202/lost?x=1", digest(""), "not-found", 404},
		{"boss", "/v1/releases", digest("no JSON"), "bad-request", 400},
		{"guest", "/v1/revocations", digest(revocation), "forbidden", 403},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines %+v, want %d", len(lines), lines, len(want))
	}
	for i, w := range want {
		l := lines[i]
		if l.By != w.by || l.Method != "POST" || l.Path != w.path || l.Digest != w.digest || l.Problem != w.problem || l.Status != w.status || len(l.Nonce) < 16 || len(l.Key) != 64 {
			t.Errorf("line %d is %+v, want %+v", i, l, w)
		}
	}
	if lines[0].Time == lines[1].Time || lines[1].Time != stamp(s.Now()) {
		t.Errorf("times %s and %s", lines[0].Time, lines[1].Time)
	}
}

// The same acknowledgement again, newly signed, is a retry: it gets the first
// answer, marked, and changes nothing.
func TestAcknowledgementsAreEchoed(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.admitted("un", "North 2", 1, ticketID(1))
	s.admitted("us", "South", 1, ticketID(1))
	page, err := s.client().Conflicts(t.Context(), "", 0)
	if err != nil || len(page.Conflicts) != 1 {
		t.Fatalf("conflicts %+v, %v", page, err)
	}
	send := func(note string) (status int, body, replayed string) {
		r := s.request("/v1/conflicts/"+page.Conflicts[0].ID+"/acknowledge", fmt.Sprintf(`{"note":%q}`, note), testKey(1), s.Now(), NewNonce())
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b), resp.Header.Get(replayedField)
	}
	status, first, replayed := send("a family")
	if status != 200 || replayed != "" || !strings.Contains(first, `"acknowledged"`) {
		t.Fatalf("got %d %s, replayed %q", status, first, replayed)
	}
	if _, _, replayed := send("two families"); replayed != "" {
		t.Error("another note is taken for a retry")
	}
	if _, again, replayed := send("a family"); again != first || replayed != "true" {
		t.Errorf("a retry got %s, replayed %q, want the first answer", again, replayed)
	}
	c, err := s.client().Conflict(t.Context(), page.Conflicts[0].ID)
	if err != nil || c.Note != "two families" {
		t.Errorf("the note is %q, %v: a late retry overwrote what came after it", c.Note, err)
	}
	// A claim that is added later opens it again, and the same words are new then.
	s.admitted("ux", "West", 1, ticketID(1))
	if _, _, replayed := send("a family"); replayed != "" {
		t.Error("the acknowledgement of three claims is taken for that of two")
	}
}
