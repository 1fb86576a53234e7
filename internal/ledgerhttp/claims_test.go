package ledgerhttp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// token mints the ticket of an id.
func token(t testing.TB, id ticket.ID) string {
	t.Helper()
	text, err := ticket.NewSigner(testKey(5)).Mint(ticket.Ticket{Format: ticket.FormatA1, ID: id, Event: "gala"})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// answered is what came back of a request.
type answered struct {
	status int
	header http.Header
	body   string
}

// bear sends a request with a bearer key.
func (s *stage) bear(path, key, body string) answered {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered{resp.StatusCode, resp.Header, string(b)}
}

// scan shows a ticket to the hand-held at the tent.
func (s *stage) scan(claim, token string) answered {
	s.t.Helper()
	b, err := json.Marshal(Claim{Token: token, Claim: claim})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.bear("/v1/claims", tentKey, string(b))
}

func (a answered) wants(t *testing.T, status int, k kind, reason ticket.Reason) *Problem {
	t.Helper()
	p := problemIn(t, a.status, a.body)
	if a.status != status || p.Type != problemBase+string(k) || p.Reason != reason {
		t.Errorf("got %d %s, want %d %s for the reason %q", a.status, a.body, status, k, reason)
	}
	return &p
}

func TestHandHeldClaims(t *testing.T) {
	s := newStage(t)
	s.prepare()
	first := s.scan("scan/1", token(t, ticketID(1)))
	var a ledger.Admission
	if err := json.Unmarshal([]byte(first.body), &a); err != nil || first.status != 201 || first.header.Get(replayedField) != "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if a.Claim != "scan/1" || a.Ticket != ticketID(1) || a.Gate != "Tent" || a.State != ticket.Admitted || a.Time != stamp(s.Now()) {
		t.Errorf("admitted as %+v", a)
	}
	s.pass(time.Minute)
	again := s.scan("scan/1", token(t, ticketID(1)))
	if again.status != 201 || again.body != first.body || again.header.Get(replayedField) != "true" {
		t.Errorf("a retry got %+v, want the same bytes, marked", again)
	}
	s.scan("scan/1", token(t, ticketID(2))).wants(t, 422, claimReused, "")
	used := s.scan("scan/2", token(t, ticketID(1))).wants(t, 409, alreadyUsed, ticket.AlreadyUsed)
	if used.FirstGate != "Tent" || used.FirstSeen != a.Time {
		t.Errorf("cites %q at %q, want the first place and time", used.FirstGate, used.FirstSeen)
	}

	s.scan("3", "no ticket").wants(t, 403, notLetIn, ticket.Invalid)
	if err := s.client().Revoke(t.Context(), ticket.FormatA1, ticketID(3), true); err != nil {
		t.Fatal(err)
	}
	s.scan("3", token(t, ticketID(3))).wants(t, 403, notLetIn, ticket.Revoked)

	annulled := s.bear("/v1/claims/scan%2F1/annul", tentKey, "")
	if err := json.Unmarshal([]byte(annulled.body), &a); err != nil || annulled.status != 200 || a.State != ticket.Annulled || a.Claim != "scan/1" {
		t.Errorf("annul: %+v, %v", annulled, err)
	}
	if again := s.bear("/v1/claims/scan%2F1/annul", tentKey, ""); again.body != annulled.body || again.header.Get(replayedField) != "true" {
		t.Errorf("annulled again: %+v, want the same bytes, marked", again)
	}
	if got := s.scan("scan/2", token(t, ticketID(1))); got.status != 201 {
		t.Errorf("after the annul: %+v, want 201", got)
	}
	s.pass(16 * time.Minute)
	s.bear("/v1/claims/scan%2F2/annul", tentKey, "").wants(t, 409, notNow, "")
	s.bear("/v1/claims/none/annul", tentKey, "").wants(t, 404, notFound, "")
	s.bear("/v1/claims/scan%2F2/annul", orderKey, "").wants(t, 403, forbidden, "")
}

