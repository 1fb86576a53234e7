package ledgerhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// TestConflictThroughTheAPI: two gates that were cut off admit one ticket; the
// API tells it as outsiders read it, and takes the acknowledgement.
func TestConflictThroughTheAPI(t *testing.T) {
	s := newStage(t)
	s.prepare()
	ctx := context.Background()
	first := s.admitted("un", "North 2", 1, ticketID(1))
	s.pass(time.Second)
	second := s.admitted("us", "South", 1, ticketID(1))
	status, body := s.read("/v1/conflicts", readKey)
	var got struct {
		Conflicts []struct {
			ID, Ticket, Event, State, Announced string
			First                               struct{ Gate, Time, Claim, Clock string }
			Others                              []struct{ Gate, Time, Claim, Clock string }
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Conflicts) != 1 {
		t.Fatalf("got %d %s, want one conflict", status, body)
	}
	c := got.Conflicts[0]
	if c.Ticket != ticketID(1).String() || c.Event != "gala" || c.State != "open" || c.Announced != stamp(s.Now()) ||
		c.First.Gate != "North 2" || c.First.Claim != first.String() || c.First.Clock != "trusted" ||
		len(c.Others) != 1 || c.Others[0].Gate != "South" || c.Others[0].Claim != second.String() || c.Others[0].Time != stamp(s.Now()) {
		t.Errorf("got %s", body)
	}
	acked, err := s.client().Acknowledge(ctx, c.ID, "=refunded")
	if err != nil || acked.State != ledger.ConflictAcknowledged || acked.Note != "=refunded" {
		t.Errorf("got %+v, %v", acked, err)
	}
	if one, err := s.client().Conflict(ctx, c.ID); err != nil || one.State != ledger.ConflictAcknowledged {
		t.Errorf("got %+v, %v", one, err)
	}
	if !strings.Contains(s.log.String(), "by=boss") {
		t.Errorf("the log does not tell who acknowledged: %s", s.log.String())
	}
	s.checkCSV(c.ID)
	report, err := s.client().Ticket(ctx, ticket.FormatA1, ticketID(1))
	if err != nil || len(report.Claims) != 2 || report.Revoked {
		t.Errorf("got %+v, %v", report, err)
	}
}

func (s *stage) checkCSV(id string) {
	s.t.Helper()
	var out bytes.Buffer
	if err := s.client().ConflictsCSV(context.Background(), &out); err != nil {
		s.t.Fatal(err)
	}
	_, again := s.read("/v1/conflicts?format=csv", readKey)
	rows, err := csv.NewReader(bytes.NewReader(out.Bytes())).ReadAll()
	if err != nil || len(rows) != 3 || again != out.String() {
		s.t.Fatalf("got %q, %v, want a head and two lines at both addresses", out.String(), err)
	}
	if rows[1][0] != id || rows[1][8] != "first" || rows[1][9] != "North 2" || rows[2][8] != "other" || rows[2][9] != "South" {
		s.t.Errorf("got %q", rows)
	}
	if rows[1][7] != "'=refunded" {
		s.t.Errorf("a note that a spreadsheet would execute: %q", rows[1][7])
	}
}

// TestPages: walking pages of any size gives every conflict once, in one order.
func TestPages(t *testing.T) {
	s := newStage(t)
	s.prepare()
	const n = 23
	for i := range uint64(n) {
		s.admitted("un", "North 2", i+1, ticketID(int(i)))
		s.admitted("us", "South", i+1, ticketID(int(i)))
		s.pass(time.Second)
	}
	var want []string
	for c, err := range s.client().AllConflicts(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c.ID)
	}
	for limit := 1; limit <= n+1; limit += 5 {
		var got []string
		for after := ""; ; {
			p, err := s.client().Conflicts(context.Background(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range p.Conflicts {
				got = append(got, c.ID)
			}
			if len(p.Conflicts) < limit {
				break
			}
			after = p.Next
		}
		if len(want) != n || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("limit %d: got %d conflicts, want the %d of one walk", limit, len(got), len(want))
		}
	}
}

func TestAdminWritesThroughTheClient(t *testing.T) {
	s := newStage(t)
	s.prepare()
	ctx, c := context.Background(), s.client()
	claim := s.admitted("un", "North 2", 1, ticketID(1))
	if err := c.Release(ctx, claim, "wrong person"); err != nil {
		t.Error(err)
	}
	if err := c.Release(ctx, claim, "again"); err == nil {
		t.Error("a claim was released twice")
	}
	if r, err := c.Ticket(ctx, ticket.FormatA1, ticketID(1)); err != nil || len(r.Claims) != 1 || !r.Claims[0].Released {
		t.Errorf("got %+v, %v", r, err)
	}
	if g, err := c.SwapGate(ctx, "North 2", "UX"); err != nil || g.Device != "ux" || g.Place != "North 2" {
		t.Errorf("swap: got %+v, %v", g, err)
	}
	if g, err := c.LostGate(ctx, "South"); err != nil || g.State != ledger.StateLost {
		t.Errorf("lost: got %+v, %v", g, err)
	}
	if g, err := c.RevokeGate(ctx, "ux"); err != nil || g.State != ledger.StateRevoked {
		t.Errorf("revoke: got %+v, %v", g, err)
	}
	gates, err := c.Gates(ctx)
	states := map[string]string{}
	for _, g := range gates {
		states[string(g.Device)] = g.State
	}
	if err != nil || fmt.Sprint(states) != "map[un:revoked us:lost ux:revoked]" {
		t.Errorf("got %v, %v", states, err)
	}
	p, err := c.Programme(ctx)
	if err != nil || p.Version != 1 || len(p.Events) != 1 || p.Events[0].Name != "Gala Night" {
		t.Errorf("got %+v, %v", p, err)
	}
	if p.Events[0].CodeKey != "" {
		t.Error("the hash key of the code list is told to readers")
	}
	if err := c.CloseEvent(ctx, "gala"); err != nil {
		t.Error(err)
	}
	if st, err := c.Stats(ctx); err != nil || len(st.Events) != 1 || st.Events[0].Closed == "" || st.Time != stamp(s.Now()) {
		t.Errorf("got %+v, %v", st, err)
	}
}

func TestCodeLists(t *testing.T) {
	s := newStage(t)
	s.prepare()
	hashes := make([]ticket.ID, 25_000)
	for i := range hashes {
		hashes[i] = ticket.CodeHash(bytes.Repeat([]byte{0xab}, 32), fmt.Sprintf("CODE-%d", i))
	}
	got, err := s.client().PutCodes(context.Background(), "gala", append(hashes, hashes[0]))
	if err != nil || got.Codes != len(hashes) || got.Version == 0 {
		t.Errorf("got %+v, %v, want %d codes", got, err, len(hashes))
	}
	asJSON, err := json.Marshal(Codes{Hashes: hashes[:3]})
	if err != nil {
		t.Fatal(err)
	}
	status, body := s.send(s.request("/v1/codes/gala", string(asJSON), testKey(1), s.Now(), NewNonce()))
	if status != 200 || !strings.Contains(body, `"codes":3`) {
		t.Errorf("as JSON: %d %s", status, body)
	}
	for name, c := range map[string]struct{ media, body, detail string }{
		"bad line":  {"text/plain; charset=utf-8", hashes[0].String() + "\r\n\nnot a hash\n", "line 3"},
		"no type":   {"", hashes[0].String(), "text/plain"},
		"form data": {"multipart/form-data; boundary=x", "", "text/plain"},
	} {
		r := s.request("/v1/codes/gala", c.body, testKey(1), s.Now(), NewNonce())
		r.Header.Set("Content-Type", c.media)
		status, body := s.send(r)
		if p := problemIn(t, status, body); !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: %d %s, want %q", name, status, body, c.detail)
		}
	}
	many := strings.Repeat(hashes[0].String()+"\n", ledger.MaxCodes+1)
	r := s.request("/v1/codes/gala", many, testKey(1), s.Now(), NewNonce())
	r.Header.Set("Content-Type", "text/plain")
	if status, body := s.send(r); status != 413 || !strings.Contains(body, "1000001 codes") {
		t.Errorf("a million and one: %d %s", status, body)
	}
}

