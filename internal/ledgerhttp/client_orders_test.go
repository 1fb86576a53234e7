package ledgerhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/office"
)

// script is a transport that answers by a list, and remembers what it was sent.
type script struct {
	answers []func() (*http.Response, error)
	keys    []string
	bodies  []string
	at      []time.Time
}

// RoundTrip is http.RoundTripper.RoundTrip.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.keys, s.bodies, s.at = append(s.keys, r.Header.Get(keyField)), append(s.bodies, string(b)), append(s.at, time.Now())
	return s.answers[min(len(s.keys), len(s.answers))-1]()
}

func says(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func tells(k kind, header ...string) func() (*http.Response, error) {
	status, _ := k.status()
	return says(status, fmt.Sprintf(`{"type":"%s%s","status":%d}`, problemBase, k, status), header...)
}

func breaks() (*http.Response, error) { return nil, errors.New("connection reset") }

// half is an answer whose connection ends early.
func half() (*http.Response, error) {
	r, err := says(201, "")()
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"order":`), broken{}))
	return r, err
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// try orders by a script and gives how often it was asked.
func try(t *testing.T, answers ...func() (*http.Response, error)) (s *script, sold Sold, replayed bool, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = &script{answers: answers}
		c, cerr := NewClient("http://ledger", "k", nil)
		if cerr != nil {
			t.Fatal(cerr)
		}
		c.HTTP = &http.Client{Transport: s}
		amount := int64(4900)
		sold, replayed, err = c.Order(t.Context(), `a"b`, office.Sale{Tickets: 4, Amount: &amount, Currency: "EUR"})
	})
	for i := range s.keys {
		if s.keys[i] != `"a\"b"` || s.bodies[i] != s.bodies[0] {
			t.Errorf("try %d sent the key %s and %s", i+1, s.keys[i], s.bodies[i])
		}
	}
	return s, sold, replayed, err
}

// TestClientRetries: while nobody knows, the same bytes under the same key, later
// and later; what is final is final.
func TestClientRetries(t *testing.T) {
	ok := says(201, `{"order":"ord_1"}`, replayedField, "true")
	for name, c := range map[string]struct {
		answers []func() (*http.Response, error)
		asked   int
		good    bool
	}{
		"at once":               {[]func() (*http.Response, error){ok}, 1, true},
		"a broken line":         {[]func() (*http.Response, error){breaks, half, ok}, 3, true},
		"in progress":           {[]func() (*http.Response, error){tells(inProgress, "Retry-After", "1"), tells(inProgress), ok}, 3, true},
		"unavailable":           {[]func() (*http.Response, error){tells(unavailable), ok}, 2, true},
		"a fault":               {[]func() (*http.Response, error){tells(internal), ok}, 2, true},
		"too often":             {[]func() (*http.Response, error){tells(tooOften, "Retry-After", "3"), ok}, 2, true},
		"a proxy without it":    {[]func() (*http.Response, error){says(502, "<html>"), ok}, 2, true},
		"another request's key": {[]func() (*http.Response, error){tells(keyReused), ok}, 1, false},
		"wrong content":         {[]func() (*http.Response, error){tells(invalid), ok}, 1, false},
		"not as things stand":   {[]func() (*http.Response, error){tells(notNow), ok}, 1, false},
		"declined":              {[]func() (*http.Response, error){tells(declined), ok}, 1, false},
		"another server":        {[]func() (*http.Response, error){says(404, "<html>"), ok}, 1, false},
		"never":                 {[]func() (*http.Response, error){breaks}, maxTries, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, sold, replayed, err := try(t, c.answers...)
			if (err == nil) != c.good || len(s.keys) != c.asked || c.good && (sold.Order != "ord_1" || !replayed) {
				t.Errorf("asked %d times, got %+v, %t, %v", len(s.keys), sold, replayed, err)
			}
		})
	}
}

// TestClientIsPatient: it waits longer each time, as long as the ledger says at the
// least, and different clients differently.
func TestClientIsPatient(t *testing.T) {
	s, _, _, _ := try(t, breaks)
	last := time.Duration(0)
	for i := 1; i < len(s.at); i++ {
		d := s.at[i].Sub(s.at[i-1])
		if full := min(firstWait<<(i-1), mostWait); d < full/2 || d > full || i > 2 && d < last/2 {
			t.Errorf("wait %d was %v", i, d)
		}
		last = d
	}
	s, _, _, _ = try(t, tells(tooOften, "Retry-After", "7"), says(201, `{}`))
	if d := s.at[1].Sub(s.at[0]); d < 7*time.Second {
		t.Errorf("waited %v where the ledger said 7 s", d)
	}
	waits := map[time.Duration]bool{}
	for range 20 {
		d, _ := retry(errors.New("x"), 3)
		waits[d] = true
	}
	if len(waits) < 10 {
		t.Errorf("20 clients wait %d different times", len(waits))
	}
}

// TestClientStopsWhenToldTo: a caller that gives up is not kept waiting.
func TestClientStopsWhenToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient("http://ledger", "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &script{answers: []func() (*http.Response, error){breaks}}
		c.HTTP = &http.Client{Transport: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, _, err := c.Order(ctx, "k", office.Sale{}); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestClientSells: the client and the server have one language.
func TestClientSells(t *testing.T) {
	s := newStage(t)
	s.prepare()
	c, err := NewClient(s.url, orderKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	amount := int64(2450)
	b := office.Sale{Tickets: 2, Amount: &amount, Currency: "EUR"}
	key := NewIdempotencyKey()
	sold, replayed, err := c.Order(t.Context(), key, b)
	if err != nil || replayed || len(sold.Tickets) != 2 {
		t.Fatalf("%+v, %t, %v", sold, replayed, err)
	}
	if again, replayed, err := c.Order(t.Context(), key, b); err != nil || !replayed || again.Order != sold.Order {
		t.Errorf("again: %+v, %t, %v", again, replayed, err)
	}
	r, _, err := c.Refund(t.Context(), NewIdempotencyKey(), sold.Order, office.Return{})
	if err != nil || r.Amount != 2450 {
		t.Errorf("refund: %+v, %v", r, err)
	}
	o, err := c.OrderOf(t.Context(), sold.Order)
	if err != nil || o.Left != 0 || len(o.Tickets) != 2 {
		t.Errorf("order: %+v, %v", o, err)
	}
	n := 0
	for o, err := range c.AllOrders(t.Context()) {
		if n++; err != nil || o.Order != sold.Order {
			t.Errorf("list: %+v, %v", o, err)
		}
	}
	var export bytes.Buffer
	if err := c.OrdersCSV(t.Context(), &export); err != nil || n != 1 || strings.Count(export.String(), "\n") != 3 {
		t.Errorf("%d orders, export %q, %v", n, export.String(), err)
	}
}
