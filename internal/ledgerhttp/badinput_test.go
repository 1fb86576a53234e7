package ledgerhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel/high/base"

	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/strictjson"
	"admitone/internal/webhook"
)

// operation is one of the document's, with what a test needs to call it.
type operation struct {
	method, path string
	security     string // bearer, signature, webhook or ""
	scope        string // of the bearer key
	body         *base.Schema
}

var scopeIn = regexp.MustCompile(`scope (\w+)$`)

// all gives every operation of the document, in order.
func (d *described) all() (out []operation) {
	for path, item := range d.model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			o := operation{method: strings.ToUpper(method), path: path, security: "bearer"}
			if op.Security != nil {
				o.security = ""
				for _, s := range op.Security {
					for name := range s.Requirements.FromOldest() {
						o.security = name
					}
				}
			}
			if m := scopeIn.FindStringSubmatch(op.Summary); m != nil {
				o.scope = m[1]
			}
			if op.RequestBody != nil {
				if media := op.RequestBody.Content.GetOrZero("application/json"); media != nil {
					o.body = media.Schema.Schema()
				}
			}
			out = append(out, o)
		}
	}
	return out
}

var pathValue = regexp.MustCompile(`\{\w+\}`)

// at fills the values of the path.
func (o operation) at(value string) string {
	return pathValue.ReplaceAllStringFunc(o.path, func(name string) string {
		switch name {
		case "{source}":
			return renewing
		case "{action}":
			return "swap"
		}
		return url.PathEscape(value)
	})
}

