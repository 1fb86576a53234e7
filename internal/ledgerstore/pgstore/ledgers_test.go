package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// TestAskRace: 50 gates ask about one ticket at once, of three ledgers on one
// database, and each asks twice. One is first, and is told so whenever it asks; all
// others are told of that one. Not one ticket has two, and not one has none.
func TestAskRace(t *testing.T) {
	const gates, rounds = 50, 10
	all := ledgers(t, pgtest.Database(t), &lines{}, pgstore.Options{}, "a", "b", "c")
	gs := make([]gate, gates)
	for i := range gs {
		gs[i].src = ticket.Source(fmt.Sprintf("g%02d", i))
	}
	for round := range rounds {
		answers := make([]ledger.AskReply, gates)
		var eg errgroup.Group
		for i := range gs {
			eg.Go(func() error {
				c := gs[i].claim(unitOf(round))
				first, err := gs[i].ask(all[i%3], c)
				if err != nil {
					return err
				}
				again, err := gs[i].ask(all[(i+1)%3], c)
				if again.Answer != first.Answer || (again.First == nil) != (first.First == nil) || first.First != nil && *again.First != *first.First {
					err = errors.Join(err, fmt.Errorf("asked again, %s is told %+v after %+v", c.ID, again, first))
				}
				answers[i] = first
				return err
			})
		}
		if err := eg.Wait(); err != nil {
			t.Fatal(err)
		}
		w := slices.IndexFunc(answers, func(a ledger.AskReply) bool { return a.Answer == ticket.AnswerFirst })
		if w < 0 {
			t.Fatalf("round %d: nobody is first", round)
		}
		for i, a := range answers {
			if i != w && (a.Answer != ticket.AnswerInProgress || a.First == nil || a.First.Claim != answers[w].Claim) {
				t.Fatalf("round %d: %s is first, gate %d is told %+v", round, answers[w].Claim, i, a)
			}
		}
	}
}

