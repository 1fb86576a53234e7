package ledgerhttp

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/outbox"
	"admitone/internal/shop"
	"admitone/internal/ticket"
)

// The keys of the stage.
const (
	readKey  = "read-me"
	orderKey = "order-me"
	tentKey  = "scan-me"
)

// stage is a server on a real ledger in memory, on loopback, with a clock that
// the test sets.
type stage struct {
	t      *testing.T
	mem    *kv.Mem
	ledger *ledger.Ledger
	box    *box
	out    *outbox.Outbox // which delivers where the test runs it
	desk   *desk          // where it delivers to

	secrets rotating // of the sources of webhooks
	server  *Server
	url     string
	log     lockedBuffer

	mu  sync.Mutex
	now time.Time
}

func (s *stage) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, mem: kv.NewMem(), now: time.Unix(1_800_000_000, 0).UTC()}
	store := ledgerstore.New(s.mem)
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	var err error
	s.desk = newDesk(t)
	s.out, err = outbox.New(outbox.Options{Books: store.Books(), Now: s.Now, Log: log, Every: time.Millisecond, Endpoints: []outbox.Endpoint{s.desk.endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	s.ledger, err = ledger.New(ledgertest.Twice(store), ledger.Options{Tell: s.tell, Process: "1", Now: s.Now, Log: log, ProgrammeKey: testKey(9), DeviceID: deviceID})
	if err != nil {
		t.Fatal(err)
	}
	s.box = newBox(s, store.Books(), log)
	s.secrets.set(hookSecret(t, 1))
	hooks, err := shop.New(shop.Options{Office: s.box, Books: store.Books(), Within: joint{s.ledger}.Within, Now: s.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(Options{
		Ledger: s.ledger, Now: s.Now, Log: log, Office: s.box, Policies: s.box.policies,
		Sources: hookSources(&s.secrets), Shop: hooks, Outbox: s.out,
		Callers: []Caller{
			{Name: "page", Hash: sha256.Sum256([]byte(readKey)), Scopes: []string{ScopeRead}},
			{Name: "box-office", Hash: sha256.Sum256([]byte(orderKey)), Scopes: []string{ScopeOrders}},
			{Name: "tent", Hash: sha256.Sum256([]byte(tentKey)), Scopes: []string{ScopeClaims}, Place: "Tent"},
		},
		Signers: []Signer{
			{Name: "boss", Public: testKey(1).Public().(ed25519.PublicKey), Scopes: []string{ScopeAdmin}},
			{Name: "guest", Public: testKey(2).Public().(ed25519.PublicKey)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.server = srv
	web := httptest.NewServer(heldToTheDocument(t, srv.Handler()))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// deviceID stands for wire.DeviceID: any key that says it is one.
func deviceID(key string) (ticket.Source, error) {
	if !strings.HasPrefix(key, "U") {
		return "", errors.New("not a public key of the user kind")
	}
	return ticket.Source(strings.ToLower(key)), nil
}

func (s *stage) client() *Client {
	s.t.Helper()
	c, err := NewClient(s.url, readKey, testKey(1))
	if err != nil {
		s.t.Fatal(err)
	}
	c.Now = s.Now
	return c
}

// request makes a signed request as a client sends it, to be changed by the test.
func (s *stage) request(path, body string, key ed25519.PrivateKey, created time.Time, nonce string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := Sign(r, []byte(body), key, created, nonce); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// send gives status and body.
func (s *stage) send(r *http.Request) (int, string) {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// read gets a path with a key; "" is none.
func (s *stage) read(path, key string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return s.send(r)
}

func programme() ticket.Programme {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			panic(err)
		}
		return v
	}
	return ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: "gala", Name: "Gala Night", Open: at("2027-01-15T00:00:00Z"), Close: at("2027-01-16T00:00:00Z"), Forget: at("2027-02-16T00:00:00Z"),
		Formats: []string{"a1", "code"}, Keys: []ticket.ProgrammeKey{ticket.ProgrammeKeyOf(testKey(5).Public().(ed25519.PublicKey), false)},
		CodeKey: strings.Repeat("ab", 32),
	}}}
}

// prepare pushes the programme and enrols two gates.
func (s *stage) prepare() {
	s.t.Helper()
	ctx := context.Background()
	if _, err := s.client().PushProgramme(ctx, programme()); err != nil {
		s.t.Fatal(err)
	}
	for _, place := range []string{"North 2", "South"} {
		if _, err := s.client().AddGate(ctx, place, "U"+place[:1], ledger.RoleGate); err != nil {
			s.t.Fatal(err)
		}
	}
}

// admitted is a claim that a gate admitted while it was cut off.
func (s *stage) admitted(device, place string, pos uint64, id ticket.ID) ticket.ClaimID {
	s.t.Helper()
	src := ticket.Source(device)
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: src, Run: 7, Pos: pos}, Unit: ticket.Unit{Event: "gala", Format: ticket.FormatA1, Ticket: id},
		State: ticket.Admitted, Claimed: ticket.Stamp{Wall: s.Now().UnixNano()}, At: s.Now().UnixNano(), Place: place,
		Lane: "1", Lease: 25 * time.Second, Alone: true,
	}
	raw, err := ticket.Record{Source: src, Run: 7, Pos: pos, Claim: &c}.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	reply, err := s.ledger.Upload(context.Background(), src, ledger.Upload{Run: 7, From: pos, Records: [][]byte{raw}})
	if err != nil || len(reply.SetAside) > 0 {
		s.t.Fatalf("upload: %+v, %v", reply, err)
	}
	return c.ID
}

func ticketID(n int) (id ticket.ID) {
	copy(id[:], fmt.Sprintf("%016d", n))
	return id
}
