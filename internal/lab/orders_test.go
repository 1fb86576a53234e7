package lab

import (
	"os"
	"strings"
	"testing"

	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
	"admitone/internal/ticket"
)

// What the box office sells and takes back, as the gates see it.
func TestBoxOffice(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 2}).play([]scene{
		{"sold tickets open once", soldTickets},
		{"refunded tickets are refused", refundedTickets},
		{"an acquirer that answers a ledger that was killed", lateAcquirer},
	})
}

// desk is a client with the box office's key.
func (s *stage) desk() *ledgerhttp.Client {
	s.t.Helper()
	key, err := os.ReadFile(s.at.orderKey())
	s.must(err)
	c, err := ledgerhttp.NewClient(s.URL(), string(key), nil)
	s.must(err)
	return c
}

// order sells n tickets under a key.
func (s *stage) order(c *ledgerhttp.Client, key string, n int, how office.Payment) (ledgerhttp.Sold, error) {
	amount := int64(n) * 1225
	sold, _, err := c.Order(s.t.Context(), key, office.Sale{Tickets: n, Amount: &amount, Currency: "EUR", Payment: how})
	return sold, err
}

func (s *stage) buy(key string, n int, how office.Payment) (out []pass) {
	s.t.Helper()
	sold, err := s.order(s.desk(), key, n, how)
	s.must(err)
	for _, tk := range sold.Tickets {
		u, err := ticket.Inspect(tk.Token)
		s.must(err)
		out = append(out, pass{tk.Token, tk.ID.String(), u.Ticket})
	}
	return out
}

// soldTickets: a family of four on one order is four admissions, each once.
func soldTickets(s *stage) {
	family := s.buy("family", 4, "")
	for i, p := range s.buy("family", 4, "") {
		if p.id != family[i].id {
			s.t.Errorf("the retry has ticket %s, the order %s", p.id, family[i].id)
		}
		s.admit(1+i%2, p)
	}
	s.refuse(2, family[0], "1")
	s.refuse(1, family[1], "2")
}

func refundedTickets(s *stage) {
	c := s.desk()
	two := s.buy("refunded", 2, office.Cash)
	s.admit(1, two[0])
	orders, order := 0, ""
	for o, err := range c.AllOrders(s.t.Context()) {
		s.must(err)
		orders, order = orders+1, o.Order
	}
	if orders != 2 {
		s.t.Errorf("%d orders, want 2", orders)
	}
	if _, _, err := c.Refund(s.t.Context(), "r1", order, office.Return{}); err == nil || !strings.Contains(err.Error(), "was used") {
		s.t.Errorf("a used ticket was refunded: %v", err)
	}
	r, _, err := c.Refund(s.t.Context(), "r2", order, office.Return{Tickets: []ticket.ID{two[1].ticket.ID}})
	if err != nil || r.Amount != 1225 {
		s.t.Fatalf("refund: %+v, %v", r, err)
	}
	s.eventually("a revoked ticket at both gates", func() bool {
		return s.show(1, two[1]).Reason == ticket.Revoked && s.show(2, two[1]).Reason == ticket.Revoked
	})
}

// lateAcquirer: the money is moved, the answer is late, and the ledger is killed
// meanwhile. The one that comes after it finds out, and the retry gets the tickets.
func lateAcquirer(s *stage) {
	s.must(s.Acquirer("late"))
	c, answer := s.desk(), make(chan error, 1)
	go func() {
		_, err := s.order(c, "by-card", 1, office.Card)
		answer <- err
	}()
	s.eventually("the charge", func() bool { return len(s.bank.sim.Movements()) == 1 })
	s.must(s.Kill("ledger"))
	s.must(s.Acquirer("approve"))
	s.must(s.Start(s.t.Context(), "ledger"))
	s.must(<-answer)
	s.admit(1, s.buy("by-card", 1, office.Card)[0])
	if m := s.bank.sim.Movements(); len(m) != 1 || m[0].Amount != 1225 {
		s.t.Errorf("the acquirer moved %+v", m)
	}
}
