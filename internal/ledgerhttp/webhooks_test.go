package ledgerhttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/seen"
	"admitone/internal/shop"
	"admitone/internal/webhook"
)

// The sources of the stage: one whose senders renew the timestamp, one whose
// senders keep it (specification, section 7).
const (
	renewing = "web"
	keeping  = "till"
)

func hookSecret(t testing.TB, n byte) webhook.Secret {
	t.Helper()
	k, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rotating is the secrets of the stage's sources: the test may change them.
type rotating struct {
	mu   sync.Mutex
	list []webhook.Secret
}

func (r *rotating) get() []webhook.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

func (r *rotating) set(list ...webhook.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = list
}

func hookSources(secrets *rotating) []Source {
	row := func(source string, remember time.Duration, status int) Policy {
		return Policy{Policy: seen.Policy{Endpoint: "webhook/" + source, OnRepeat: seen.Refuse, Remember: remember}, RepeatStatus: status}
	}
	return []Source{
		{Name: renewing, Secrets: secrets.get, Policy: row(renewing, 7*24*time.Hour, 200)},
		{Name: keeping, Secrets: secrets.get, Kept: true, Policy: row(keeping, 0, 409)},
	}
}

const paidOrder = `{"type":"order.paid","timestamp":"2027-01-15T08:00:00Z","data":{"order":"S-1","count":2,"amount":3000,"currency":"EUR"}}`

// hook makes a webhook as a sender sends it, to be changed by the test.
func (s *stage) hook(source, id string, at time.Time, body string, secrets ...webhook.Secret) *http.Request {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+"/v1/webhooks/"+source, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if len(secrets) == 0 {
		secrets = []webhook.Secret{hookSecret(s.t, 1)}
	}
	if err := webhook.Sign(r.Header, id, at, []byte(body), secrets); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stage) hooked(r *http.Request) (int, WebhookReply, Problem) {
	s.t.Helper()
	status, body := s.send(r)
	var v WebhookReply
	var p Problem
	if status == 200 {
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			s.t.Fatalf("%d %s: %v", status, body, err)
		}
	} else {
		p = problemIn(s.t, status, body)
	}
	return status, v, p
}

func (s *stage) orderCount() int {
	s.t.Helper()
	_, body := s.read("/v1/orders", orderKey)
	var page OrderPage
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		s.t.Fatalf("%s: %v", body, err)
	}
	return len(page.Orders)
}

