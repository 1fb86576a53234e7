package office_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// TestSell: the answer's tickets are real ones, and everything is in the books.
func TestSell(t *testing.T) {
	s := newStage(t)
	s.events[0].Sessions = []ticket.Session{{ID: "early", To: time.Unix(1, 0)}, {ID: "late", To: s.events[0].Close}}
	s.events[0].Products = []string{"seat", "standing"}
	o, _ := s.open("1", nil)
	b := sale(4, "")
	b.Product = "seat"
	got := s.sell(o, "k", b)
	if len(got.Tokens) != 4 || got.Amount != 4900 {
		t.Fatalf("answer: %+v", got)
	}
	for i, token := range got.Tokens {
		tk := verify(t, token)
		if tk.ID != got.Tickets[i] || tk.Event != "gala" || tk.Session != "late" || tk.Product != "seat" {
			t.Errorf("ticket %d: %+v of %q", i, tk, token)
		}
	}
	all := s.all(o)
	if len(all) != 1 || all[0].ID != got.Order || all[0].Caller != "desk" || all[0].Left() != 4900 {
		t.Fatalf("orders: %+v", all)
	}
	if c := all[0].Charge; c.Payment != office.Invoice || c.Currency != "EUR" || c.Invoice != "inv_1" {
		t.Errorf("charge: %+v", c)
	}
	row, found, err := o.Ticket(t.Context(), got.Tickets[2])
	if err != nil || !found || row.Token != got.Tokens[2] || row.Order != got.Order {
		t.Errorf("ticket row: %+v, %t, %v", row, found, err)
	}
}

// TestRefusedSales: what cannot be sold says which field is wrong, leaves nothing,
// and does not use its key up.
func TestRefusedSales(t *testing.T) {
	s := newStage(t)
	over := event("over")
	over.Close = time.Unix(1, 0)
	codes := event("codes")
	codes.Formats = []string{"code"}
	foreign := event("foreign")
	foreign.Keys = nil
	rich := event("rich")
	rich.Sessions = []ticket.Session{{ID: "s1", To: rich.Close}, {ID: "s2", To: rich.Close}}
	rich.Products = []string{"p1", "p2"}
	s.events = append(s.events, over, codes, foreign, rich)
	o, _ := s.open("1", nil)
	amount := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		change func(*office.Sale)
		want   office.Error
	}{
		"no tickets":         {func(b *office.Sale) { b.Tickets = 0 }, office.Error{Kind: office.Invalid, Field: "tickets"}},
		"too many":           {func(b *office.Sale) { b.Tickets = office.MaxTickets + 1 }, office.Error{Kind: office.Invalid, Field: "tickets"}},
		"no amount":          {func(b *office.Sale) { b.Amount = nil }, office.Error{Kind: office.Invalid, Field: "amount"}},
		"negative":           {func(b *office.Sale) { b.Amount = amount(-1) }, office.Error{Kind: office.Invalid, Field: "amount"}},
		"too much":           {func(b *office.Sale) { b.Amount = amount(office.MaxAmount + 1) }, office.Error{Kind: office.Invalid, Field: "amount"}},
		"no currency":        {func(b *office.Sale) { b.Currency = "" }, office.Error{Kind: office.Invalid, Field: "currency"}},
		"small letters":      {func(b *office.Sale) { b.Currency = "eur" }, office.Error{Kind: office.Invalid, Field: "currency"}},
		"between two":        {func(b *office.Sale) { b.Currency = "D A" }, office.Error{Kind: office.Invalid, Field: "currency"}},
		"old money":          {func(b *office.Sale) { b.Currency = "DEM" }, office.Error{Kind: office.Invalid, Field: "currency"}},
		"invoice of lines":   {func(b *office.Sale) { b.Invoice = "a\nb" }, office.Error{Kind: office.Invalid, Field: "invoice"}},
		"long invoice":       {func(b *office.Sale) { b.Invoice = strings.Repeat("i", 201) }, office.Error{Kind: office.Invalid, Field: "invoice"}},
		"shells":             {func(b *office.Sale) { b.Payment = "shells" }, office.Error{Kind: office.Invalid, Field: "payment"}},
		"as a shop":          {func(b *office.Sale) { b.Payment = office.Shop }, office.Error{Kind: office.Invalid, Field: "payment"}},
		"by card":            {func(b *office.Sale) { b.Payment = office.Card }, office.Error{Kind: office.Unavailable, Field: "payment"}},
		"which event":        {func(b *office.Sale) { b.Event = "" }, office.Error{Kind: office.Invalid, Field: "event"}},
		"unknown event":      {func(b *office.Sale) { b.Event = "x" }, office.Error{Kind: office.Invalid, Field: "event"}},
		"event that is over": {func(b *office.Sale) { b.Event = "over" }, office.Error{Kind: office.Invalid, Field: "event"}},
		"codes alone":        {func(b *office.Sale) { b.Event = "codes" }, office.Error{Kind: office.Invalid, Field: "event"}},
		"other keys alone":   {func(b *office.Sale) { b.Event = "foreign" }, office.Error{Kind: office.Invalid, Field: "event"}},
		"which session":      {func(b *office.Sale) { b.Event, b.Product = "rich", "p1" }, office.Error{Kind: office.Invalid, Field: "session"}},
		"which product":      {func(b *office.Sale) { b.Event, b.Session = "rich", "s1" }, office.Error{Kind: office.Invalid, Field: "product"}},
		"unknown session":    {func(b *office.Sale) { b.Session = "s1" }, office.Error{Kind: office.Conflict, Field: "session"}},
		"unknown product":    {func(b *office.Sale) { b.Event, b.Session, b.Product = "rich", "s1", "p9" }, office.Error{Kind: office.Invalid, Field: "product"}},
	} {
		b := sale(4, "")
		b.Event = "gala"
		c.change(&b)
		if r, err := o.Sell(t.Context(), s.intent("k"), b); !errors.Is(err, &c.want) {
			t.Errorf("%s: outcome %d, %v, want kind %d of %q", name, r.Outcome, err, c.want.Kind, c.want.Field)
		}
	}
	if all := s.all(o); len(all) != 0 {
		t.Errorf("%d orders were made", len(all))
	}
	b := sale(1, "")
	b.Event = "gala"
	s.sell(o, "k", b) // with the very key
}

