package office_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/office"
	"admitone/internal/seen"
)

// inBubble runs a test in virtual time with a bank.
func inBubble(t *testing.T, test func(s *stage, b *bank)) {
	synctest.Test(t, func(t *testing.T) {
		s, b := newStage(t), newBank()
		s.acquirer = b
		test(s, b)
	})
}

// audit holds the books against the bank: each order was paid once, and what was
// paid has its order.
func (s *stage) audit(o *office.Office, b *bank, orders int) {
	s.t.Helper()
	all := s.all(o)
	if moved, _ := b.count(); len(all) != orders || moved != orders {
		s.t.Errorf("%d orders and %d charges, want %d", len(all), moved, orders)
	}
	for _, a := range all {
		if t, paid := b.moved[a.ID]; !paid || t.Amount != a.Charge.Amount || a.Charge.Reference != "pay_"+a.ID {
			s.t.Errorf("order %s was not paid so: %+v, %+v", a.ID, t, a.Charge)
		}
	}
}

func (s *stage) wants(o *office.Office, key string, want seen.Outcome) office.Reply {
	s.t.Helper()
	r, err := o.Sell(s.t.Context(), s.intent(key), sale(2, office.Card))
	if err != nil || r.Outcome != want {
		s.t.Fatalf("outcome %d, %v, want %d", r.Outcome, err, want)
	}
	return r
}

func TestCardIsCharged(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, _ := s.open("1", nil)
		first := s.wants(o, "k", seen.Won)
		if r := s.wants(o, "k", seen.Echoed); string(r.Answer) != string(first.Answer) {
			t.Errorf("the repeat got %q, the first %q", r.Answer, first.Answer)
		}
		s.audit(o, b, 1)
	})
}

// TestDeclineIsAResult: it is echoed, and nothing is sold.
func TestDeclineIsAResult(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, _ := s.open("1", nil)
		b.behave(func(context.Context, func() office.Moved) (office.Moved, error) {
			return office.Moved{Declined: "no money"}, nil
		})
		first := s.wants(o, "k", seen.Won)
		b.behave(atOnce)
		r := s.wants(o, "k", seen.Echoed)
		if parse(t, r.Answer).Declined != "no money" || string(r.Answer) != string(first.Answer) {
			t.Errorf("the repeat got %q, the first %q", r.Answer, first.Answer)
		}
		s.audit(o, b, 0)
	})
}

// TestFailureLeavesNothing: an acquirer that is down is a failure at once, and the
// very same request works when it is back.
func TestFailureLeavesNothing(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, _ := s.open("1", nil)
		b.behave(down)
		began := time.Now()
		if r, err := o.Sell(s.t.Context(), s.intent("k"), sale(2, office.Card)); !errors.Is(err, &office.Error{Kind: office.Unavailable}) {
			t.Fatalf("outcome %d, %v, want Unavailable", r.Outcome, err)
		}
		if s.remembers("k") || time.Since(began) > time.Second {
			t.Errorf("after %v the key is remembered: %t", time.Since(began), s.remembers("k"))
		}
		b.behave(atOnce)
		s.wants(o, "k", seen.Won)
		s.audit(o, b, 1)
	})
}

// TestSlowAcquirer: the caller is told to come again, does, and gets the result;
// the charge that was under way is the only one.
func TestSlowAcquirer(t *testing.T) {
	for name, say := range map[string]func(context.Context, func() office.Moved) (office.Moved, error){"late": late, "lost": lost} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *stage, b *bank) {
				o, _ := s.open("1", nil)
				b.behave(say)
				began := time.Now()
				s.wants(o, "k", seen.InProgress)
				if d := time.Since(began); d > 5*time.Second {
					t.Errorf("the caller waited %v", d)
				}
				other := s.intent("k")
				other.Fingerprint = []byte("another")
				if r, err := o.Sell(s.t.Context(), other, sale(2, office.Card)); err != nil || r.Outcome != seen.Mismatch {
					t.Errorf("another body meanwhile: outcome %d, %v", r.Outcome, err)
				}
				time.Sleep(2 * time.Minute)
				s.wants(o, "k", seen.Echoed)
				s.audit(o, b, 1)
			})
		})
	}
}