// TestAnOrderIsPaidInTheShop: the whole way. The answer has no tokens; they are
// read by the shop's own id of the order, and a refund voids them at the gates.
func TestAnOrderIsPaidInTheShop(t *testing.T) {
	s := newStage(t)
	s.prepare()
	status, v, p := s.hooked(s.hook(renewing, "msg_1", s.Now(), paidOrder))
	if status != 200 || v.Status != shop.Accepted || len(v.Tickets) != 2 || v.Order == "" {
		t.Fatalf("paid: %d %+v %+v", status, v, p)
	}
	status, body := s.read("/v1/webhooks/web/orders/S-1", orderKey)
	var o Order
	if err := json.Unmarshal([]byte(body), &o); err != nil || status != 200 || o.Order != v.Order || len(o.Tickets) != 2 || o.Tickets[0].Token == "" ||
		o.Charge.Amount != 3000 || o.Charge.Payment != "shop" || o.Charge.Invoice != "S-1" {
		t.Errorf("the shop's order: %d %s, %v", status, body, err)
	}
	refund := `{"type":"order.refunded","data":{"order":"S-1"}}`
	if status, v, p := s.hooked(s.hook(renewing, "msg_2", s.Now(), refund)); status != 200 || len(v.Tickets) != 2 {
		t.Errorf("refunded: %d %+v %+v", status, v, p)
	}
	for _, id := range v.Tickets {
		if !s.revoked(id) {
			t.Errorf("ticket %s is still good", id)
		}
	}
	if status, v, _ := s.hooked(s.hook(renewing, "msg_3", s.Now(), `{"type":"customer.created","data":{}}`)); status != 200 || v.Status != shop.Ignored {
		t.Errorf("an unknown type: %d %+v", status, v)
	}
	for _, path := range []string{"/v1/webhooks/web/orders/S-2", "/v1/webhooks/none/orders/S-1", "/v1/webhooks/till/orders/S-1"} {
		if status, _ := s.read(path, orderKey); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := s.read("/v1/webhooks/web/orders/S-1", readKey); status != 403 {
		t.Errorf("tokens with a key of the scope read: %d", status)
	}
	_, metrics := s.read("/metrics", readKey)
	for _, want := range []string{
		`admitone_webhooks_total{outcome="accepted",source="web"} 2`, `admitone_webhooks_total{outcome="ignored",source="web"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestARepeatIsAnsweredByItsRow: both kinds of rows, twice, late, and past what
// they remember.
func TestARepeatIsAnsweredByItsRow(t *testing.T) {
	s := newStage(t)
	s.prepare()
	first := s.Now()
	for _, source := range []string{renewing, keeping} {
		if status, v, p := s.hooked(s.hook(source, "msg_1", first, paidOrder)); status != 200 {
			t.Fatalf("%s: %d %+v %+v", source, status, v, p)
		}
	}
	again := func(source string, signed time.Time) (int, WebhookReply, Problem) {
		t.Helper()
		status, v, p := s.hooked(s.hook(source, "msg_1", signed, paidOrder))
		if s.orderCount() != 2 {
			t.Fatalf("%s: a repeat was executed", source)
		}
		return status, v, p
	}
	s.pass(time.Minute)
	if status, v, _ := again(renewing, first); status != 200 || v.Status != shop.Duplicate || v.FirstSeen != stamp(first) {
		t.Errorf("%s, twice: %d %+v", renewing, status, v)
	}
	if status, _, p := again(keeping, first); status != 409 || p.Type != problemBase+"repeated" || p.FirstSeen != stamp(first) {
		t.Errorf("%s, twice: %d %+v", keeping, status, p)
	}
	s.pass(59 * time.Minute)
	for _, source := range []string{renewing, keeping} {
		if status, _, p := again(source, first); status != 401 || p.Type != problemBase+"stale" {
			t.Errorf("%s, the same bytes an hour later: %d %+v", source, status, p)
		}
	}
	if status, v, _ := again(renewing, s.Now()); status != 200 || v.Status != shop.Duplicate || v.FirstSeen != stamp(first) {
		t.Errorf("%s, signed anew an hour later: %d %+v", renewing, status, v)
	}
	s.pass(6*24*time.Hour + 22*time.Hour)
	if status, v, _ := again(renewing, s.Now()); status != 200 || v.Status != shop.Duplicate {
		t.Errorf("%s, within its 7 days: %d %+v", renewing, status, v)
	}
	s.pass(2 * time.Hour)
	if status, v, _ := again(renewing, s.Now()); status != 200 || v.Status != shop.Accepted || len(v.Tickets) != 2 {
		t.Errorf("%s, past its 7 days: %d %+v, want the order that the shop's id has", renewing, status, v)
	}
}

// TestARepeatOfASenderAheadOfTime: an id is refused for as long as its own
// timestamp is good, which is longer than the window from its arrival.
func TestARepeatOfASenderAheadOfTime(t *testing.T) {
	s := newStage(t)
	s.prepare()
	ahead := s.Now().Add(webhook.Window - time.Second)
	want := 200
	for passed := time.Duration(0); passed < 2*webhook.Window-time.Second; passed += 30 * time.Second {
		if status, _, p := s.hooked(s.hook(keeping, "msg_1", ahead, paidOrder)); status != want {
			t.Errorf("%s after: %d %+v, want %d", passed, status, p, want)
		}
		want = 409
		s.pass(30 * time.Second)
	}
	if status, _, _ := s.hooked(s.hook(keeping, "msg_1", ahead, paidOrder)); status != 401 {
		t.Errorf("past the window: %d", status)
	}
	if s.orderCount() != 1 {
		t.Errorf("%d orders", s.orderCount())
	}
}

// TestAForgedWebhookIsRefused: nothing of it is stored, and nothing of the secret or
// of a good signature is told.
func TestAForgedWebhookIsRefused(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.secrets.set(hookSecret(t, 1), hookSecret(t, 2))
	before := ledgertest.Dump(t, s.mem)
	now := s.Now()
	good := s.hook(renewing, "msg_1", now, paidOrder).Header.Get("webhook-signature")
	with := func(change func(r *http.Request)) *http.Request {
		r := s.hook(renewing, "msg_1", now, paidOrder)
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		r      *http.Request
		status int
		kind   kind
	}{
		"unknown secret": {s.hook(renewing, "msg_1", now, paidOrder, hookSecret(t, 3)), 401, badSignature},
		"a changed byte": {with(func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(paidOrder, "3000", "3001", 1)))
		}), 401, badSignature},
		"another id":     {with(func(r *http.Request) { r.Header.Set("webhook-id", "msg_2") }), 401, badSignature},
		"another time":   {with(func(r *http.Request) { r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()+1)) }), 401, badSignature},
		"no signature":   {with(func(r *http.Request) { r.Header.Del("webhook-signature") }), 401, badSignature},
		"no id":          {with(func(r *http.Request) { r.Header.Del("webhook-id") }), 401, badSignature},
		"two ids":        {with(func(r *http.Request) { r.Header.Add("webhook-id", "msg_2") }), 401, badSignature},
		"late":           {s.hook(renewing, "msg_1", now.Add(-webhook.Window), paidOrder), 401, stale},
		"early":          {s.hook(renewing, "msg_1", now.Add(webhook.Window), paidOrder), 401, stale},
		"unknown source": {s.hook("nobody", "msg_1", now, paidOrder), 404, notFound},
		"no JSON type":   {with(func(r *http.Request) { r.Header.Set("Content-Type", "text/xml") }), 415, mediaType},
		"too large":      {s.hook(renewing, "msg_1", now, `{"type":"`+strings.Repeat("x", maxHook)+`"}`), 413, tooLarge},
		"no object":      {s.hook(renewing, "msg_1", now, `[]`), 400, badRequest},
		"other cut":      {with(func(r *http.Request) { *r = *s.cut(now) }), 400, badRequest},
		"no such event":  {s.hook(renewing, "msg_1", now, strings.Replace(paidOrder, `"currency"`, `"event":"ball","currency"`, 1)), 422, invalid},
	} {
		status, _, p := s.hooked(c.r)
		if status != c.status || p.Type != problemBase+string(c.kind) {
			t.Errorf("%s: %d %+v, want %d %s", name, status, p, c.status, c.kind)
		}
		if strings.Contains(p.Detail, good) || strings.Contains(p.Detail, "whsec") {
			t.Errorf("%s: the problem tells a secret: %s", name, p.Detail)
		}
	}
	if d := ledgertest.Diff(before, ledgertest.Dump(t, s.mem)); len(d) > 0 {
		t.Errorf("refused webhooks left %v", d)
	}
	if status, v, p := s.hooked(s.hook(renewing, "msg_1", now, paidOrder)); status != 200 || v.Status != shop.Accepted {
		t.Errorf("a refused webhook used up its id: %d %+v %+v", status, v, p)
	}
}

// cut is a captured webhook whose signed bytes are cut in another way: a part of
// the id becomes the time, and the time a part of the body.
func (s *stage) cut(now time.Time) *http.Request {
	whole := s.hook(renewing, fmt.Sprint("msg.", now.Unix()), now, paidOrder)
	r := s.hook(renewing, "msg", now, fmt.Sprint(now.Unix(), ".", paidOrder))
	r.Header.Set("webhook-signature", whole.Header.Get("webhook-signature"))
	return r
}

// TestSecretsAreReplaced: while both hold, either is good, and a sender may sign
// with both; one that is taken out ends at once.
func TestSecretsAreReplaced(t *testing.T) {
	s := newStage(t)
	s.prepare()
	old, next := hookSecret(t, 1), hookSecret(t, 2)
	n := 0
	try := func(want int, secrets ...webhook.Secret) {
		t.Helper()
		n++
		if status, _, p := s.hooked(s.hook(renewing, fmt.Sprint("msg_", n), s.Now(), paidOrder, secrets...)); status != want {
			t.Errorf("webhook %d: %d %+v, want %d", n, status, p, want)
		}
	}
	try(401, next)
	s.secrets.set(old, next)
	try(200, old)
	try(200, next)
	try(200, next, old)
	s.secrets.set(next)
	try(401, old)
	try(200, old, next)
	status, v, _ := s.hooked(s.hook(renewing, "msg_2", s.Now(), paidOrder, next)) // first signed with the old one
	if status != 200 || v.Status != shop.Duplicate {
		t.Errorf("the same id under another secret: %d %+v, want a duplicate", status, v)
	}
}

// TestIdsOfAnyCharacters: an id is bytes; no two of these are one.
func TestIdsOfAnyCharacters(t *testing.T) {
	s := newStage(t)
	s.prepare()
	ids := []string{"a", "A", "a.b", "a/b", "a%2Fb", "../a", `"a"`, "a,b", "ümläut", "u\u0308mlaut", "\xff", "a b", "a  b", "a\tb", strings.Repeat("x", webhook.MaxID), "' OR 1=1 --", "\u202e"}
	for i, id := range ids {
		body := fmt.Sprintf(`{"type":"order.paid","data":{"order":"S-%d","count":1,"amount":1,"currency":"EUR"}}`, i)
		if status, v, p := s.hooked(s.hook(renewing, id, s.Now(), body)); status != 200 || v.Status != shop.Accepted {
			t.Errorf("%q: %d %+v %+v", id, status, v, p)
		}
		if status, v, p := s.hooked(s.hook(renewing, id, s.Now(), body)); status != 200 || v.Status != shop.Duplicate {
			t.Errorf("%q again: %d %+v %+v", id, status, v, p)
		}
	}
	if s.orderCount() != len(ids) {
		t.Errorf("%d orders of %d ids", s.orderCount(), len(ids))
	}
	odd := `{"type":"order.paid","data":{"order":"S/ä 1","count":1,"amount":1,"currency":"EUR"}}`
	if status, _, p := s.hooked(s.hook(renewing, "odd", s.Now(), odd)); status != 200 {
		t.Errorf("an odd order: %d %+v", status, p)
	}
	if status, body := s.read("/v1/webhooks/web/orders/"+url.PathEscape("S/ä 1"), orderKey); status != 200 {
		t.Errorf("an odd order: %d %s", status, body)
	}
}

// TestManyCopiesOfAWebhook at once: one is executed.
func TestManyCopiesOfAWebhook(t *testing.T) {
	s := newStage(t)
	s.prepare()
	const copies = 24
	requests := make([]*http.Request, copies)
	for i := range requests {
		requests[i] = s.hook([]string{renewing, keeping}[i%2], "msg_1", s.Now(), paidOrder)
	}
	var wg sync.WaitGroup
	got := make(chan int, copies)
	for _, r := range requests {
		wg.Go(func() {
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				got <- 0
				return
			}
			resp.Body.Close()
			got <- resp.StatusCode
		})
	}
	wg.Wait()
	close(got)
	counts := map[int]int{}
	for status := range got {
		counts[status]++
	}
	// Two sources have two shops' orders.
	if counts[200] != copies/2+1 || counts[409] != copies/2-1 || s.orderCount() != 2 {
		t.Errorf("got %v and %d orders", counts, s.orderCount())
	}
}

// TestAWebhookWhoseCommitFails is neither executed nor confirmed, and may come
// again.
func TestAWebhookWhoseCommitFails(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.mem.FailNext(kv.FailLost)
	if status, _, p := s.hooked(s.hook(renewing, "msg_1", s.Now(), paidOrder)); status != 500 || !errors.Is(&p, problem(internal, "")) {
		t.Errorf("%d %+v", status, p)
	}
}
