package office_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledgerstore"
	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// stage is books in memory with a ledger that remembers what it was told, and an
// acquirer of the test's. Every transaction runs twice: only the last run counts.
type stage struct {
	t     testing.TB
	mem   *kv.Mem
	books office.Books
	now   func() time.Time

	mu       sync.Mutex
	events   []ticket.ProgrammeEvent
	revoked  map[ticket.ID]bool
	used     map[ticket.ID]bool
	acquirer office.Acquirer
	policy   seen.Policy
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{t: t, mem: kv.NewMem(), now: time.Now, revoked: map[ticket.ID]bool{}, used: map[ticket.ID]bool{}}
	s.books = booksOn(s.mem)
	s.policy = seen.Policy{Endpoint: "orders", OnRepeat: seen.Echo, Remember: 24 * time.Hour}
	s.events = []ticket.ProgrammeEvent{event("gala")}
	return s
}

// crash is a power cut: what was committed is there after it.
func (s *stage) crash() {
	s.mem = s.mem.Crash()
	s.books = booksOn(s.mem)
}

func booksOn(mem *kv.Mem) office.Books { return twice{ledgerstore.New(mem).Books()} }

// twice runs each transaction's function again, as a store does that retries: what
// the first run wrote is undone, and only the last one counts.
type twice struct{ office.Books }

var errAgain = errors.New("again")

func (b twice) Update(ctx context.Context, fn func(office.Tx) error) error {
	err := b.Books.Update(ctx, func(tx office.Tx) error { return errors.Join(fn(tx), errAgain) })
	if err.Error() != errAgain.Error() {
		return err
	}
	return b.Books.Update(ctx, fn)
}

func key() ed25519.PrivateKey {
	h := sha256.Sum256([]byte("tickets"))
	return ed25519.NewKeyFromSeed(h[:])
}

func event(id string) ticket.ProgrammeEvent {
	return ticket.ProgrammeEvent{
		ID: id, Open: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Close: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), Forget: time.Date(2099, 2, 1, 0, 0, 0, 0, time.UTC),
		Formats: []string{"a1"}, Keys: []ticket.ProgrammeKey{ticket.ProgrammeKeyOf(key().Public().(ed25519.PublicKey), false)},
	}
}

// Programme is office.Ledger.Programme.
func (s *stage) Programme(context.Context) (ticket.Programme, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ticket.Programme{Version: 1, Events: slices.Clone(s.events)}, nil
}

// Within is office.Ledger.Within.
func (s *stage) Within(ctx context.Context, fn func(office.Tx, office.Gates) error) error {
	var g *gates
	err := s.books.Update(ctx, func(tx office.Tx) error {
		g = &gates{s: s}
		return fn(tx, g)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		for _, id := range g.revoked {
			s.revoked[id] = true
		}
	}
	return err
}

type gates struct {
	s       *stage
	revoked []ticket.ID
}

func (g *gates) Revoke(id ticket.ID, _ string) error { g.revoked = append(g.revoked, id); return nil }

func (g *gates) Used(_ string, id ticket.ID) (bool, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return g.s.used[id], nil
}

// open makes an office as a ledgerd process has one, which runs until the test ends
// or the function that is given is called.
func (s *stage) open(process string, change func(*office.Options)) (o *office.Office, kill func()) {
	s.t.Helper()
	signer := ticket.NewSigner(key())
	opt := office.Options{
		Books: s.books, Ledger: s, Answer: answer, Signer: &signer, Acquirer: s.acquirer, Process: process,
		Now: s.now, Log: slog.New(slog.DiscardHandler), Forget: []string{"orders", "refunds"},
	}
	if change != nil {
		change(&opt)
	}
	o, err := office.New(opt)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	kill = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	s.t.Cleanup(kill)
	return o, kill
}

// told is the answer of the stage's offices.
type told struct {
	Order    string
	Amount   int64
	Tokens   []string
	Refund   string
	Tickets  []ticket.ID
	Declined string
}

func answer(r office.Result) ([]byte, error) {
	var a told
	switch {
	case r.Sold != nil:
		a.Order, a.Amount = r.Sold.Order.ID, r.Sold.Charge.Amount
		for _, t := range r.Sold.Tickets {
			a.Tokens, a.Tickets = append(a.Tokens, t.Token), append(a.Tickets, t.ID)
		}
	case r.Refunded != nil:
		a.Refund, a.Amount, a.Tickets = r.Refunded.ID, r.Refunded.Amount, r.Refunded.Tickets
	case r.Declined != nil:
		a.Declined = *r.Declined
	}
	return json.Marshal(a)
}

func parse(t testing.TB, b []byte) (a told) {
	t.Helper()
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return a
}

func sale(n int, payment office.Payment) office.Sale {
	amount := int64(n) * 1225
	return office.Sale{Tickets: n, Amount: &amount, Currency: "EUR", Invoice: "inv_1", Payment: payment}
}

func (s *stage) intent(key string) office.Intent {
	return office.Intent{Policy: s.policy, Caller: "desk", Key: key, Fingerprint: []byte("body")}
}

func (s *stage) refunding(key string) office.Intent {
	in := s.intent(key)
	in.Policy.Endpoint = "refunds"
	return in
}

// sell wants an order sold now.
func (s *stage) sell(o *office.Office, key string, b office.Sale) told {
	s.t.Helper()
	r, err := o.Sell(context.Background(), s.intent(key), b)
	if err != nil || r.Outcome != seen.Won {
		s.t.Fatalf("sell: outcome %d, %v", r.Outcome, err)
	}
	return parse(s.t, r.Answer)
}

// all reads every order, and holds the books to what must always be so: an order
// has its charge and its tickets, whole.
func (s *stage) all(o *office.Office) (list []office.Account) {
	s.t.Helper()
	for after := ""; ; {
		page, next, err := o.Orders(context.Background(), after, 100)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page) == 0 {
			return list
		}
		after = next
		for _, short := range page {
			a, err := o.Order(context.Background(), short.ID)
			if err != nil {
				s.t.Fatalf("order %s: %v", short.ID, err)
			}
			if a.Charge.Order != a.ID || len(a.Tickets) != len(a.Order.Tickets) || len(a.Tickets) == 0 {
				s.t.Errorf("half an order: %+v", a)
			}
			list = append(list, a)
		}
	}
}

// verify reads a token as a gate would.
func verify(t testing.TB, token string) ticket.Ticket {
	t.Helper()
	u, err := ticket.Inspect(token)
	if err != nil {
		t.Fatalf("token %q: %v", token, err)
	}
	return u.Ticket
}

// remembers reports whether the seen table has a key's row.
func (s *stage) remembers(key string) (found bool) {
	s.t.Helper()
	err := s.books.View(context.Background(), func(tx office.Tx) (err error) {
		_, found, err = tx.Seen().Get(seen.Key{Endpoint: "orders", Scope: "desk", ID: key})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// eventually waits for what another goroutine does.
func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	end := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-again.C:
		case <-end:
			s.t.Fatalf("never: %s", what)
		}
	}
}
