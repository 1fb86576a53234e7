package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// level waits until the ledger has everything that the gates have, as they say
// from now on.
func (s *stage) level() {
	s.t.Helper()
	since := time.Now()
	s.eventually("gates without outstanding records", func() bool {
		gates, err := s.c.Gates(s.t.Context())
		if err != nil {
			return false
		}
		up := 0
		for _, g := range gates {
			heard, err := time.Parse(time.RFC3339Nano, g.Heard)
			if err == nil && heard.After(since) && g.Role == ledger.RoleGate && g.Outstanding == 0 && g.Link == "up" {
				up++
			}
		}
		return up == s.o.Gates
	})
}

// claims are the ledger's of a ticket.
func (s *stage) claims(p pass) []ledger.TicketClaim {
	s.t.Helper()
	r, err := s.c.Ticket(s.t.Context(), ticket.FormatA1, p.ticket.ID)
	s.must(err)
	return r.Claims
}

// conflictsOf are the conflicts on a ticket, withdrawn ones too.
func (s *stage) conflictsOf(p pass) (out []ledger.Conflict) {
	s.t.Helper()
	for c, err := range s.c.AllConflicts(s.t.Context()) {
		s.must(err)
		if c.Ticket == p.id {
			out = append(out, c)
		}
	}
	return out
}

// nothingLost wants every admission that any gate told its visitor of to stand so
// at the ledger.
func (s *stage) nothingLost() {
	s.t.Helper()
	for k := 1; k <= s.o.Gates; k++ {
		for _, v := range s.verdicts(k) {
			if v.Verdict != ticket.Admit {
				continue
			}
			id, err := ticket.ParseID(v.Ticket)
			s.must(err)
			r, err := s.c.Ticket(s.t.Context(), ticket.FormatA1, id)
			s.must(err)
			if !slices.ContainsFunc(r.Claims, func(c ledger.TicketClaim) bool { return c.Claim == v.Claim && stands(c) }) {
				s.t.Errorf("gate %d admitted %s by %s, the ledger has %+v", k, v.Ticket, v.Claim, r.Claims)
			}
		}
	}
}

// stands reports whether a claim holds its ticket for good.
func stands(c ledger.TicketClaim) bool {
	return c.State == ticket.Admitted || c.State == ticket.Presumed
}

// conflictsAsOthersReadThem checks the form that spec section 10 keeps stable.
func (s *stage) conflictsAsOthersReadThem() []map[string]any {
	s.t.Helper()
	var page struct {
		Conflicts []map[string]any `json:"conflicts"`
	}
	s.must(json.Unmarshal(s.get("/v1/conflicts", http.StatusOK), &page))
	has := func(o any, names ...string) {
		m, ok := o.(map[string]any)
		for _, n := range names {
			if _, there := m[n]; !ok || !there {
				s.t.Errorf("no %q in %v", n, slices.Sorted(maps.Keys(m)))
			}
		}
	}
	for _, c := range page.Conflicts {
		has(c, "id", "ticket", "event", "first", "others", "state", "announced")
		has(c["first"], "gate", "time", "claim", "clock")
		others, _ := c["others"].([]any)
		if len(others) == 0 {
			s.t.Errorf("a conflict of one: %v", c)
		}
		for _, o := range others {
			has(o, "gate", "time", "claim", "clock")
		}
		if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(c["announced"])); err != nil {
			s.t.Errorf("announced: %v", err)
		}
	}
	return page.Conflicts
}

// get reads a path of the ledger with the key for reads.
func (s *stage) get(path string, status int) []byte {
	s.t.Helper()
	key, err := os.ReadFile(s.at.path("keys", "admin"))
	s.must(err)
	url, err := os.ReadFile(s.at.path("ledger.url"))
	s.must(err)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, strings.TrimSpace(string(url))+path, nil)
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	res, err := http.DefaultClient.Do(req)
	s.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	s.must(err)
	if res.StatusCode != status {
		s.t.Fatalf("GET %s: %s\n%s", path, res.Status, body)
	}
	return body
}
