package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// given keeps the answers that were given.
type given struct {
	mu      sync.Mutex
	answers map[ticket.ClaimID]ticket.Answer
	n       atomic.Int64
}

func (g *given) add(r ledger.AskReply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[r.Claim] = r.Answer
	g.n.Add(1)
}

// TestServerKilled kills the server again and again while gates ask, two about each
// ticket, of two ledgers. Gates that are told nothing ask again. In the end each
// ticket has one first, and every answer that was ever given stands; the ledgers
// went on by themselves.
func TestServerKilled(t *testing.T) {
	const pairs, each, kills = 6, 25, 3
	ctx := t.Context()
	s := pgtest.New(t)
	all := ledgers(t, s.Database(t), &lines{}, pgstore.Options{}, "a", "b")
	running, stop := context.WithCancel(ctx)
	var upkeep, asking errgroup.Group
	for _, l := range all {
		upkeep.Go(func() error { return l.Run(running) })
	}
	told := given{answers: map[ticket.ClaimID]ticket.Answer{}}
	var failed atomic.Int64
	gs := make([]gate, 2*pairs)
	for i := range gs {
		gs[i].src = ticket.Source(fmt.Sprintf("g%02d", i))
		asking.Go(func() error {
			for n := range each {
				c := gs[i].claim(unitOf(i/2*each + n))
				for try := 0; ; try++ {
					r, err := gs[i].ask(all[(i+try)%2], c)
					if err == nil {
						told.add(r)
						break
					}
					if failed.Add(1); errors.Is(err, ledger.ErrBroken) || try > 1000 {
						return fmt.Errorf("%s, try %d: %w", c.ID, try, err)
					}
				}
			}
			return nil
		})
	}
	for k := range kills {
		for told.n.Load() < int64((k+1)*2*pairs*each/(kills+1)) {
			if err := all[0].CloseEvent(ctx, "none"); err == nil { // a way to the server and back, to wait by
				t.Fatal("an event that is none was closed")
			}
		}
		if err := errors.Join(s.Kill(), s.Start()); err != nil {
			t.Fatal(err)
		}
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d asks were told nothing", failed.Load())
	firsts := map[ticket.Unit]int{}
	for i := range gs {
		for n := range each {
			c := ticket.ClaimID{Gate: gs[i].src, Run: gateRun, Pos: uint64(n + 1)}
			u := unitOf(i/2*each + n)
			r, err := all[0].Ask(ctx, gs[i].src, ledger.Ask{Claim: c, Unit: u})
			if err != nil || r.Answer != told.answers[c] {
				t.Errorf("%s was told %s, and now %+v, %v", c, told.answers[c], r, err)
			}
			if told.answers[c] == ticket.AnswerFirst {
				firsts[u]++
			}
		}
	}
	for n := range pairs * each {
		if firsts[unitOf(n)] != 1 {
			t.Errorf("ticket %d has %d firsts", n, firsts[unitOf(n)])
		}
	}
	stop()
	if err := upkeep.Wait(); err != nil {
		t.Errorf("a ledger ended: %v", err)
	}
}

// TestFull fills the disk that the database is on. An ask that finds no room has no
// answer; nothing that was answered is lost, what is stored can be read, and when
// there is room again the ledger goes on.
func TestFull(t *testing.T) {
	s := pgtest.New(t)
	disk := filepath.Join(s.Dir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=40m,mode=0700"); err != nil {
		t.Fatalf("mount a small disk (as root): %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), unix.Unmount(disk, 0)); err != nil {
			t.Error(err)
		}
	})
	if err := s.Own(disk); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "postgres", "create tablespace small location '"+disk+"'", "create database full_disk tablespace small")
	l := ledgers(t, s.URL("full_disk"), &lines{}, pgstore.Options{}, "a")[0]
	g := gate{src: "g"}
	c := g.claim(unitOf(0))
	if r, err := g.ask(l, c); err != nil || r.Answer != ticket.AnswerFirst {
		t.Fatalf("%+v, %v", r, err)
	}
	conn, err := pgx.Connect(t.Context(), s.URL("full_disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "create table filler (b text)"); err != nil {
		t.Fatal(err)
	}
	for rows := 4096; rows > 0; rows /= 2 { // ever smaller pieces, until nothing fits
		for err == nil {
			_, err = conn.Exec(t.Context(), "insert into filler select repeat('x', 1900) from generate_series(1, $1::int)", rows)
		}
		err = nil
	}
	answered := 0
	for ; err == nil && answered < 10000; answered++ {
		c := g.claim(unitOf(1 + answered))
		var r ledger.AskReply
		if r, err = g.ask(l, c); err != nil && r.Answer != ticket.AnswerNone {
			t.Errorf("an answer came with an error: %+v, %v", r, err)
		}
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "53100" || errors.Is(err, ledger.ErrBroken) {
		t.Fatalf("after %d answers: %v, want that the disk is full", answered, err)
	}
	if r, err := l.Ticket(t.Context(), c.Unit.Format, c.Unit.Ticket); err != nil || len(r.Claims) != 1 {
		t.Errorf("reading from a full disk: %+v, %v", r, err)
	}
	if r, err := g.ask(l, c); err != nil || r.Answer != ticket.AnswerFirst {
		t.Errorf("a retry on a full disk: %+v, %v", r, err)
	}
	if _, err := conn.Exec(t.Context(), "drop table filler"); err != nil {
		t.Fatal(err)
	}
	if r, err := g.ask(l, g.claim(unitOf(20000))); err != nil || r.Answer != ticket.AnswerFirst {
		t.Errorf("with room again: %+v, %v", r, err)
	}
	if r, err := g.upload(l); err != nil || len(r.High) != 1 || r.High[0].Pos != uint64(len(g.log)) {
		t.Errorf("the records that found no room: %+v, %v", r, err)
	}
}

// TestTimeoutsAreNoAnswer: an ask that waits too long for somebody else, or whose
// statement takes too long, is told nothing, and leaves nothing.
func TestTimeoutsAreNoAnswer(t *testing.T) {
	for code, o := range map[string]pgstore.Options{
		"55P03": {LockTimeout: 50 * time.Millisecond},
		"57014": {StatementTimeout: 50 * time.Millisecond, LockTimeout: time.Minute},
	} {
		t.Run(code, func(t *testing.T) {
			url := pgtest.Database(t)
			calm := ledgers(t, url, &lines{}, pgstore.Options{}, "a")[0]
			hasty := ledgers(t, url, &lines{}, o, "b")[0]
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "lock table seen in exclusive mode"); err != nil {
				t.Fatal(err)
			}
			g := gate{src: "g"}
			c := g.claim(unitOf(0))
			r, err := g.ask(hasty, c)
			var pe *pgconn.PgError
			if !errors.As(err, &pe) || pe.Code != code || r.Answer != ticket.AnswerNone || errors.Is(err, ledger.ErrUnknown) {
				t.Errorf("%+v, %v", r, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := calm.Ticket(t.Context(), c.Unit.Format, c.Unit.Ticket); err != nil || len(got.Claims) != 0 {
				t.Errorf("left behind: %+v, %v", got, err)
			}
			if r, err := g.ask(calm, c); err != nil || r.Answer != ticket.AnswerFirst {
				t.Errorf("asked again: %+v, %v", r, err)
			}
		})
	}
}