// call makes a request that is well authorised, whatever else it is.
func (s *stage) call(o operation, target, contentType string, body []byte) (*http.Request, error) {
	r, err := http.NewRequest(o.method, "http://ledger"+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "192.0.2.1:1"
	if o.method != http.MethodGet {
		r.Header.Set("Content-Type", contentType)
	}
	switch o.security {
	case "signature":
		err = Sign(r, body, testKey(1), s.Now(), NewNonce())
	case "webhook":
		err = webhook.Sign(r.Header, NewNonce(), s.Now(), body, []webhook.Secret{hookSecret(s.t, 1)})
	case "bearer":
		r.Header.Set("Authorization", "Bearer "+map[string]string{"read": readKey, "orders": orderKey, "claims": tentKey}[o.scope])
		r.Header.Set(keyField, NewNonce())
	}
	return r, err
}

// answered is what a handler made of a request, past the network.
func (s *stage) answered(r *http.Request) (*httptest.ResponseRecorder, Problem) {
	s.t.Helper()
	body := new(bytes.Buffer)
	if r.Body != nil {
		body.ReadFrom(r.Body)
		r.Body = http.NoBody
	}
	sent := body.Bytes()
	r.Body = readCloser{bytes.NewReader(sent), http.NoBody}
	rec := httptest.NewRecorder()
	s.server.Handler().ServeHTTP(rec, r)
	if text := describe(s.t).compare(r, sent, &recorder{status: rec.Code, body: *bytes.NewBuffer(rec.Body.Bytes()), ResponseWriter: rec}); text != "" {
		s.t.Errorf("%s %s answered %d, not as described: %s", r.Method, r.URL, rec.Code, text)
	}
	for _, secret := range []string{readKey, orderKey, tentKey, "whsec_", "goroutine "} {
		if strings.Contains(rec.Body.String(), secret) && !bytes.Contains(sent, []byte(secret)) && !strings.Contains(r.URL.String(), secret) {
			s.t.Errorf("%s %s told a secret: %s", r.Method, r.URL, rec.Body)
		}
	}
	if rec.Code < 400 {
		return rec, Problem{}
	}
	var p Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != rec.Code || rec.Header().Get("Content-Type") != problemType ||
		!strings.HasPrefix(p.Type, problemBase) || p.Title == "" || p.Detail == "" {
		s.t.Errorf("%s %s answered %d with %q: %v, want a problem", r.Method, r.URL, rec.Code, rec.Body, err)
	}
	return rec, p
}

// changed gives the keys of the store that a request changed, but for what a signed
// request that is refused leaves: its nonce, and its line in the audit log.
func (s *stage) changed(before map[string][]byte) []string {
	return slices.DeleteFunc(ledgertest.Diff(before, ledgertest.Dump(s.t, s.mem)), func(key string) bool {
		return strings.Contains(key, "nonce") || strings.Contains(key, "audit")
	})
}

// TestBadBodiesAreRefusedByEveryHandler: each names the field where it is about
// one, and leaves nothing.
func TestBadBodiesAreRefusedByEveryHandler(t *testing.T) {
	s := newStage(t)
	s.prepare()
	deep := strings.Repeat(`{"a":`, strictjson.MaxDepth+1) + "1" + strings.Repeat("}", strictjson.MaxDepth+1)
	const json = "application/json"
	for name, c := range map[string]struct {
		body, media string
		status      int
		field       string
	}{
		"nothing":       {"", json, 400, ""},
		"half":          {`{`, json, 400, ""},
		"a list":        {`[]`, json, 400, ""},
		"null":          {`null`, json, 400, ""},
		"a string":      {`"x"`, json, 400, ""},
		"two":           {`{}{}`, json, 400, ""},
		"unknown field": {`{"no_such_field":1}`, json, 400, "no_such_field"},
		"a field twice": {`{"no_such_field":1,"no_such_field":1}`, json, 400, "no_such_field"},
		"too deep":      {deep, json, 400, strings.TrimPrefix(strings.Repeat(".a", strictjson.MaxDepth), ".")},
		"no UTF-8":      {"{\"no_such_field\":\"\xff\"}", json, 400, ""},
		"half a rune":   {`{"no_such_field":"\ud800"}`, json, 400, ""},
		"too large":     {strings.Repeat(" ", maxBody+1), json, 413, ""},
		"XML":           {`<x/>`, "text/xml", 415, "Content-Type"},
		"no charset":    {`{}`, json + "; charset=latin1", 415, "Content-Type"},
		"no media type": {`{}`, ";;", 415, "Content-Type"},
	} {
		for _, o := range describe(t).all() {
			if o.body == nil || o.path == "/v1/codes/{event}" && c.status == 413 { // a list may be larger
				continue
			}
			if o.security == "webhook" && name == "unknown field" {
				c.field = "type" // what others add is passed over, and this is missing
			}
			before := ledgertest.Dump(t, s.mem)
			r, err := s.call(o, o.at("gala"), c.media, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if rec, p := s.answered(r); rec.Code != c.status || p.Field != c.field {
				t.Errorf("%s %s with %s: %d %+v, want %d and field %q", o.method, o.path, name, rec.Code, p, c.status, c.field)
			}
			if d := s.changed(before); len(d) > 0 {
				t.Errorf("%s %s with %s changed %v", o.method, o.path, name, d)
			}
		}
	}
}

// TestWrongTypesNameTheirFields: of every field of every body that is described.
func TestWrongTypesNameTheirFields(t *testing.T) {
	s := newStage(t)
	s.prepare()
	n := 0
	for _, o := range describe(t).all() {
		if o.body == nil {
			continue
		}
		schema, form, prefix := o.body, "{%q:%s}", ""
		if o.security == "webhook" {
			schema, form, prefix = o.body.Properties.GetOrZero("data").Schema(), `{"type":"order.refunded","data":{%q:%s}}`, "data."
		}
		for name, proxy := range schema.Properties.FromOldest() {
			wrong := `"x"`
			if p := proxy.Schema(); slices.Contains(p.Type, "string") || len(p.Enum) > 0 {
				wrong = `5`
			}
			before := ledgertest.Dump(t, s.mem)
			for _, value := range []string{wrong, `{"x":{}}`} {
				r, err := s.call(o, o.at("gala"), "application/json", fmt.Appendf(nil, form, name, value))
				if err != nil {
					t.Fatal(err)
				}
				if rec, p := s.answered(r); rec.Code != 400 || p.Field != prefix+name {
					t.Errorf("%s %s with %s of another type: %d %+v, want 400 and its name", o.method, o.path, name, rec.Code, p)
				}
				n++
			}
			if d := s.changed(before); len(d) > 0 {
				t.Errorf("%s %s with %s of another type changed %v", o.method, o.path, name, d)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d fields were tried", n)
	}
}

// TestWrongMethodsAndPaths on every path there is, and on some there are not.
func TestWrongMethodsAndPaths(t *testing.T) {
	s := newStage(t)
	before := ledgertest.Dump(t, s.mem)
	try := func(method, target string, want int) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest("GET", "http://ledger/", nil)
		path, query, _ := strings.Cut(target, "?")
		decoded, err := url.PathUnescape(path)
		if err != nil {
			t.Fatal(err)
		}
		r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery = method, decoded, path, query
		r.Header.Set("Authorization", "Bearer "+readKey)
		rec, p := s.answered(r)
		if rec.Code != want {
			t.Errorf("%s %s: %d %+v, want %d", method, target, rec.Code, p, want)
		}
		return rec
	}
	paths, err := s.server.paths()
	if err != nil {
		t.Fatal(err)
	}
	for path, m := range paths {
		target := operation{path: strings.TrimSuffix(path, "{$}")}.at("x")
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if _, ok := m[method]; !ok {
				if rec := try(method, target, 405); rec.Header().Get("Allow") == "" {
					t.Errorf("%s %s: no Allow", method, target)
				}
			}
		}
	}
	for _, target := range []string{"//", "/v1", "/v1/", "/v1//stats", "/v1/stats/", "/v1/./stats", "/v1/../v1/stats", "/v2/stats", "/V1/stats", "/v1/%2e%2e/stats",
		"/%00", "/v1/stats%0d%0aX: y", "/v1/tickets/", "/v1/orders/a/b"} {
		try("GET", target, 404)
	}
	for _, target := range []string{"/v1/stats?a=%zz", "/v1/gates?limit=x", "/v1/gates?limit=1%00", "/v1/conflicts?limit=-1", "/v1/conflicts?format=pdf"} {
		try("GET", target, 400)
	}
	if d := s.changed(before); len(d) > 0 {
		t.Errorf("changed %v", d)
	}
}

// FuzzHandlers calls every operation, well authorised, with anything: it answers
// as described, never with a fault of its own, and what it refuses leaves nothing.
func FuzzHandlers(f *testing.F) {
	d := describe(f)
	all := d.all()
	for i := range all {
		f.Add(uint8(i), "gala", "", "application/json", []byte(`{"type":"order.paid","data":{"order":"1"}}`))
		f.Add(uint8(i), "30303030303030303030303030303031", "limit=2&after=zz", "application/json", []byte(fourTickets))
		f.Add(uint8(i), "../x\x00 ü", "format=csv&state=x", "text/plain", []byte(`{"a":[[[{"b":1e999}]]],"token":null}`))
	}
	f.Fuzz(func(t *testing.T, n uint8, value, query, media string, body []byte) {
		s := newStage(t)
		s.prepare()
		o := all[int(n)%len(all)]
		r, err := s.call(o, o.at(value)+"?"+query, media, body)
		if err != nil {
			return // not a request that anybody can send
		}
		before := ledgertest.Dump(t, s.mem)
		rec, p := s.answered(r)
		if rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s?%s: %d %+v: %s", o.method, o.path, query, rec.Code, p, s.log.String())
		}
		if d := s.changed(before); rec.Code >= 400 && rec.Code != http.StatusPaymentRequired && len(d) > 0 {
			t.Errorf("%s %s?%s was refused with %d, and changed %v", o.method, o.path, query, rec.Code, d)
		}
	})
}
