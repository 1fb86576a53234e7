package ledgerhttp

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func key(name, text string, scopes ...string) Caller {
	return Caller{Name: name, Hash: sha256.Sum256([]byte(text)), Scopes: scopes}
}

// TestKeysAreReplacedWithoutAGap: two keys of one caller hold side by side, each
// within its own time, and one that is taken out ends at once.
func TestKeysAreReplacedWithoutAGap(t *testing.T) {
	s := newStage(t)
	old, next := key("desk", "old", ScopeRead), key("desk", "next", ScopeRead)
	old.NotAfter, next.NotBefore = s.Now().Add(2*time.Hour), s.Now().Add(time.Hour)
	s.server.SetAccess(Access{Callers: []Caller{old, next}})
	check := func(when string, wantOld, wantNext int) {
		t.Helper()
		for text, want := range map[string]int{"old": wantOld, "next": wantNext} {
			if status, body := s.read("/v1/gates", text); status != want {
				t.Errorf("%s: the %s key: %d %s, want %d", when, text, status, body, want)
			}
		}
	}
	check("before", 200, 401)
	s.pass(time.Hour)
	check("both", 200, 200)
	s.pass(time.Hour)
	check("after", 401, 200)
	if _, body := s.read("/v1/gates", "old"); !strings.Contains(body, `of \"desk\" ended at`) {
		t.Errorf("the problem does not tell that the key ended: %s", body)
	}
	s.server.SetAccess(Access{Callers: []Caller{key("desk", "third", ScopeRead)}})
	check("taken out", 401, 401)
	if status, _ := s.read("/v1/gates", "third"); status != 200 {
		t.Errorf("the new key: %d", status)
	}
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce())); status != 401 {
		t.Errorf("a signer that was taken out: %d", status)
	}
	s.server.SetAccess(Access{Signers: []Signer{{Name: "boss", Public: testKey(1).Public().(ed25519.PublicKey), Scopes: []string{ScopeAdmin}}}})
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce())); status != 200 {
		t.Errorf("a signer that was put in: %d", status)
	}
}

// limited is a stage with limits.
func limited(t *testing.T, l Limits) *stage {
	s := newStage(t)
	s.server.callers, s.server.failures = newPaces(l)
	return s
}

// TestACallerInALoopIsSlowedDown: beyond its burst a caller is told to wait, as
// long as it must; the others are not.
func TestACallerInALoopIsSlowedDown(t *testing.T) {
	s := limited(t, Limits{Rate: 0.5, Burst: 3})
	get := func(key string) *http.Response {
		r, err := http.NewRequest("GET", s.url+"/v1/gates", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	for range 3 {
		if resp := get(readKey); resp.StatusCode != 200 {
			t.Fatalf("within the burst: %d", resp.StatusCode)
		}
	}
	resp := get(readKey)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("beyond it: %d, Retry-After %q, want 429 and 2", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce())); status != 200 {
		t.Errorf("somebody else: %d", status)
	}
	s.pass(2 * time.Second)
	if resp := get(readKey); resp.StatusCode != 200 {
		t.Errorf("after the wait: %d", resp.StatusCode)
	}
	if resp := get(readKey); resp.StatusCode != 429 {
		t.Errorf("and again at once: %d", resp.StatusCode)
	}
	for range 3 {
		s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce()))
	}
	nonce := NewNonce()
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), nonce)); status != 429 {
		t.Errorf("a signer in a loop: %d", status)
	}
	s.pass(2 * time.Second)
	if status, body := s.send(s.request("/v1/revocations", revocation, testKey(1), s.Now(), nonce)); status != 200 {
		t.Errorf("a request that was told to wait used up its nonce: %d %s", status, body)
	}
}

// TestGuessersAreSlowedDown: failures are limited by address, and a good key from
// the same address goes on working.
func TestGuessersAreSlowedDown(t *testing.T) {
	s := limited(t, Limits{Failures: 4})
	for i := range 4 {
		if status, _ := s.read("/v1/gates", fmt.Sprint("guess", i)); status != 401 {
			t.Fatalf("guess %d: %d", i, status)
		}
	}
	status, body := s.read("/v1/gates", "guess")
	if p := problemIn(t, status, body); status != 429 || p.Type != problemBase+"rate" {
		t.Errorf("beyond the limit: %d %s", status, body)
	}
	if status, _ := s.send(s.request("/v1/revocations", revocation, testKey(3), s.Now(), NewNonce())); status != 429 {
		t.Errorf("a signature that nobody knows, beyond the limit: %d", status)
	}
	if status, _ := s.read("/v1/gates", readKey); status != 200 {
		t.Errorf("a good key from the same address: %d", status)
	}
	s.pass(15 * time.Second)
	if status, _ := s.read("/v1/gates", "guess"); status != 401 {
		t.Errorf("after a quarter of a minute: %d", status)
	}
}

func TestOrigin(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "@": "@", "host:1": "host",
	} {
		if got := origin(remote); got != want {
			t.Errorf("%s is counted as %s, want %s", remote, got, want)
		}
	}
}

// TestManyNamesAreBounded: what is remembered for limits does not grow without
// end.
func TestManyNamesAreBounded(t *testing.T) {
	p, now := newPace(1, 1), time.Unix(1, 0)
	for i := range 3 * maxTracked {
		p.take(fmt.Sprint(i), now)
	}
	if len(p.of) > maxTracked {
		t.Errorf("%d names are remembered", len(p.of))
	}
	now = now.Add(time.Hour)
	p.take("new", now)
	for i := range maxTracked {
		p.take(fmt.Sprint("later", i), now)
	}
	if len(p.of) > maxTracked {
		t.Errorf("%d names are remembered", len(p.of))
	}
}

// TestSlowRequestsEnd: a head or a body that trickles in is given up, and the
// connection with it; the server answers others all the time.
func TestSlowRequestsEnd(t *testing.T) {
	s := newStage(t)
	s.server.times.header, s.server.times.body = 200*time.Millisecond, 200*time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	dial := func(text string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	head := dial("GET /healthz HTTP/1.1\r\nHost: x\r\n") // and never the empty line
	r := s.request("/v1/revocations", revocation, testKey(1), s.Now(), NewNonce())
	var b strings.Builder
	r.Header.Set("Content-Length", "100000")
	fmt.Fprintf(&b, "POST /v1/revocations HTTP/1.1\r\nHost: x\r\n")
	r.Header.Write(&b)
	slow := dial(b.String() + "\r\n{") // and never the rest
	if resp, err := http.Get("http://" + l.Addr().String() + "/healthz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("somebody else meanwhile: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if text, err := io.ReadAll(head); err != nil || strings.Contains(string(text), "200 OK") {
		t.Errorf("a head without end: %q, %v, want that the connection ends", text, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatalf("a body without end: %v", err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if p := problemIn(t, resp.StatusCode, string(text)); p.Type != problemBase+"timeout" {
		t.Errorf("a body without end: %s", text)
	}
	if rest, err := io.ReadAll(slow); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection goes on: %q, %v", rest, err)
	}
}
