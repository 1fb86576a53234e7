package acquirer

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Behaviour is how the simulated service treats a request whose key is new to it.
type Behaviour string

// The behaviours.
const (
	Approve Behaviour = "approve" // move the money
	Decline Behaviour = "decline" // refuse for good
	Fail    Behaviour = "fail"    // break down before anything is moved
	Slow    Behaviour = "slow"    // move it after a while, whether the asker is still there or not
	Late    Behaviour = "late"    // move it at once, and answer after a while
	Lose    Behaviour = "lose"    // move it, and lose the answer
)

// Behaviours lists them all.
func Behaviours() []Behaviour { return []Behaviour{Approve, Decline, Fail, Slow, Late, Lose} }

// Movement is one thing that the simulated service did, or declined.
type Movement struct {
	Key string
	Request
	Answer Answer
}

// Sim is a simulated payment service: an http.Handler that moves money once for
// each key. Its memory is that of its process.
type Sim struct {
	// Wait is how long the slow and the late keep an asker waiting.
	Wait time.Duration

	mu     sync.Mutex
	behave func(key string) Behaviour
	byKey  map[string]Movement
	order  []string // the keys, by time
	asked  int
}

// NewSim makes a service that approves.
func NewSim(wait time.Duration) *Sim {
	return &Sim{Wait: wait, behave: func(string) Behaviour { return Approve }, byKey: map[string]Movement{}}
}

// Behave has every further request treated as fn says for its key.
func (s *Sim) Behave(fn func(key string) Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = fn
}

// Movements gives what was done and declined so far, in order.
func (s *Sim) Movements() []Movement {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Movement, len(s.order))
	for i, k := range s.order {
		out[i] = s.byKey[k]
	}
	return out
}

// Asked counts the requests so far.
func (s *Sim) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// ServeHTTP answers one request.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
	var q Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer)).Decode(&q); err != nil || key == "" || r.Method != http.MethodPost {
		answer(w, http.StatusBadRequest, Answer{State: Failed})
		return
	}
	how := s.how(key)
	if how == Slow {
		<-time.After(s.Wait)
	}
	if how == Fail {
		answer(w, http.StatusServiceUnavailable, Answer{State: Failed})
		return
	}
	a, same := s.move(key, q, how)
	switch {
	case !same:
		answer(w, http.StatusUnprocessableEntity, Answer{})
		return
	case how == Lose:
		panic(http.ErrAbortHandler) // cuts the connection
	case how == Late:
		select {
		case <-time.After(s.Wait):
		case <-r.Context().Done():
		}
	}
	status := http.StatusCreated
	if a.State == Declined {
		status = http.StatusPaymentRequired
	}
	answer(w, status, a)
}

// how says how a request is treated: a key that is known gets its answer.
func (s *Sim) how(key string) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if _, known := s.byKey[key]; known {
		return Approve
	}
	return s.behave(key)
}

// move does what a key is new for, and gives the key's answer; same is false where
// the key came with another request before.
func (s *Sim) move(key string, q Request, how Behaviour) (a Answer, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, known := s.byKey[key]; known {
		return m.Answer, m.Request == q
	}
	a = Answer{ID: "pay_" + strings.ToLower(rand.Text()), State: Approved}
	if how == Decline {
		a = Answer{State: Declined, Reason: "insufficient funds"}
	}
	s.byKey[key] = Movement{Key: key, Request: q, Answer: a}
	s.order = append(s.order, key)
	return a, true
}

func answer(w http.ResponseWriter, status int, a Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // who is gone needs no answer
}

// ParseBehaviour reads a behaviour by its name.
func ParseBehaviour(name string) (Behaviour, error) {
	if b := Behaviour(name); slices.Contains(Behaviours(), b) {
		return b, nil
	}
	return "", fmt.Errorf("an acquirer cannot %q; it can %v", name, Behaviours())
}