// TestVerdictsOfABrokenGate: what is no verdict is left out, newest first.
func TestVerdictsOfABrokenGate(t *testing.T) {
	s := newStage(t)
	for i, line := range []string{"null", "{}", "3", `{"time":"x"}`, "", `"<script>"`} {
		s.ledger.Verdict("un", []byte(line))
		v := ticket.Verdict{Time: s.Now().Add(time.Duration(i) * time.Second), Gate: "<b>North</b>", Verdict: ticket.Admit, Reason: ticket.OK, GateMode: ticket.ModeNormal}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s.ledger.Verdict("un", b)
	}
	got, err := s.client().Verdicts(context.Background())
	if err != nil || len(got) != 6 || !got[0].Time.Equal(s.Now().Add(5*time.Second)) || got[0].Gate != "<b>North</b>" {
		t.Errorf("got %+v, %v, want the six verdicts, newest first", got, err)
	}
}

// sensor lets a gate say that its passage sensor became suspect.
func (s *stage) sensor(device, place string, pos uint64) {
	s.t.Helper()
	src := ticket.Source(device)
	raw, err := ticket.Record{Source: src, Run: 7, Pos: pos, Event: &ticket.Event{Type: ticket.EventSensor, Place: place, Detail: "suspect"}}.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.ledger.Upload(s.t.Context(), src, ledger.Upload{Run: 7, From: pos, Records: [][]byte{raw}}); err != nil {
		s.t.Fatal(err)
	}
}

