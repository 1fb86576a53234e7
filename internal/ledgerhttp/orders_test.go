package ledgerhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// TestTheEssaysExercise: a retry gets the first answer's bytes, another amount under
// the key is refused and changes nothing.
func TestTheEssaysExercise(t *testing.T) {
	s := newStage(t)
	s.prepare()
	sold, first := s.sell("pay-order-8912", fourTickets)
	if len(sold.Tickets) != 4 || sold.Charge.Amount != 4900 || sold.Charge.Currency != "EUR" || sold.Charge.Invoice != "inv_9f3c2a" ||
		sold.Event != "gala" || first.header.Get("Location") != "/v1/orders/"+sold.Order || first.replayed {
		t.Errorf("first: %v %s", first.header, first.body)
	}
	for _, tk := range sold.Tickets {
		u, err := ticket.Inspect(tk.Token)
		if err != nil || u.Ticket.ID != tk.ID || !u.SignedBy(ticket.NewSigner(testKey(5)).Public()) {
			t.Errorf("ticket %+v: %v", tk, err)
		}
	}
	again := s.post("/v1/orders", orderKey, "pay-order-8912", fourTickets)
	s1, h1, b1 := first.kept()
	s2, h2, b2 := again.kept()
	if s1 != s2 || h1 != h2 || b1 != b2 || !again.replayed {
		t.Errorf("the retry got %d %s %s, the first %d %s %s", s2, h2, b2, s1, h1, b1)
	}
	other := s.post("/v1/orders", orderKey, "pay-order-8912", strings.Replace(fourTickets, "4900", "9900", 1))
	if other.status != 422 || !strings.Contains(other.body, "idempotency key reused with a different request body") || !strings.Contains(other.body, string(keyReused)) || other.replayed {
		t.Errorf("another amount: %d %s", other.status, other.body)
	}
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

// TestWhatIsTheSameRequest: spelling is nothing, content is everything, and a key is
// its caller's and its operation's own.
func TestWhatIsTheSameRequest(t *testing.T) {
	s := newStage(t)
	s.prepare()
	sold, _ := s.sell(`"k"`, fourTickets)
	for name, c := range map[string]struct {
		path, key, field, body string
		status                 int
		replayed               bool
	}{
		"bare key":        {"/v1/orders", orderKey, `k`, fourTickets, 201, true},
		"other spelling":  {"/v1/orders", orderKey, `"k"`, "\n{ \"invoice\": \"inv_9\\u0066\\u0033c2a\",\"currency\":\"EUR\" ,\"amount\":4900,\"tickets\":4}\n", 201, true},
		"another number":  {"/v1/orders", orderKey, `"k"`, strings.Replace(fourTickets, "4900", "4901", 1), 422, false},
		"a field more":    {"/v1/orders", orderKey, `"k"`, strings.Replace(fourTickets, "{", `{"payment":"cash",`, 1), 422, false},
		"a field less":    {"/v1/orders", orderKey, `"k"`, `{"tickets":4,"amount":4900,"currency":"EUR"}`, 422, false},
		"a field twice":   {"/v1/orders", orderKey, `"k"`, strings.Replace(fourTickets, "{", `{"tickets":4,`, 1), 400, false},
		"another query":   {"/v1/orders?x=1", orderKey, `"k"`, fourTickets, 201, true},
		"another key":     {"/v1/orders", orderKey, `"K"`, fourTickets, 201, false},
		"key with spaces": {"/v1/orders", orderKey, `"k k"`, fourTickets, 201, false},
		"as a refund":     {"/v1/orders/" + sold.Order + "/refund", orderKey, `"k"`, `{}`, 201, false},
	} {
		if r := s.post(c.path, c.key, c.field, c.body); r.status != c.status || r.replayed != c.replayed {
			t.Errorf("%s: %d, replayed %t, want %d, %t: %s", name, r.status, r.replayed, c.status, c.replayed, r.body)
		}
	}
	if n := s.count(); n != 3 {
		t.Errorf("%d orders, want 3", n)
	}
}

// TestKeysThatAreNone: a problem says so, and nothing is done.
func TestKeysThatAreNone(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for name, c := range map[string]struct {
		field string
		kind  kind
	}{
		"none":           {"", noKey},
		"empty string":   {`""`, badRequest},
		"too long":       {strings.Repeat("k", 256), badRequest},
		"long string":    {`"` + strings.Repeat("k", 256) + `"`, badRequest},
		"two words":      {"a b", badRequest},
		"two strings":    {`"a", "b"`, badRequest},
		"half a string":  {`"a`, badRequest},
		"parameters":     {`"a";b=1`, badRequest},
		"a number in it": {`"a"1`, badRequest},
		"umlaut":         {"k\u00e4y", badRequest},
	} {
		r := s.post("/v1/orders", orderKey, c.field, fourTickets)
		if r.status != 400 || !strings.Contains(r.body, problemBase+string(c.kind)+`"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	r, err := http.NewRequest("POST", s.url+"/v1/orders", strings.NewReader(fourTickets))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+orderKey)
	r.Header[keyField] = []string{"a", "a"}
	if got := s.roundTrip(r); got.status != 400 {
		t.Errorf("two headers: %d %s", got.status, got.body)
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d orders, want 0", n)
	}
	s.sell(strings.Repeat("k", 255), fourTickets)
}

// TestRefusedOrdersAreForgotten: a problem names the field, and the very key works
// for the request that is right.
func TestRefusedOrdersAreForgotten(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for name, c := range map[string]struct {
		key, body string
		status    int
		field     string
	}{
		"no key":        {"", fourTickets, 401, ""},
		"key for reads": {readKey, fourTickets, 403, ""},
		"no JSON":       {orderKey, "four tickets", 400, ""},
		"list":          {orderKey, "[]", 400, ""},
		"nothing":       {orderKey, "", 400, ""},
		"unknown field": {orderKey, `{"seats":4}`, 400, "seats"},
		"wrong type":    {orderKey, `{"tickets":"4"}`, 400, "tickets"},
		"fraction":      {orderKey, `{"tickets":4,"amount":49.00,"currency":"EUR"}`, 400, "amount"},
		"no tickets":    {orderKey, `{"amount":4900,"currency":"EUR"}`, 422, "tickets"},
		"no amount":     {orderKey, `{"tickets":4,"currency":"EUR"}`, 422, "amount"},
		"no currency":   {orderKey, `{"tickets":4,"amount":4900}`, 422, "currency"},
		"unknown event": {orderKey, strings.Replace(fourTickets, "{", `{"event":"x",`, 1), 422, "event"},
		"deep":          {orderKey, strings.Repeat("[", 100) + strings.Repeat("]", 100), 400, "[0]"},
		"too large":     {orderKey, `{"invoice":"` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
	} {
		r := s.post("/v1/orders", c.key, "k", c.body)
		var p Problem
		if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.status != c.status || p.Status != c.status || !strings.HasSuffix(p.Field, c.field) || (c.field == "") != (p.Field == "") ||
			r.header.Get("Content-Type") != problemType {
			t.Errorf("%s: %d %s, want %d about %q", name, r.status, r.body, c.status, c.field)
		}
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d orders, want 0", n)
	}
	s.sell("k", fourTickets)
}

// TestNothingIsOn: without a programme nothing can be sold, and that is not stored.
func TestNothingIsOn(t *testing.T) {
	s := newStage(t)
	if r := s.post("/v1/orders", orderKey, "k", fourTickets); r.status != 409 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.prepare()
	s.sell("k", fourTickets)
}

// TestTwoAtOnce: fifty requests with one key make one order, and all get the same
// bytes.
func TestTwoAtOnce(t *testing.T) {
	s := newStage(t)
	s.prepare()
	const callers = 50
	replies := make([]reply, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { replies[i] = s.post("/v1/orders", orderKey, "k", fourTickets) })
	}
	wg.Wait()
	firsts := 0
	for _, r := range replies {
		if !r.replayed {
			firsts++
		}
		s1, h1, b1 := replies[0].kept()
		if s2, h2, b2 := r.kept(); s1 != s2 || h1 != h2 || b1 != b2 || s2 != 201 {
			t.Fatalf("one got %d %s %s, another %d %s %s", s1, h1, b1, s2, h2, b2)
		}
	}
	if firsts != 1 || s.count() != 1 {
		t.Errorf("%d first answers, %d orders", firsts, s.count())
	}
}

// TestAfterItsWindowTheKeyIsNew: and until then it is not.
func TestAfterItsWindowTheKeyIsNew(t *testing.T) {
	s := newStage(t)
	s.prepare()
	first, _ := s.sell("k", fourTickets)
	s.pass(24*time.Hour - time.Second) // the event is over by then
	if again, r := s.sell("k", fourTickets); again.Order != first.Order || !r.replayed {
		t.Errorf("within the window: %s, replayed %t", again.Order, r.replayed)
	}
	p := programme()
	p.Events[0].Close = p.Events[0].Close.Add(240 * time.Hour)
	if _, err := s.client().PushProgramme(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	if later, r := s.sell("k", fourTickets); later.Order == first.Order || r.replayed {
		t.Errorf("after the window: %s, replayed %t", later.Order, r.replayed)
	}
}

// TestPolicyIsData: an endpoint that refuses a repeat says when the first one was
// done, in the status of its row.
func TestPolicyIsData(t *testing.T) {
	for status, want := range map[int]int{0: 409, 409: 409, 200: 200} {
		s := newStage(t)
		s.prepare()
		s.box.policies[EndpointOrders] = Policy{seen.Policy{Endpoint: EndpointOrders, OnRepeat: seen.Refuse, Remember: time.Minute}, status}
		s.sell("k", fourTickets)
		at := stamp(s.Now())
		s.pass(time.Second)
		r := s.post("/v1/orders", orderKey, "k", fourTickets)
		if r.status != want || !strings.Contains(r.body, `"first_seen":"`+at+`"`) || r.replayed {
			t.Errorf("%d: %d %s", status, r.status, r.body)
		}
		s.pass(time.Minute)
		s.sell("k", fourTickets)
	}
}

// TestCards: a decline is stored, a failure is not, and one that is silent is told
// by 409 to every caller.
func TestCards(t *testing.T) {
	s := newStage(t)
	s.prepare()
	const byCard = `{"tickets":1,"amount":1225,"currency":"EUR","payment":"card"}`
	sold, _ := s.sell("approved", byCard)
	if sold.Charge.Reference != "pay_1" || sold.Charge.Payment != office.Card {
		t.Errorf("charge: %+v", sold.Charge)
	}
	s.box.pay = func(office.Transfer) (office.Moved, error) { return office.Moved{Declined: "no money"}, nil }
	first := s.post("/v1/orders", orderKey, "declined", byCard)
	again := s.post("/v1/orders", orderKey, "declined", byCard)
	if first.status != 402 || first.header.Get("Content-Type") != problemType || !strings.Contains(first.body, "no money") || again.body != first.body || !again.replayed {
		t.Errorf("declined: %d %s, again %d %s", first.status, first.body, again.status, again.body)
	}
	s.box.pay = func(office.Transfer) (office.Moved, error) { return office.Moved{}, office.ErrNotMoved }
	if r := s.post("/v1/orders", orderKey, "failed", byCard); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("failed: %d %v %s", r.status, r.header, r.body)
	}
	s.box.pay = func(office.Transfer) (office.Moved, error) { return office.Moved{}, errors.New("no answer") }
	if r := s.post("/v1/orders", orderKey, "silent", byCard); r.status != 409 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, string(inProgress)) {
		t.Errorf("silent: %d %v %s", r.status, r.header, r.body)
	}
	if n := s.count(); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

// TestRefundRevokes: money and tickets go together, a used one only by force.
func TestRefundRevokes(t *testing.T) {
	s := newStage(t)
	s.prepare()
	sold, _ := s.sell("k", fourTickets)
	s.admitted("un", "North 2", 1, sold.Tickets[3].ID)
	path := "/v1/orders/" + sold.Order + "/refund"
	if r := s.post(path, orderKey, "r1", `{}`); r.status != 409 || !strings.Contains(r.body, `"field":"tickets"`) {
		t.Errorf("a used ticket: %d %s", r.status, r.body)
	}
	one := fmt.Sprintf(`{"tickets":["%s"],"note":"ill"}`, sold.Tickets[0].ID)
	first := s.post(path, orderKey, "r1", one)
	if first.status != 201 || !strings.Contains(first.body, `"amount":1225`) {
		t.Fatalf("refund: %d %s", first.status, first.body)
	}
	if r := s.post(path, orderKey, "r1", one); r.body != first.body || !r.replayed {
		t.Errorf("a retry: %d %s", r.status, r.body)
	}
	if r := s.post(path, orderKey, "r2", one); r.status != 409 {
		t.Errorf("the same ticket again: %d %s", r.status, r.body)
	}
	other, _ := s.sell("other", fourTickets)
	if r := s.post("/v1/orders/"+other.Order+"/refund", orderKey, "r1", one); r.status != 422 {
		t.Errorf("the key of another order's refund: %d %s", r.status, r.body)
	}
	if r := s.post("/v1/orders/ord_x/refund", orderKey, "r3", `{}`); r.status != 404 {
		t.Errorf("no order: %d %s", r.status, r.body)
	}
	s.pass(time.Second) // refunds are listed by their times
	if r := s.post(path, orderKey, "r4", `{"force":true}`); r.status != 201 || !strings.Contains(r.body, `"amount":3675`) {
		t.Errorf("by force: %d %s", r.status, r.body)
	}
	for _, tk := range sold.Tickets {
		if r, err := s.client().Ticket(t.Context(), ticket.FormatA1, tk.ID); err != nil || !r.Revoked {
			t.Errorf("ticket %s: %+v, %v", tk.ID, r, err)
		}
	}
	status, body := s.read("/v1/orders/"+sold.Order, orderKey)
	var o Order
	if p := strict([]byte(body), &o); status != 200 || p != nil || o.Left != 0 || len(o.Refunds) != 2 || o.Tickets[0].Refund != o.Refunds[0].ID {
		t.Errorf("order: %d %s", status, body)
	}
	if status, body := s.read("/v1/orders.csv", orderKey); status != 200 || strings.Count(body, "\n") != 5 || !strings.Contains(body, ",refund,") || !strings.Contains(body, ",-1225,EUR,") {
		t.Errorf("export: %d %s", status, body)
	}
}

// TestOrdersInPages: all orders once, oldest first; tokens only with the order's own
// page, and nothing of it for readers.
func TestOrdersInPages(t *testing.T) {
	s := newStage(t)
	s.prepare()
	var want, got []string
	for i := range 5 {
		o, _ := s.sell(fmt.Sprint(i), fourTickets)
		want = append(want, o.Order)
		s.pass(time.Second)
	}
	for after := ""; ; {
		status, body := s.read("/v1/orders?limit=2&after="+after, orderKey)
		var p OrderPage
		if prob := strict([]byte(body), &p); status != 200 || prob != nil || strings.Contains(body, "token") {
			t.Fatalf("page: %d %s", status, body)
		}
		for _, o := range p.Orders {
			got = append(got, o.Order)
		}
		if len(p.Orders) < 2 {
			break
		}
		after = p.Next
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("orders %v, want %v", got, want)
	}
	for path, want := range map[string]int{"/v1/orders": 403, "/v1/orders.csv": 403, "/v1/orders/" + want[0]: 403} {
		if status, body := s.read(path, readKey); status != want {
			t.Errorf("%s with a key for reads: %d %s", path, status, body)
		}
	}
	for path, want := range map[string]int{"/v1/orders?after=x": 400, "/v1/orders?limit=0": 400, "/v1/orders/ord_x": 404} {
		if status, body := s.read(path, orderKey); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
