package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
)

// handled is what a hand-held was answered.
type handled struct {
	status   int
	replayed bool
	body     string
}

// hand sends a hand-held's request, and again where the ledger is not there.
func (s *stage) hand(path string, body any) (h handled) {
	s.t.Helper()
	s.eventually("an answer to a hand-held", func() bool {
		var err error
		h, err = s.tryHand(path, body)
		return err == nil && h.status < 500
	})
	return h
}

func (s *stage) tryHand(path string, body any) (h handled, err error) {
	key, err := os.ReadFile(s.at.handKey())
	if err != nil {
		return h, err
	}
	b, err := json.Marshal(body)
	if err != nil {
		return h, err
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, bytes.NewReader(b))
	if err != nil {
		return h, err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return handled{res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", string(answer)}, err
}

func (s *stage) scan(claim string, p pass) handled {
	s.t.Helper()
	return s.hand("/v1/claims", ledgerhttp.Claim{Token: p.text, Claim: claim})
}

// scanned wants a ticket admitted by the hand-held.
func (s *stage) scanned(claim string, p pass) handled {
	s.t.Helper()
	h := s.scan(claim, p)
	if h.status != http.StatusCreated {
		s.t.Fatalf("the hand-held did not admit %s: %+v", p.id, h)
	}
	return h
}

// learned is how many records of others gate k has taken in.
func (s *stage) learned(k int) uint64 {
	s.t.Helper()
	var st struct {
		Wire struct{ Learned uint64 } `json:"wire"`
	}
	raw, err := s.Gate(k).Status(s.t.Context())
	s.must(err)
	s.must(json.Unmarshal(raw, &st))
	return st.Wire.Learned
}

// A hand-held scanner and gates keep one ticket to one admission, online, offline
// and over a kill of the ledger.
func TestHandHelds(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 1})
	s.linked(1, "up")
	s.play([]scene{
		{"then a gate", thenAGate},
		{"first a gate", firstAGate},
		{"a gate that is cut off since", cutOffSince},
		{"taken back", takenBack},
		{"the ledger is killed", retriedAfterAKill},
		{"both at once", bothAtOnce},
	})
	for c, err := range s.c.AllConflicts(t.Context()) {
		s.must(err)
		t.Errorf("a conflict, though nothing was admitted twice: %+v", c)
	}
}

func thenAGate(s *stage) {
	p := s.one()
	s.scanned("a1", p)
	s.refuse(1, p, HandPlace)
}

func firstAGate(s *stage) {
	p := s.one()
	v := s.admit(1, p)
	var used ledgerhttp.Problem
	s.eventually("the passage at the ledger", func() bool {
		h := s.scan("b1", p)
		s.must(json.Unmarshal([]byte(h.body), &used))
		return h.status == http.StatusConflict && used.Reason == ticket.AlreadyUsed
	})
	if claims := s.claims(p); used.FirstGate != "1" || len(claims) != 1 || used.FirstSeen != claims[0].Time || claims[0].Claim != v.Claim {
		s.t.Errorf("the hand-held is told %+v of %+v, want the gate's time and place", used, claims)
	}
}

// cutOffSince: what a hand-held admitted is known to a gate that cannot ask.
func cutOffSince(s *stage) {
	p, before := s.one(), s.learned(1)
	s.scanned("c1", p)
	s.eventually("the hand-held's record at the gate", func() bool { return s.learned(1) > before })
	s.must(s.Cut("1", Down))
	s.linked(1, "alone")
	v := s.refuse(1, p, HandPlace)
	if claims := s.claims(p); v.Online || len(claims) != 1 || v.FirstSeen.Format(ticket.TimeFormat) != claims[0].Time {
		s.t.Errorf("refused by %+v of %+v, want offline, by the time of the hand-held's claim", v, claims)
	}
}

func takenBack(s *stage) {
	p := s.one()
	s.scanned("d1", p)
	if h := s.hand("/v1/claims/d1/annul", nil); h.status != http.StatusOK {
		s.t.Fatalf("annul: %+v", h)
	}
	s.level() // the gate was cut off before
	s.admit(1, p)
}

func retriedAfterAKill(s *stage) {
	p := s.one()
	first := s.scanned("e1", p)
	s.must(s.Kill("ledger"))
	s.must(s.Start(s.t.Context(), "ledger"))
	again := s.scanned("e1", p)
	if !again.replayed || again.body != first.body {
		s.t.Errorf("a retry after the kill: %+v, want the bytes of %+v, marked", again, first)
	}
	if h := s.scan("e2", p); h.status != http.StatusConflict {
		s.t.Errorf("another claim after the kill: %+v, want that the ticket was used", h)
	}
}

// bothAtOnce races the gate and two hand-helds for each of many tickets: the gate's
// ask over NATS, the others' claims over HTTP, each sent twice.
func bothAtOnce(s *stage) {
	const rounds = 20
	s.level() // the gate asks again
	wins := map[string]int{}
	for n, p := range s.mint(rounds, nil) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		admitted := map[string]string{} // what each claim that was admitted got
		for i := range 4 {
			claim := fmt.Sprintf("f%d-%d", n, i%2)
			wg.Go(func() {
				s.pause(time.Duration(n%5) * 10 * time.Millisecond) // now and then the gate comes first
				body, err := s.race(claim, p)
				mu.Lock()
				defer mu.Unlock()
				if was, ok := admitted[claim]; err != nil || ok && was != body {
					s.t.Errorf("round %d: got %s after %s, %v", n, body, was, err)
				}
				if body != "" {
					admitted[claim] = body
				}
			})
		}
		s.look(1, p.text)
		v := s.final(1, p)
		wg.Wait()
		switch gate := v.Verdict == ticket.Admit; {
		case gate && len(admitted) == 0:
			wins["gate"]++
		case !gate && len(admitted) == 1:
			wins["hand-held"]++
		default:
			s.t.Errorf("round %d: the gate said %s, hand-helds %v: want one winner", n, v.Verdict, admitted)
		}
		s.idle(1)
	}
	s.t.Logf("who won: %v", wins)
}

// race shows a ticket to a hand-held until it is decided, and gives the answer where
// it was admitted.
func (s *stage) race(claim string, p pass) (string, error) {
	for {
		h, err := s.tryHand("/v1/claims", ledgerhttp.Claim{Token: p.text, Claim: claim})
		if err != nil || h.status == http.StatusCreated {
			return h.body, err
		}
		var problem ledgerhttp.Problem
		switch err := json.Unmarshal([]byte(h.body), &problem); {
		case err != nil:
			return "", err
		case problem.Reason == ticket.InProgress:
			s.pause(50 * time.Millisecond)
		case problem.Reason == ticket.AlreadyUsed:
			return "", nil
		default:
			return "", &problem
		}
	}
}