// TestFailureAfterSilence: once an answer was lost, a failure proves nothing: the
// acquirer is asked until it says what it did.
func TestFailureAfterSilence(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, _ := s.open("1", nil)
		b.behave(late)
		s.wants(o, "k", seen.InProgress)
		b.behave(down)
		time.Sleep(25 * time.Second) // the second request fails while the first is under way
		if !s.remembers("k") {
			t.Fatal("the key was forgotten while its charge was under way")
		}
		time.Sleep(2 * time.Minute)
		s.wants(o, "k", seen.Echoed)
		s.audit(o, b, 1)
	})
}

// TestAskedLessAndLess: between questions it gets longer and longer
// times, up to a minute.
func TestAskedLessAndLess(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o, _ := s.open("1", nil)
		b.behave(func(context.Context, func() office.Moved) (office.Moved, error) {
			return office.Moved{}, errors.New("502")
		})
		s.wants(o, "k", seen.InProgress)
		time.Sleep(time.Minute)
		if _, asked := b.count(); asked < 4 || asked > 12 {
			t.Errorf("asked %d times in the first minute", asked)
		}
		time.Sleep(time.Hour)
		if _, asked := b.count(); asked < 60 || asked > 150 {
			t.Errorf("asked %d times in the first hour", asked)
		}
		b.behave(atOnce)
		time.Sleep(2 * time.Minute)
		s.wants(o, "k", seen.Echoed)
		s.audit(o, b, 1)
	})
}

// TestKilledInBetween: whatever the acquirer did when the process died, the next
// one finds out as it starts, and finishes.
func TestKilledInBetween(t *testing.T) {
	for name, say := range map[string]func(context.Context, func() office.Moved) (office.Moved, error){
		"before the charge": func(ctx context.Context, _ func() office.Moved) (office.Moved, error) {
			<-ctx.Done()
			return office.Moved{}, ctx.Err()
		},
		"after the charge":  lost,
		"during the charge": late,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *stage, b *bank) {
				o, kill := s.open("1", nil)
				b.behave(say)
				s.wants(o, "k", seen.InProgress)
				kill()
				s.crash()
				b.behave(atOnce)
				began := time.Now()
				o, _ = s.open("1", nil)
				s.wants(o, "k", seen.Echoed)
				if d := time.Since(began); d > time.Second {
					t.Errorf("it took the next process %v", d)
				}
				time.Sleep(time.Minute)
				s.audit(o, b, 1)
			})
		})
	}
}

// TestTakenOver: another ledger on the same books waits for the holder's lease, and
// finishes then; the first one's late answer changes nothing.
func TestTakenOver(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		o1, _ := s.open("1", func(o *office.Options) { o.Timeout = time.Hour }) // its answer will come very late
		o2, _ := s.open("2", nil)
		release := make(chan struct{})
		b.behave(func(_ context.Context, move func() office.Moved) (office.Moved, error) {
			<-release
			return move(), nil
		})
		s.wants(o1, "k", seen.InProgress)
		b.behave(atOnce)
		time.Sleep(10 * time.Second)
		if _, asked := b.count(); asked != 1 {
			t.Errorf("the acquirer was asked %d times within the lease", asked)
		}
		time.Sleep(2 * time.Hour)
		r := s.wants(o2, "k", seen.Echoed)
		s.audit(o2, b, 1)
		close(release)
		synctest.Wait()
		if again := s.wants(o1, "k", seen.Echoed); string(again.Answer) != string(r.Answer) {
			t.Errorf("the late answer changed %q to %q", r.Answer, again.Answer)
		}
		s.audit(o1, b, 1)
	})
}

// TestStaleHolder: what a ledger learns of work that another one took over changes
// nothing, be it a failure or no answer.
func TestStaleHolder(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		late bool // after the other one had its answer
	}{
		"a failure": {office.ErrNotMoved, false}, "no answer": {errors.New("reset"), false},
		"a late failure": {office.ErrNotMoved, true}, "no answer, late": {errors.New("reset"), true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *stage, b *bank) {
				o1, _ := s.open("1", func(o *office.Options) { o.Timeout = time.Hour })
				o2, _ := s.open("2", nil)
				first, second := make(chan struct{}), make(chan struct{})
				b.behave(func(context.Context, func() office.Moved) (office.Moved, error) {
					<-first
					return office.Moved{}, c.err
				})
				s.wants(o1, "k", seen.InProgress)
				b.behave(func(_ context.Context, move func() office.Moved) (office.Moved, error) {
					<-second
					return move(), nil
				})
				time.Sleep(time.Hour + time.Minute) // the second one has it, and waits for its answer
				turns := []chan struct{}{first, second}
				if c.late {
					slices.Reverse(turns)
				}
				for _, turn := range turns {
					close(turn)
					time.Sleep(time.Second)
				}
				s.wants(o2, "k", seen.Echoed)
				time.Sleep(time.Hour)
				s.audit(o2, b, 1)
				if n := s.undone(); n != 0 {
					t.Errorf("%d pieces of work are left", n)
				}
			})
		})
	}
}

