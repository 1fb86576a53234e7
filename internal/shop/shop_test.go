package shop_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/seen"
	"admitone/internal/shop"
	"admitone/internal/strictjson"
	"admitone/internal/ticket"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// stage is a shop with a real office and ledger, on a store in memory. Every
// transaction runs twice: only the last run counts.
type stage struct {
	t      *testing.T
	mem    *kv.Mem
	ledger *ledger.Ledger
	office *office.Office
	shop   *shop.Shop
	now    time.Time
	ids    int
}

// centre is the ledger as the office sees it.
type centre struct{ *ledger.Ledger }

var errAgain = errors.New("again")

func (c centre) Within(ctx context.Context, fn func(office.Tx, office.Gates) error) error {
	run := func(after error) error {
		return c.Ledger.Within(ctx, func(w *ledger.Within) error { return errors.Join(fn(w.Tx().(office.Tx), gates{w}), after) })
	}
	if err := run(errAgain); err.Error() != errAgain.Error() {
		return err
	}
	return run(nil)
}

type gates struct{ w *ledger.Within }

func (g gates) Revoke(id ticket.ID, by string) error {
	return g.w.Revoke(ticket.FormatA1, id, true, by)
}
func (g gates) Used(string, ticket.ID) (bool, error) { return true, nil }

func key(n byte) ed25519.PrivateKey {
	h := sha256.Sum256([]byte{n})
	return ed25519.NewKeyFromSeed(h[:])
}

func newStage(t *testing.T) *stage {
	t.Helper()
	mem := kv.NewMem()
	store := ledgerstore.New(mem)
	s := onStore(t, "1", store, store.Books())
	s.mem = mem
	s.push()
	return s
}

// push puts an event on the programme.
func (s *stage) push() {
	s.t.Helper()
	_, err := s.ledger.PushProgramme(s.t.Context(), ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: "gala", Name: "Gala", Open: s.now, Close: s.now.Add(1000 * time.Hour), Forget: s.now.Add(2000 * time.Hour),
		Formats: []string{"a1"}, Keys: []ticket.ProgrammeKey{ticket.ProgrammeKeyOf(key(2).Public().(ed25519.PublicKey), false)},
	}}})
	s.ok(err)
}

// onStore is a ledger process on a store.
func onStore(t *testing.T, process string, store ledger.Store, books office.Books) *stage {
	t.Helper()
	s := &stage{t: t, now: time.Unix(1_800_000_000, 0).UTC()}
	log := slog.New(slog.DiscardHandler)
	clock := func() time.Time { return s.now }
	var err error
	s.ledger, err = ledger.New(store, ledger.Options{Process: process, Now: clock, Log: log, ProgrammeKey: key(1)})
	s.ok(err)
	signer := ticket.NewSigner(key(2))
	c := centre{s.ledger}
	s.office, err = office.New(office.Options{
		Books: books, Ledger: c, Answer: func(office.Result) ([]byte, error) { return nil, nil }, Signer: &signer, Process: process, Now: clock, Log: log,
	})
	s.ok(err)
	s.shop, err = shop.New(shop.Options{Office: s.office, Books: books, Within: c.Within, Now: clock, Log: log})
	s.ok(err)
	return s
}

func (s *stage) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// receive sends an event under an id of its own.
func (s *stage) receive(kind, data string) (shop.Reply, error) {
	s.ids++
	return s.shop.Receive(context.Background(), s.message(fmt.Sprint("msg_", s.ids), kind, data))
}

func (s *stage) message(id, kind, data string) shop.Message {
	body := fmt.Sprintf(`{"type":%q,"timestamp":"2027-01-15T08:00:00Z","data":%s}`, kind, data)
	sum := sha256.Sum256([]byte(body))
	return shop.Message{
		Source: "web", ID: id, Body: []byte(body), Digest: sum[:],
		Policy: seen.Policy{Endpoint: "webhook/web", OnRepeat: seen.Refuse, Remember: 7 * 24 * time.Hour},
	}
}

const paid = `{"order":"S-1","count":3,"amount":4500,"currency":"EUR","customer":{"mail":"x@example.org"}}`

// state gives how many of a shop's order's tickets hold, in the books and by what
// gates are told, and what is left of its money.
func (s *stage) state(order string) (holding, revoked int, left int64) {
	s.t.Helper()
	a, err := s.shop.Find(s.t.Context(), "web", order)
	if errors.Is(err, &office.Error{Kind: office.Missing}) {
		return 0, 0, 0
	}
	s.ok(err)
	for _, t := range a.Tickets {
		if t.Refund == "" {
			holding++
		}
		r, err := s.ledger.Ticket(s.t.Context(), ticket.FormatA1, t.ID)
		s.ok(err)
		if r.Revoked {
			revoked++
		}
	}
	return holding, revoked, a.Left()
}

func (s *stage) orders() int {
	s.t.Helper()
	list, _, err := s.office.Orders(s.t.Context(), "", 1000)
	s.ok(err)
	return len(list)
}

