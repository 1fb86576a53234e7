package ledgerhttp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/office"
	"admitone/internal/outbox"
	"admitone/internal/webhook"
)

// desk is a system that is told by webhooks: a real server that keeps what it got
// and answers as the test says.
type desk struct {
	web *httptest.Server
	key webhook.Secret
	got chan message

	mu     sync.Mutex
	status int
}

type message struct {
	id   string
	body string
	err  error // of the check of its signature
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{key: hookSecret(t, 7), got: make(chan message, 100), status: 204}
	d.web = httptest.NewServer(d)
	t.Cleanup(d.web.Close)
	return d
}

func (d *desk) endpoint() outbox.Endpoint {
	return outbox.Endpoint{Name: "desk", URL: d.web.URL, Secrets: func() []webhook.Secret { return []webhook.Secret{d.key} }}
}

func (d *desk) answer(status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status = status
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = webhook.Verify(r.Header, body, []webhook.Secret{d.key}, time.Unix(1_800_000_000, 0))
	}
	d.mu.Lock()
	status := d.status
	d.mu.Unlock()
	w.WriteHeader(status)
	d.got <- message{r.Header.Get("webhook-id"), string(body), err}
}

// tell is ledger.Options.Tell, as ledgerd has it.
func (s *stage) tell(tx ledger.Tx, n ledger.News) error {
	return s.out.Add(tx.(office.Tx), string(n.Type), n.At, n.Data)
}

// deliver runs the outbox until the test ends or stop is called.
func (s *stage) deliver() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.out.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *stage) deliveries(query string) (page DeliveryPage) {
	s.t.Helper()
	status, body := s.read("/v1/deliveries"+query, readKey)
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 {
		s.t.Fatalf("%d %s: %v", status, body, err)
	}
	return page
}

// settled waits until the first delivery of a list is, whatever came of it.
func (s *stage) settled(query string) DeliveryPage {
	s.t.Helper()
	for {
		page := s.deliveries(query)
		if len(page.Deliveries) > 0 && page.Deliveries[0].State != outbox.Pending {
			return page
		}
	}
}

// TestAConflictIsToldToTheDesk: the message has what GET gives, and the list tells
// how it stands.
func TestAConflictIsToldToTheDesk(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.admitted("un", "North 2", 1, ticketID(1))
	s.admitted("us", "South", 1, ticketID(1))
	if page := s.deliveries("?state=pending"); len(page.Deliveries) != 1 || page.Deliveries[0].Type != "conflict.announced" || page.Deliveries[0].Attempts != 0 {
		t.Fatalf("waiting: %+v", page)
	}
	stop := s.deliver()
	m := <-s.desk.got
	page := s.settled("")
	stop()
	if m.err != nil {
		t.Errorf("the desk cannot take what it got: %v", m.err)
	}
	var told struct {
		Type, Timestamp string
		Data            ledger.Conflict
	}
	if err := json.Unmarshal([]byte(m.body), &told); err != nil {
		t.Fatal(err)
	}
	_, body := s.read("/v1/conflicts/"+told.Data.ID, readKey)
	want, err := json.Marshal(told.Data)
	if err != nil || strings.TrimSpace(body) != string(want) {
		t.Errorf("told %s, GET gives %s, %v", want, body, err)
	}
	if page.Deliveries[0].State != outbox.Delivered || page.Deliveries[0].ID != m.id || page.Deliveries[0].Status != 204 {
		t.Errorf("listed as %+v", page)
	}
	if rest := s.deliveries("?after=" + page.Next); len(rest.Deliveries) != 0 {
		t.Errorf("a second page: %+v", rest)
	}
	if status, _ := s.read("/v1/deliveries?after=zz", readKey); status != 400 {
		t.Errorf("no cursor: %d", status)
	}
	for _, query := range []string{"?state=lost", "?endpoint=nobody"} {
		if status, _ := s.read("/v1/deliveries"+query, readKey); status != 400 {
			t.Errorf("%s: %d", query, status)
		}
	}
}

// TestWhatWasGivenUpIsTakenUpAgain by a signed request.
func TestWhatWasGivenUpIsTakenUpAgain(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.desk.answer(http.StatusGone)
	s.admitted("un", "North 2", 1, ticketID(1))
	s.admitted("us", "South", 1, ticketID(1))
	stop := s.deliver()
	first := <-s.desk.got
	page := s.settled("?state=given_up&endpoint=desk")
	stop()
	if page.Deliveries[0].Status != 410 || page.Deliveries[0].Error == "" {
		t.Fatalf("given up: %+v", page)
	}
	_, metrics := s.read("/metrics", readKey)
	if want := `admitone_deliveries_total{endpoint="desk",outcome="given_up"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s", want)
	}
	s.desk.answer(200)
	path := "/v1/deliveries/desk/" + first.id + "/retry"
	if status, body := s.send(s.request(path, "", testKey(1), s.Now(), NewNonce())); status != 200 || !strings.Contains(body, `"state":"pending"`) {
		t.Fatalf("taken up again: %d %s", status, body)
	}
	s.deliver()
	if again := <-s.desk.got; again.id != first.id || again.body != first.body {
		t.Errorf("sent %+v, first %+v", again, first)
	}
	for name, r := range map[string]*http.Request{
		"not given up": s.request(path, "", testKey(1), s.Now(), NewNonce()),
		"unknown":      s.request("/v1/deliveries/desk/none/retry", "", testKey(1), s.Now(), NewNonce()),
	} {
		if status, body := s.send(r); status != 404 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}