func TestMetrics(t *testing.T) {
	s := newStage(t)
	s.prepare()
	s.admitted("un", "North 2", 1, ticketID(1))
	s.admitted("us", "South", 1, ticketID(1))
	s.ledger.Heard("un", ledger.Head{Run: 7, Pos: 4, Place: "North 2", Link: "up", Time: s.Now().UnixNano()})
	s.sensor("us", "South", 2) // an alarm that belongs to no event
	s.scan("1", token(t, ticketID(2)))
	status, body := s.read("/metrics", readKey)
	for _, line := range []string{
		`admitone_conflicts{event="gala"} 1`, `admitone_admissions{event="gala"} 3`, `admitone_alarms{event="gala"} 0`,
		`admitone_alarms{event=""} 1`, "admitone_hand_held_admissions_total 1",
		`admitone_gate_up{device="un",place="North 2"} 1`, `admitone_gate_up{device="us",place="South"} 0`,
		`admitone_gate_outstanding_records{device="un",place="North 2"} 3`, `admitone_gate_clock_trusted{device="un",place="North 2"} 1`,
		"admitone_asks_total 0", "go_goroutines ",
	} {
		if status != 200 || !strings.Contains(body, line) {
			t.Errorf("%d: no %q in\n%s", status, line, body)
		}
	}
	s.pass(silent)
	if _, body := s.read("/metrics", readKey); !strings.Contains(body, `admitone_gate_up{device="un",place="North 2"} 0`) {
		t.Error("a gate that fell silent counts as up")
	}
}

// TestPage: the page is one document that loads nothing, its policy allows
// exactly its own script and style, and no script of it writes markup.
func TestPage(t *testing.T) {
	s := newStage(t)
	resp, err := http.Get(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, doc := s.read("/", "")
	policy := resp.Header.Get("Content-Security-Policy")
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		m := regexp.MustCompile(`(?s)<` + tag + `>(.*)</` + tag + `>`).FindStringSubmatch(doc)
		if m == nil {
			t.Fatalf("no <%s>", tag)
		}
		sum := sha256.Sum256([]byte(m[1]))
		if want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q has not %q: the browser would not run it", policy, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; connect-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is too wide: %s", policy)
	}
	for _, bad := range []string{"{{", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://", " src=", "@import", "url(", " style=", " onclick="} {
		if strings.Contains(doc, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("header %v", resp.Header)
	}
}