func TestPaidThenPartThenAll(t *testing.T) {
	s := newStage(t)
	r, err := s.receive(shop.Paid, paid)
	if err != nil || r.Status != shop.Accepted || len(r.Tickets) != 3 || !strings.HasPrefix(r.Order, "ord_") {
		t.Fatalf("paid: %+v, %v", r, err)
	}
	a, err := s.office.Order(t.Context(), r.Order)
	if err != nil || a.Charge.Payment != office.Shop || a.Charge.Amount != 4500 || a.Charge.Invoice != "S-1" || a.Caller != "webhook/web" {
		t.Errorf("booked as %+v, %v", a, err)
	}
	part := fmt.Sprintf(`{"order":"S-1","tickets":[%q],"amount":1000,"note":"ill"}`, r.Tickets[1])
	for range 2 { // the same news under two ids
		if _, err := s.receive(shop.Refunded, part); err != nil {
			t.Fatal(err)
		}
		if holding, revoked, left := s.state("S-1"); holding != 2 || revoked != 1 || left != 3500 {
			t.Errorf("after a part: %d hold, %d revoked, %d left", holding, revoked, left)
		}
	}
	for range 2 {
		if r, err := s.receive(shop.Cancelled, `{"order":"S-1","amount":4500}`); err != nil || r.Order == "" {
			t.Errorf("cancelled: %+v, %v", r, err)
		}
		if holding, revoked, left := s.state("S-1"); holding != 0 || revoked != 3 || left != 0 {
			t.Errorf("after all: %d hold, %d revoked, %d left", holding, revoked, left)
		}
	}
}

// TestAnyOrderOfArrival: what comes of an order is the same for every order in
// which its webhooks arrive.
func TestAnyOrderOfArrival(t *testing.T) {
	for _, sequence := range [][]string{
		{shop.Paid, shop.Refunded}, {shop.Refunded, shop.Paid}, {shop.Paid, shop.Canceled, shop.Paid}, {shop.Cancelled, shop.Refunded, shop.Paid},
		{shop.Paid, shop.Paid, shop.Refunded, shop.Cancelled}, {shop.Refunded, shop.Paid, shop.Paid},
	} {
		s := newStage(t)
		for _, kind := range sequence {
			data := `{"order":"S-1"}`
			if kind == shop.Paid {
				data = paid
			}
			if r, err := s.receive(kind, data); err != nil || r.Status != shop.Accepted {
				t.Errorf("%v: %s: %+v, %v", sequence, kind, r, err)
			}
		}
		if holding, revoked, _ := s.state("S-1"); holding != 0 || holding+revoked > 3 || s.orders() > 1 {
			t.Errorf("%v: %d hold, %d revoked, %d orders", sequence, holding, revoked, s.orders())
		}
	}
}

func TestARepeatedIdDoesNothing(t *testing.T) {
	s := newStage(t)
	m := s.message("msg_x", shop.Paid, paid)
	first := s.now
	if _, err := s.shop.Receive(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Hour)
	before := ledgertest.Dump(t, s.mem)
	r, err := s.shop.Receive(t.Context(), m)
	if err != nil || r.Status != shop.Duplicate || !r.FirstSeen.Equal(first) || r.Changed {
		t.Errorf("again: %+v, %v, want a duplicate of %s", r, err, first)
	}
	other := s.message("msg_x", shop.Cancelled, `{"order":"S-1"}`)
	if r, err := s.shop.Receive(t.Context(), other); err != nil || r.Status != shop.Duplicate || !r.Changed {
		t.Errorf("with another body: %+v, %v, want a duplicate that says so", r, err)
	}
	if d := ledgertest.Diff(before, ledgertest.Dump(t, s.mem)); len(d) > 0 {
		t.Errorf("a repeat changed %v", d)
	}
	s.now = s.now.Add(7 * 24 * time.Hour) // the id is forgotten; the shop's own is not
	r, err = s.shop.Receive(t.Context(), m)
	if err != nil || r.Status != shop.Accepted || len(r.Tickets) != 3 || s.orders() != 1 {
		t.Errorf("past the window: %+v, %v, %d orders, want the first one's tickets", r, err, s.orders())
	}
}