func TestNothingIsSoldWithoutAKey(t *testing.T) {
	s := newStage(t)
	o, _ := s.open("1", func(o *office.Options) { o.Signer = nil })
	if _, err := o.Sell(t.Context(), s.intent("k"), sale(1, "")); !errors.Is(err, &office.Error{Kind: office.Unavailable}) {
		t.Errorf("got %v, want Unavailable", err)
	}
}

// TestRepeat: a repeat gets the first answer, also when nothing is on any more; the
// same key with another body, and that of another caller, are told apart; after its
// window the key is a new intent.
func TestRepeat(t *testing.T) {
	s := newStage(t)
	start := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	var later atomic.Int64 // nanoseconds; the office's own work reads the clock, too
	s.now = func() time.Time { return start.Add(time.Duration(later.Load())) }
	o, _ := s.open("1", nil)
	first, err := o.Sell(t.Context(), s.intent("k"), sale(2, office.Cash))
	if err != nil || first.Outcome != seen.Won {
		t.Fatalf("outcome %d, %v", first.Outcome, err)
	}
	again := func(want seen.Outcome, in office.Intent) office.Reply {
		t.Helper()
		r, err := o.Sell(t.Context(), in, sale(2, office.Cash))
		if err != nil || r.Outcome != want {
			t.Errorf("outcome %d, %v, want %d", r.Outcome, err, want)
		}
		return r
	}
	events := s.events
	s.events = nil
	if r := again(seen.Echoed, s.intent("k")); string(r.Answer) != string(first.Answer) {
		t.Errorf("the repeat got %q, the first %q", r.Answer, first.Answer)
	}
	s.events = events
	other := s.intent("k")
	other.Fingerprint = []byte("another body")
	again(seen.Mismatch, other)
	other = s.intent("k")
	other.Policy.OnRepeat = seen.Refuse
	again(seen.Refused, other)
	other = s.intent("k")
	other.Caller = "shop"
	again(seen.Won, other)
	later.Store(int64(24*time.Hour - 1))
	again(seen.Echoed, s.intent("k"))
	later.Store(int64(24 * time.Hour))
	again(seen.Won, s.intent("k"))
	if all := s.all(o); len(all) != 3 {
		t.Errorf("%d orders, want 3", len(all))
	}
}

// TestAtOnce: of fifty with one key one sells, and all get the same bytes.
func TestAtOnce(t *testing.T) {
	s := newStage(t)
	o, _ := s.open("1", nil)
	const rounds, callers = 10, 50
	for n := range rounds {
		in := s.intent(strings.Repeat("k", n+1))
		answers := make([]string, callers)
		won := make([]bool, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				r, err := o.Sell(context.Background(), in, sale(1, office.Cash))
				if err != nil {
					t.Errorf("sell: %v", err)
				}
				answers[i], won[i] = string(r.Answer), r.Outcome == seen.Won
			})
		}
		wg.Wait()
		winners := 0
		for i := range callers {
			if answers[i] != answers[0] || answers[i] == "" {
				t.Fatalf("round %d: %q and %q", n, answers[0], answers[i])
			}
			if won[i] {
				winners++
			}
		}
		if winners != 1 {
			t.Fatalf("round %d: %d won", n, winners)
		}
	}
	if all := s.all(o); len(all) != rounds {
		t.Errorf("%d orders, want %d", len(all), rounds)
	}
}

// TestForgetting: Run takes out what is past its window, and nothing else.
func TestForgetting(t *testing.T) {
	s := newStage(t)
	s.policy.Remember = time.Hour
	start := time.Now()
	s.now = func() time.Time { return start }
	o, _ := s.open("1", nil)
	old := s.intent("old")
	s.sell(o, old.Key, sale(1, office.Cash))
	s.policy.Remember = 2 * time.Hour
	s.sell(o, "young", sale(1, office.Cash))
	s.now = func() time.Time { return start.Add(time.Hour) }
	_, kill := s.open("2", nil) // it forgets as it starts
	s.eventually("the old row is forgotten", func() bool { return !s.remembers("old") })
	kill()
	if !s.remembers("young") {
		t.Error("a row was forgotten within its window")
	}
}
