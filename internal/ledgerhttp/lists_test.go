package ledgerhttp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"admitone/internal/audit"
	"admitone/internal/ledger"
	"admitone/internal/office"
	"admitone/internal/qr"
	"admitone/internal/ticket"
)

// paged reads a list to its end by its cursor, and gives each entry as it was sent.
func (s *stage) paged(path, member string, limit int) (all []string) {
	s.t.Helper()
	for after := ""; ; {
		status, body := s.read(fmt.Sprintf("%s?limit=%d&after=%s", path, limit, after), readKey)
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		var next string
		if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 {
			s.t.Fatalf("%s: %d %s, %v", path, status, body, err)
		}
		if err := json.Unmarshal(page[member], &entries); err != nil {
			s.t.Fatalf("%s: %v in %s", path, err, body)
		}
		if err := json.Unmarshal(page["next"], &next); err != nil {
			s.t.Fatalf("%s: %v in %s", path, err, body)
		}
		if len(entries) == 0 {
			return all
		}
		for _, e := range entries {
			all = append(all, string(e))
		}
		after = next
	}
}

// Every list is read to its end by its cursor, in pages of any size, and every
// export has what its list has.
func TestListsAndExports(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for n := range 3 { // conflicts
		s.admitted("un", "North 2", uint64(n+1), ticketID(n))
		s.admitted("us", "South", uint64(n+1), ticketID(n))
	}
	s.scan("1", token(t, ticketID(9)))
	for path, member := range map[string]string{
		"/v1/conflicts": "conflicts", "/v1/alarms": "alarms", "/v1/audit": "lines", "/v1/records": "records", "/v1/late": "late", "/v1/gates": "gates",
	} {
		whole := s.paged(path, member, 1000)
		for _, limit := range []int{1, 2} {
			if got := s.paged(path, member, limit); !slices.Equal(got, whole) {
				t.Errorf("%s in pages of %d: %d entries, want %d", path, limit, len(got), len(whole))
			}
		}
		want := map[string]int{"/v1/conflicts": 3, "/v1/audit": 3, "/v1/records": 6 + 1 + 3, "/v1/gates": 2}[path]
		if len(whole) != want {
			t.Errorf("%s: %d entries, want %d", path, len(whole), want)
		}
		if name, ok := strings.CutPrefix(path, "/v1/"); ok && want > 0 && name != "gates" {
			s.exported(name, whole)
		}
	}
	for _, path := range []string{"/v1/export/records", "/v1/export/audit", "/v1/export/conflicts", "/v1/audit", "/v1/records", "/v1/late"} {
		if status, _ := s.read(path, orderKey); status != 403 {
			t.Errorf("%s with a key of another scope: %d", path, status)
		}
	}
	for _, path := range []string{"/v1/export/records?format=xml", "/v1/records?after=x", "/v1/audit?after=x", "/v1/conflicts?after=x",
		"/v1/alarms?after=x", "/v1/late?after=x", "/v1/gates?after=x", "/v1/gates?after=7878"} {
		status, body := s.read(path, readKey)
		if problemIn(t, status, body); status != 400 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// exported wants the two files of a list.
func (s *stage) exported(name string, want []string) {
	s.t.Helper()
	_, body := s.read("/v1/export/"+name, readKey)
	if got := strings.Split(strings.TrimSpace(body), "\n"); !slices.Equal(got, want) {
		s.t.Errorf("the export of %s has %d lines, want the %d of the list", name, len(got), len(want))
	}
	_, body = s.read("/v1/export/"+name+"?format=csv", readKey)
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll() // as many columns in each
	lines := 1 + len(want)
	if name == "conflicts" {
		lines = 1 + 2*len(want)
	}
	if err != nil || len(rows) != lines {
		s.t.Errorf("the export of %s as CSV: %d lines, %v, want %d", name, len(rows), err, lines)
	}
}

// auditLines reads the log and wants that it fits.
func (s *stage) auditLines() (lines []audit.Line) {
	s.t.Helper()
	v := audit.NewVerifier(audit.Head{})
	for l, err := range s.client().AllAudit(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if err := v.Next(l); err != nil {
			s.t.Error(err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestQRCodeOfATicketThatWasSoldHere(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for path, want := range map[string]int{
		"/v1/tickets/" + ticketID(1).String() + "/qr.png": 404, "/v1/tickets/zz/qr.png": 400,
		"/v1/tickets/" + ticketID(1).String() + "/qr.png?scale=33": 400,
	} {
		if status, body := s.read(path, orderKey); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	if status, _ := s.read("/v1/tickets/"+ticketID(1).String()+"/qr.png", readKey); status != 403 {
		t.Errorf("with a key that only reads: %d, want 403: the code is the ticket", status)
	}

	srv, err := New(Options{
		Ledger: s.ledger, Office: soldHere{}, Now: s.Now, Log: slog.New(slog.DiscardHandler),
		Callers: []Caller{{Name: "box-office", Hash: sha256.Sum256([]byte(orderKey)), Scopes: []string{ScopeOrders}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	get := func(id string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/v1/tickets/"+id+"/qr.png?scale=4", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+orderKey)
		srv.Handler().ServeHTTP(w, r)
		return w
	}
	var want bytes.Buffer
	if err := qr.PNG(&want, "THE TEXT", 4); err != nil {
		t.Fatal(err)
	}
	got := get(ticketID(1).String())
	if got.Code != 200 || got.Header().Get("Content-Type") != "image/png" || !bytes.Equal(got.Body.Bytes(), want.Bytes()) {
		t.Errorf("got %d %s of %d bytes, want the code of the ticket's text", got.Code, got.Header().Get("Content-Type"), got.Body.Len())
	}
	if got := get(ticketID(2).String()); got.Code != 404 {
		t.Errorf("a ticket that was made elsewhere: %d %s, want 404", got.Code, got.Body)
	}
}

// soldHere is an office that sold one ticket.
type soldHere struct{ Office }

func (soldHere) Ticket(_ context.Context, id ticket.ID) (office.Ticket, bool, error) {
	return office.Ticket{ID: id, Token: "THE TEXT"}, id == ticketID(1), nil
}

func TestAnExportIsLongerThanAPage(t *testing.T) {
	s := newStage(t)
	s.prepare()
	r, err := http.NewRequest("GET", s.url+"/v1/export/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range maxPage + 50 {
		s.admitted("un", "North 2", uint64(n+1), ticketID(n))
	}
	r.Header.Set("Authorization", "Bearer "+readKey)
	_, body := s.send(r)
	seen := map[string]bool{}
	for sc := bufio.NewScanner(bytes.NewReader([]byte(body))); sc.Scan(); {
		var x ledger.RecordReport
		if err := json.Unmarshal(sc.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprint(x.Source, x.Run, x.Pos)] = true
	}
	if want := maxPage + 50 + 3; len(seen) != want {
		t.Errorf("%d records, want %d", len(seen), want)
	}
}