// TestWhatIsWrongLeavesNothing: every refusal names its field, and may come again.
func TestWhatIsWrongLeavesNothing(t *testing.T) {
	s := newStage(t)
	if _, err := s.receive(shop.Paid, paid); err != nil {
		t.Fatal(err)
	}
	before := ledgertest.Dump(t, s.mem)
	for name, c := range map[string]struct{ kind, data, field string }{
		"no type":              {"", `{}`, "type"},
		"no data":              {shop.Paid, `null`, "data"},
		"no order":             {shop.Paid, `{"count":1,"amount":1,"currency":"EUR"}`, "data.order"},
		"a long order":         {shop.Paid, `{"order":"` + strings.Repeat("x", 201) + `"}`, "data.order"},
		"an odd order":         {shop.Paid, `{"order":"a\u0000b","count":1,"amount":1,"currency":"EUR"}`, "data.order"},
		"order is a number":    {shop.Paid, `{"order":1}`, "data.order"},
		"twice":                {shop.Paid, `{"order":"a","order":"b"}`, "data.order"},
		"no count":             {shop.Paid, `{"order":"S-2","amount":1,"currency":"EUR"}`, "data.count"},
		"too many":             {shop.Paid, `{"order":"S-2","count":501,"amount":1,"currency":"EUR"}`, "data.count"},
		"no amount":            {shop.Paid, `{"order":"S-2","count":1,"currency":"EUR"}`, "data.amount"},
		"no currency":          {shop.Paid, `{"order":"S-2","count":1,"amount":1,"currency":"euro"}`, "data.currency"},
		"unknown event":        {shop.Paid, `{"order":"S-2","count":1,"amount":1,"currency":"EUR","event":"ball"}`, "data.event"},
		"other count":          {shop.Paid, `{"order":"S-1","count":4,"amount":4500,"currency":"EUR"}`, "data.count"},
		"other amount":         {shop.Paid, `{"order":"S-1","count":3,"amount":4501,"currency":"EUR"}`, "data.amount"},
		"part of no order":     {shop.Refunded, `{"order":"S-2","tickets":["30303030303030303030303030303031"]}`, "data.order"},
		"ticket of no order":   {shop.Refunded, `{"order":"S-1","tickets":["30303030303030303030303030303031"]}`, "data.tickets[0]"},
		"no ticket":            {shop.Refunded, `{"order":"S-1","tickets":["x"]}`, "data.tickets[0]"},
		"a note of many lines": {shop.Refunded, `{"order":"S-1","note":"a\nb"}`, "data.note"},
	} {
		_, err := s.receive(c.kind, c.data)
		var bad *strictjson.Error
		var wrong *office.Error
		field := ""
		switch {
		case errors.As(err, &bad):
			field = bad.Field
		case errors.As(err, &wrong):
			field = wrong.Field
		}
		if field != c.field {
			t.Errorf("%s: %v with field %q, want %q", name, err, field, c.field)
		}
	}
	if d := ledgertest.Diff(before, ledgertest.Dump(t, s.mem)); len(d) > 0 {
		t.Errorf("refused messages left %v", d)
	}
}

func TestOtherTypesAreIgnored(t *testing.T) {
	s := newStage(t)
	for _, data := range []string{`{}`, `null`, `[1]`, `"x"`} {
		if r, err := s.receive("customer.created", data); err != nil || r.Status != shop.Ignored {
			t.Errorf("%s: %+v, %v", data, r, err)
		}
	}
	if s.orders() != 0 {
		t.Error("an order came of it")
	}
}

// TestManyAtOnce: of one order reported many times at once, under one id and under
// many, there is one; in one process, and in several on one database.
func TestManyAtOnce(t *testing.T) {
	t.Run("one process", func(t *testing.T) { manyAtOnce(t, newStage(t)) })
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		var ledgers []*stage
		for i := range 3 {
			name := fmt.Sprint(i)
			store, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Process: name, Volatile: true, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			ledgers = append(ledgers, onStore(t, name, store, store.Books()))
		}
		ledgers[0].push()
		manyAtOnce(t, ledgers...)
	})
}

func manyAtOnce(t *testing.T, ledgers ...*stage) {
	const rounds, senders = 8, 24
	for round := range rounds {
		order := strings.Replace(paid, "S-1", fmt.Sprint("R-", round), 1)
		var wg sync.WaitGroup
		replies := make([]shop.Reply, senders)
		for i := range senders {
			s := ledgers[i%len(ledgers)]
			wg.Go(func() {
				var err error
				replies[i], err = s.shop.Receive(context.Background(), s.message(fmt.Sprint("msg_", round, "_", i/2), shop.Paid, order))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ids, counts := map[string]bool{}, map[shop.Status]int{}
		for _, r := range replies {
			if counts[r.Status]++; r.Status == shop.Accepted {
				ids[r.Order] = true
			}
		}
		if got := ledgers[0].orders(); len(ids) != 1 || got != round+1 || counts[shop.Accepted] != senders/2 || counts[shop.Duplicate] != senders/2 {
			t.Fatalf("round %d: orders %v, %d in the books, replies %v", round, ids, got, counts)
		}
	}
}

func TestFind(t *testing.T) {
	s := newStage(t)
	if _, err := s.receive(shop.Paid, paid); err != nil {
		t.Fatal(err)
	}
	if a, err := s.shop.Find(t.Context(), "web", "S-1"); err != nil || len(a.Tickets) != 3 {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, c := range [][2]string{{"web", "S-2"}, {"till", "S-1"}, {"web", ""}, {"web", strings.Repeat("x", 999)}} {
		if _, err := s.shop.Find(t.Context(), c[0], c[1]); !errors.Is(err, &office.Error{Kind: office.Missing}) {
			t.Errorf("%q of %q: %v, want that it is missing", c[1], c[0], err)
		}
	}
	if _, err := shop.New(shop.Options{}); err == nil {
		t.Error("made of nothing")
	}
}
