package ledgerhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// described is the document as a validator and a model.
type described struct {
	check validator.Validator
	model *v3.Document

	mu   sync.Mutex
	seen map[string]int // METHOD PATTERN STATUS: how often it was checked
}

// document is read once for all tests of the package.
var document = sync.OnceValues(func() (*described, error) {
	doc, err := libopenapi.NewDocument(openAPI)
	if err != nil {
		return nil, err
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		return nil, err
	}
	check, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%v", errs)
	}
	return &described{check: check, model: &model.Model, seen: map[string]int{}}, nil
})

func describe(t testing.TB) *described {
	t.Helper()
	d, err := document()
	if err != nil {
		t.Fatalf("the document cannot be read: %v", err)
	}
	return d
}

// enough is how often one kind of answer is checked: the tests send some of them
// thousands of times.
const enough = 30

// heldToTheDocument wraps the server of every test: whatever it answers must be
// described, and what it accepts, too.
func heldToTheDocument(t *testing.T, next http.Handler) http.Handler {
	d := describe(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		r.Body = readCloser{io.TeeReader(r.Body, &body), r.Body}
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		if problem := d.compare(r, body.Bytes(), rec); problem != "" {
			t.Errorf("%s %s answered %d: %s", r.Method, r.URL, rec.status, problem)
		}
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

// recorder keeps the answer beside sending it.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// compare says how an answer differs from the document. What is at no path, or of no
// method, is described as a problem only.
func (d *described) compare(r *http.Request, body []byte, rec *recorder) string {
	kind := fmt.Sprintf("%s %s %d", r.Method, r.Pattern, rec.status)
	d.mu.Lock() // also for the validator, which promises nothing to several at once
	defer d.mu.Unlock()
	d.seen[kind]++
	n := d.seen[kind]
	const large = 64 << 10
	if n > enough || len(body) > large || rec.body.Len() > large || r.Method == http.MethodHead ||
		strings.ContainsFunc(r.URL.Path, unicode.IsControl) { // which the validator finds at no path
		return ""
	}
	if r.Pattern == "/" || r.Pattern == "" || rec.status == http.StatusMethodNotAllowed {
		if got := rec.Header().Get("Content-Type"); got != problemType {
			return "no problem but " + got
		}
		return ""
	}
	if rec.Header().Get("Content-Type") == "application/x-ndjson" { // which the validator reads as one document
		for line := range bytes.Lines(rec.body.Bytes()) {
			if !json.Valid(line) {
				return "no JSON: " + string(line)
			}
		}
		return ""
	}
	asked, answered := d.copies(r, body, rec)
	ok, errs := d.check.ValidateHttpResponse(asked, answered)
	if ok && rec.status < 300 {
		asked, _ = d.copies(r, body, rec)
		ok, errs = d.check.ValidateHttpRequestSync(asked)
	}
	if ok {
		return ""
	}
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
		for _, s := range e.SchemaValidationErrors {
			all = append(all, s.Reason+" at "+s.FieldPath)
		}
	}
	return strings.Join(all, "; ") + "\n" + rec.body.String()
}

// copies are request and answer as the validator reads them.
func (d *described) copies(r *http.Request, body []byte, rec *recorder) (*http.Request, *http.Response) {
	asked := httptest.NewRequestWithContext(context.Background(), r.Method, "http://ledger/", bytes.NewReader(body))
	at := *r.URL // as it came: a fuzzer's address cannot be written in a request's line
	asked.URL, asked.RequestURI = &at, at.RequestURI()
	asked.Header = r.Header.Clone()
	if form := "application/x-www-form-urlencoded"; len(body) > 0 && slices.Contains([]string{"", form}, r.Header.Get("Content-Type")) {
		asked.Header.Set("Content-Type", "application/json") // what the server takes it for: see jsonOnly
	}
	if len(body) == 0 {
		asked.Body, asked.ContentLength = http.NoBody, 0
	}
	return asked, &http.Response{
		StatusCode: rec.status, Header: rec.Header().Clone(), Request: asked, Body: io.NopCloser(bytes.NewReader(rec.body.Bytes())),
	}
}

// operations are METHOD PATH of what the document describes.
func (d *described) operations() (out []string) {
	for path, item := range d.model.Paths.PathItems.FromOldest() {
		for method := range item.GetOperations().FromOldest() {
			out = append(out, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(out)
	return out
}

// TestTheDocumentIsSound: it is OpenAPI 3.1.
func TestTheDocumentIsSound(t *testing.T) {
	d := describe(t)
	if ok, errs := d.check.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Error(e)
			for _, s := range e.SchemaValidationErrors {
				t.Errorf("%s at %s", s.Reason, s.FieldPath)
			}
		}
	}
	ids := map[string]bool{}
	for path, item := range d.model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.OperationId == "" || ids[op.OperationId] || op.Summary == "" || len(op.Tags) == 0 {
				t.Errorf("%s %s: its id %q is missing or taken, or it has no summary or tag", method, path, op.OperationId)
			}
			ids[op.OperationId] = true
		}
	}
}

// TestEveryRouteIsDescribed, and nothing else is.
func TestEveryRouteIsDescribed(t *testing.T) {
	paths, err := newStage(t).server.paths()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for path, m := range paths {
		for method := range m {
			have = append(have, method+" "+strings.TrimSuffix(path, "{$}"))
		}
	}
	slices.Sort(have)
	want := describe(t).operations()
	for _, op := range have {
		if !slices.Contains(want, op) {
			t.Errorf("%s is not described", op)
		}
	}
	for _, op := range want {
		if !slices.Contains(have, op) {
			t.Errorf("%s is described, and is not there", op)
		}
	}
}