// undone counts the work that is not settled.
func (s *stage) undone() (n int) {
	s.t.Helper()
	err := s.books.View(s.t.Context(), func(tx office.Tx) error {
		rows, _, err := tx.Page("work", "due", "", 100)
		n = len(rows)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestAcquirerSilentBeyondTheWindow: what was charged becomes an order although
// nobody can ask for it by its key any more, and the key is a new intent.
func TestAcquirerSilentBeyondTheWindow(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		s.policy.Remember = 10 * time.Minute
		o, kill := s.open("1", nil)
		b.behave(lost)
		s.wants(o, "k", seen.InProgress)
		kill()
		time.Sleep(time.Hour)
		b.behave(atOnce)
		err := s.books.Update(s.t.Context(), func(tx office.Tx) error {
			_, err := tx.Seen().Prune("orders", time.Now(), 10)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		o, _ = s.open("2", nil)
		s.wants(o, "k", seen.Won)
		time.Sleep(time.Minute)
		s.audit(o, b, 2)
	})
}

// TestWindowShorterThanTheWork: a key is not forgotten while its work is under way.
func TestWindowShorterThanTheWork(t *testing.T) {
	inBubble(t, func(s *stage, b *bank) {
		s.policy.Remember = time.Second
		o, _ := s.open("1", nil)
		b.behave(func(ctx context.Context, _ func() office.Moved) (office.Moved, error) {
			<-ctx.Done()
			return office.Moved{}, ctx.Err()
		})
		for range 100 {
			s.wants(o, "k", seen.InProgress)
			time.Sleep(7 * time.Second)
		}
		b.behave(atOnce)
		time.Sleep(2 * time.Minute)
		s.audit(o, b, 1)
	})
}

// TestManyLedgersManyDeaths: callers retry one key each against processes that are
// killed at random, with an acquirer that does anything. In the end each key has
// one answer, one charge and one order, or a decline and neither.
func TestManyLedgersManyDeaths(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(s *stage, b *bank) { s.manyDeaths(b, rand.New(rand.NewPCG(seed, 1)), seed) })
	}
}

func (s *stage) manyDeaths(b *bank, r *rand.Rand, seed uint64) {
	const keys, callers = 4, 3
	var mu sync.Mutex // of r
	pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return r.IntN(n) }
	b.behave(func(ctx context.Context, move func() office.Moved) (office.Moved, error) {
		return []func(context.Context, func() office.Moved) (office.Moved, error){atOnce, down, lost, late}[pick(4)](ctx, move)
	})
	var ledgers [2]*office.Office
	var kills [2]func()
	start := func(i int) { ledgers[i], kills[i] = s.open(fmt.Sprint(i), nil) }
	start(0)
	start(1)
	answers := make(chan [2]string, keys*callers)
	for k := range keys {
		for range callers {
			go func() {
				for {
					mu.Lock()
					o := ledgers[r.IntN(2)]
					mu.Unlock()
					ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
					got, err := o.Sell(ctx, s.intent(fmt.Sprint(k)), sale(1, office.Card))
					cancel()
					if err == nil && got.Answer != nil {
						answers <- [2]string{fmt.Sprint(k), string(got.Answer)}
						return
					}
					time.Sleep(time.Duration(pick(5000)) * time.Millisecond)
				}
			}()
		}
	}
	for range 10 {
		time.Sleep(time.Duration(pick(20_000)) * time.Millisecond)
		i := pick(2)
		kills[i]()
		mu.Lock()
		start(i)
		mu.Unlock()
	}
	b.behave(atOnce)
	said := map[string]string{}
	for range keys * callers {
		a := <-answers
		if first, ok := said[a[0]]; ok && first != a[1] {
			s.t.Errorf("seed %d: two answers to key %s: %s, %s", seed, a[0], first, a[1])
		}
		said[a[0]] = a[1]
	}
	time.Sleep(10 * time.Minute)
	s.audit(ledgers[0], b, keys)
}