// A claim that waits for a gate's decision comes again with the same id.
func TestHandHeldWaitsForAGate(t *testing.T) {
	s := newStage(t)
	s.prepare()
	src := ticket.Source("un")
	c := ticket.Claim{
		ID: ticket.ClaimID{Gate: src, Run: 7, Pos: 1}, Unit: ticket.Unit{Event: "gala", Format: ticket.FormatA1, Ticket: ticketID(1)},
		State: ticket.Pending, Claimed: ticket.Stamp{Wall: s.Now().UnixNano()}, Place: "North 2", Lane: "1", Lease: 25 * time.Second,
	}
	raw, err := ticket.Record{Source: src, Run: 7, Pos: 1, Claim: &c}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.ledger.Ask(t.Context(), src, ledger.Ask{Claim: c.ID, Unit: c.Unit, Records: [][]byte{raw}})
	if err != nil || r.Answer != ticket.AnswerFirst {
		t.Fatalf("ask: %+v, %v", r, err)
	}
	wait := s.scan("1", token(t, ticketID(1)))
	p := wait.wants(t, 409, inProgress, ticket.InProgress)
	if wait.header.Get("Retry-After") != "1" || p.FirstGate != "North 2" {
		t.Errorf("got %+v, want Retry-After and the gate's place", wait)
	}
	s.pass(26 * time.Second) // overdue: it still holds, and nobody waits for it any more
	s.scan("1", token(t, ticketID(1))).wants(t, 409, alreadyUsed, ticket.AlreadyUsed)
}

func TestHandHeldRequestsAreChecked(t *testing.T) {
	s := newStage(t)
	s.prepare()
	for name, c := range map[string]struct {
		key, body string
		status    int
		field     string
	}{
		"no key":      {"", `{}`, 401, ""},
		"wrong scope": {orderKey, `{"token":"x","claim":"1"}`, 403, ""},
		"no token":    {tentKey, `{"claim":"1"}`, 400, "token"},
		"no claim":    {tentKey, `{"token":"x"}`, 400, "claim"},
		"long claim":  {tentKey, fmt.Sprintf(`{"token":"x","claim":%q}`, strings.Repeat("1", 129)), 400, "claim"},
		"space":       {tentKey, `{"token":"x","claim":"1 2"}`, 400, "claim"},
		"a zero byte": {tentKey, `{"token":"x","claim":"1\u0000"}`, 400, "claim"},
		"a number":    {tentKey, `{"token":"x","claim":1}`, 400, "claim"},
		"no JSON":     {tentKey, `token=x`, 400, ""},
	} {
		got := s.bear("/v1/claims", c.key, c.body)
		if p := problemIn(t, got.status, got.body); got.status != c.status || c.field != "" && p.Field != c.field {
			t.Errorf("%s: got %d %s, want %d and the field %q", name, got.status, got.body, c.status, c.field)
		}
	}
}

// One claim sent many times at once is admitted once, and all get the same bytes;
// many claims of one ticket have one winner.
func TestHandHeldsAtOnce(t *testing.T) {
	s := newStage(t)
	s.prepare()
	const many = 16
	for n := range 20 {
		got := make([]answered, many)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = s.scan(fmt.Sprintf("%d/%d", n, i%4), token(t, ticketID(n+10))) })
		}
		wg.Wait()
		bodies := map[string]int{}
		for _, a := range got {
			switch a.status {
			case 201:
				bodies[a.body]++
			case 409:
			default:
				t.Errorf("round %d: %+v", n, a)
			}
		}
		if len(bodies) != 1 {
			t.Fatalf("round %d: %d admissions, want one", n, len(bodies))
		}
		for body, times := range bodies {
			if times != many/4 {
				t.Errorf("round %d: %d got %s, want all %d who sent that claim", n, times, body, many/4)
			}
		}
	}
}
