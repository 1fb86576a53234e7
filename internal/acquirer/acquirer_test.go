package acquirer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"admitone/internal/office"
)

func pair(t *testing.T, wait time.Duration) (*Sim, *Client) {
	t.Helper()
	sim := NewSim(wait)
	web := httptest.NewServer(sim)
	t.Cleanup(web.Close)
	return sim, &Client{URL: web.URL, Bearer: "secret", HTTP: web.Client()}
}

func behave(s *Sim, b Behaviour) { s.Behave(func(string) Behaviour { return b }) }

// TestBehaviours: what the office is told of each, and what was moved.
func TestBehaviours(t *testing.T) {
	for b, want := range map[Behaviour]struct {
		moved    int
		declined bool
		failed   bool // for certain
		unsure   bool // an error that says nothing
	}{
		Approve: {moved: 1}, Decline: {moved: 1, declined: true}, Fail: {failed: true},
		Slow: {moved: 1}, Late: {moved: 1}, Lose: {moved: 1, unsure: true},
	} {
		t.Run(string(b), func(t *testing.T) {
			sim, c := pair(t, time.Millisecond)
			behave(sim, b)
			m, err := c.Move(t.Context(), office.Transfer{Key: "ord_1", Amount: 1, Currency: "EUR"})
			failed := errors.Is(err, office.ErrNotMoved)
			if (m.Declined != "") != want.declined || failed != want.failed || (err != nil && !failed) != want.unsure {
				t.Errorf("got %+v, %v", m, err)
			}
			if got := sim.Movements(); len(got) != want.moved {
				t.Errorf("moved %+v", got)
			}
		})
	}
}

// TestOneKeyMovesOnce: asked again it gives the first answer, whatever it would do
// now, and another request under the key moves nothing.
func TestOneKeyMovesOnce(t *testing.T) {
	sim, c := pair(t, time.Hour)
	tr := office.Transfer{Key: "ord_1", Amount: 4900, Currency: "EUR", Invoice: "inv_1"}
	first, err := c.Move(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range Behaviours() {
		behave(sim, b)
		if again, err := c.Move(t.Context(), tr); err != nil || again != first {
			t.Errorf("%s: %+v, %v, want %+v", b, again, err, first)
		}
	}
	tr.Amount = 9900
	if m, err := c.Move(t.Context(), tr); err == nil || errors.Is(err, office.ErrNotMoved) {
		t.Errorf("another amount under the key: %+v, %v", m, err)
	}
	if got := sim.Movements(); len(got) != 1 || got[0].Amount != 4900 || sim.Asked() != len(Behaviours())+2 {
		t.Errorf("moved %+v, asked %d", got, sim.Asked())
	}
}

// TestLateAnswer: whoever gives up does not stop what was asked for.
func TestLateAnswer(t *testing.T) {
	for _, b := range []Behaviour{Late, Slow} {
		sim, c := pair(t, 50*time.Millisecond)
		behave(sim, b)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := c.Move(ctx, office.Transfer{Key: "ord_1", Amount: 1, Currency: "EUR"})
		cancel()
		if err == nil || errors.Is(err, office.ErrNotMoved) {
			t.Errorf("%s: %v, want an error that says nothing", b, err)
		}
		behave(sim, Approve)
		if m, err := c.Move(t.Context(), office.Transfer{Key: "ord_1", Amount: 1, Currency: "EUR"}); err != nil || m.Reference == "" || len(sim.Movements()) != 1 {
			t.Errorf("%s: asked again: %+v, %v, moved %d", b, m, err, len(sim.Movements()))
		}
	}
}

// TestAnswersThatSayNothing: only a service that nobody reached, or that says so,
// moved nothing.
func TestAnswersThatSayNothing(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"another page": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"no state":     func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"x"}`)) },
		"no name":      func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"state":"approved"}`)) },
		"a bad gate":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) },
	} {
		web := httptest.NewServer(h)
		c := Client{URL: web.URL, HTTP: web.Client()}
		if m, err := c.Move(t.Context(), office.Transfer{Key: "k", Amount: 1}); err == nil || errors.Is(err, office.ErrNotMoved) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		web.Close()
		if _, err := c.Move(t.Context(), office.Transfer{Key: "k", Amount: 1}); !errors.Is(err, office.ErrNotMoved) {
			t.Errorf("a service that is not there: %v", err)
		}
	}
}

func TestParseBehaviour(t *testing.T) {
	for _, b := range Behaviours() {
		if got, err := ParseBehaviour(string(b)); err != nil || got != b {
			t.Errorf("%s: %s, %v", b, got, err)
		}
	}
	if _, err := ParseBehaviour("explode"); err == nil {
		t.Error("an unknown behaviour was taken")
	}
}