// TestUploadsMeet: two gates that were cut off upload the same admissions at once,
// in opposite orders, each to its own ledger: their transactions wait for each other
// crosswise. Each ticket has one conflict, announced once, and nothing is lost.
func TestUploadsMeet(t *testing.T) {
	const tickets = 40
	log := &lines{}
	all := ledgers(t, pgtest.Database(t), log, pgstore.Options{}, "a", "b")
	gs := []*gate{{src: "g1"}, {src: "g2"}}
	for n := range tickets {
		gs[0].revise(gs[0].claim(unitOf(n)), ticket.Admitted)
		gs[1].revise(gs[1].claim(unitOf(tickets-1-n)), ticket.Admitted)
	}
	var eg errgroup.Group
	for i, g := range gs {
		eg.Go(func() error {
			r, err := g.upload(all[i])
			if err == nil && (len(r.High) != 1 || r.High[0].Pos != 2*tickets || len(r.SetAside) > 0) {
				err = fmt.Errorf("receipt of %s: %+v", g.src, r)
			}
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		t.Fatal(err)
	}
	conflicts, _, err := all[1].Conflicts(t.Context(), "", 1000)
	if err != nil || len(conflicts) != tickets || log.count("msg=conflict ") != tickets {
		t.Errorf("%d conflicts, announced %d times, %v; want %d", len(conflicts), log.count("msg=conflict "), err, tickets)
	}
	stats, err := all[0].Stats(t.Context())
	if err != nil || len(stats.Events) != 1 || stats.Events[0].Admitted != 2*tickets || stats.Events[0].Conflicts != tickets {
		t.Errorf("counted %+v, %v", stats.Events, err)
	}
}

// TestFeedsOfTwo: two ledgers write feeds at once, each under its own source and
// without a gap; each knows at once what the other wrote, and reads it out to gates.
func TestFeedsOfTwo(t *testing.T) {
	const each = 30
	ctx := t.Context()
	all := ledgers(t, pgtest.Database(t), &lines{}, pgstore.Options{}, "a", "b")
	var eg errgroup.Group
	for i, l := range all {
		eg.Go(func() error {
			for n := range each {
				u, other := unitOf(i*each+n), all[1-i]
				if r, err := other.Ticket(ctx, u.Format, u.Ticket); err != nil || r.Revoked {
					return fmt.Errorf("before the revocation: %+v, %w", r, err)
				}
				if err := l.Revoke(ctx, u.Format, u.Ticket, true, "ops"); err != nil {
					return err
				}
				if r, err := other.Ticket(ctx, u.Format, u.Ticket); err != nil || !r.Revoked {
					return fmt.Errorf("ledger %d does not know what the other revoked: %+v, %w", 1-i, r, err)
				}
				g := gate{src: ticket.Source(fmt.Sprintf("g%d.%d", i, n))}
				if r, err := g.ask(other, g.claim(u)); err != nil || r.Answer != ticket.AnswerRevoked {
					return fmt.Errorf("asked about a ticket that the other ledger revoked: %+v, %w", r, err)
				}
			}
			return nil
		})
	}
	if err := eg.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		hello, err := l.Hello(ctx, "g", ledger.Hello{Place: "North"})
		if err != nil {
			t.Fatal(err)
		}
		for j, writer := range all {
			own := writer.Own()[0]
			at := slices.IndexFunc(hello.Heads, func(p ticket.StreamPos) bool { return p.Stream() == own.Stream() })
			if at < 0 || hello.Heads[at].Pos != own.Pos || own.Pos < each {
				t.Fatalf("ledger %d names %+v, ledger %d wrote %+v", i, hello.Heads, j, own)
			}
			for read := uint64(0); read < own.Pos; {
				r, err := l.Read(ctx, own.Stream(), read, 7, 1<<20)
				if err != nil || r.From != read+1 || len(r.Records) == 0 {
					t.Fatalf("ledger %d after %d of ledger %d: %+v, %v", i, read, j, r, err)
				}
				read += uint64(len(r.Records))
			}
		}
	}
}

// TestUpkeepOfTwo: what no message starts is done by both ledgers at once, and
// happens once: alarms of claims that are overdue and of clocks, the end of an event
// and its pruning.
func TestUpkeepOfTwo(t *testing.T) {
	ctx := t.Context()
	log := &lines{}
	url := pgtest.Database(t)
	all := ledgers(t, url, log, pgstore.Options{}, "a", "b")
	g := gate{src: "g"}
	const overdue = 20
	for n := range overdue {
		c := g.claim(unitOf(n))
		c.Lease = time.Millisecond
		g.log = g.log[:len(g.log)-1]
		g.write(&c)
		if r, err := g.ask(all[0], c); err != nil || r.Answer != ticket.AnswerFirst {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	var wg sync.WaitGroup
	tick, stop := context.WithCancel(ctx)
	defer stop()
	for _, l := range all {
		l.Heard("h", ledger.Head{Run: 7, Pos: 1, Place: "South", Time: time.Now().Add(time.Hour).UnixNano()})
		wg.Go(func() {
			if err := l.Run(tick); err != nil {
				t.Error(err)
			}
		})
	}
	for log.count("kind=overdue") < overdue || log.count("kind=clock_skew") < 1 {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		alarms, _, err := all[0].Alarms(ctx, "", 1000)
		if err != nil || len(alarms) > overdue+1 {
			t.Fatalf("%d alarms, %v", len(alarms), err)
		}
	}
	var closing errgroup.Group
	for _, l := range all {
		closing.Go(func() error { return l.CloseEvent(ctx, event) })
	}
	if err := closing.Wait(); err != nil {
		t.Fatal(err)
	}
	stop()
	wg.Wait()
	stats, err := all[0].Stats(ctx)
	if err != nil || stats.Events[0].Alarms != overdue || log.count("kind=overdue") != overdue ||
		log.count("kind=clock_skew") != 1 || log.count(`msg="event closed"`) != 1 {
		t.Errorf("%+v, %v; said %d overdue, %d skew, %d closed", stats.Events, err,
			log.count("kind=overdue"), log.count("kind=clock_skew"), log.count(`msg="event closed"`))
	}
	// After the grace both prune at once.
	var pruning errgroup.Group
	for i := range 2 {
		o := pgstore.Options{URL: url, Process: fmt.Sprint("p", i)}
		l, err := ledger.New(open(t, o), ledger.Options{
			Process: o.Process, Now: func() time.Time { return time.Now().Add(30 * 24 * time.Hour) }, Log: discard(), ProgrammeKey: key(),
		})
		if err != nil {
			t.Fatal(err)
		}
		pruning.Go(func() error { return l.Prune(ctx) })
	}
	if err := pruning.Wait(); err != nil {
		t.Fatal(err)
	}
	u := unitOf(0)
	r, err := all[0].Ticket(ctx, u.Format, u.Ticket)
	stats, err2 := all[0].Stats(ctx)
	if len(r.Claims) != 0 || !stats.Events[0].Pruned || errors.Join(err, err2) != nil {
		t.Errorf("after pruning: %+v, %+v, %v, %v", r, stats.Events, err, err2)
	}
}
