package pgstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"admitone/internal/ledger"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/office"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// blocked reports how many connections to the database wait for a lock.
func blocked(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := conn.QueryRow(context.Background(), `select count(*) from pg_stat_activity
		where wait_event_type = 'Lock' and datname = current_database()`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWhatWasReadStays: what a transaction has read of one thing cannot be changed
// by another one, of another process, before it ends: the other waits.
func TestWhatWasReadStays(t *testing.T) {
	s := ticket.Stream{Source: "g", Run: 1}
	u := unitOf(1)
	g := gate{src: "g"}
	c := g.claim(u)
	row := office.Row{Table: "t", ID: "1"}
	type both interface {
		ledger.Tx
		office.Tx
	}
	cases := map[string]struct{ read, change func(tx both) error }{
		"run": {
			func(tx both) error { _, err := tx.Stream(s); return err },
			func(tx both) error {
				_, err := tx.Stream(s)
				return errors.Join(err, tx.PutStream(s, ledger.StreamRow{High: 1}))
			},
		},
		"ticket": {
			func(tx both) error { _, err := tx.Claims(u); return err },
			func(tx both) error {
				_, err := tx.Claims(u)
				_, err2 := tx.PutRecord(ticket.Stream{Source: "g", Run: gateRun}, 1, ledger.Kept{Raw: g.log[0]})
				return errors.Join(err, err2, tx.PutClaim(ledger.ClaimRow{Claim: c, Raw: g.log[0], Run: gateRun, Pos: 1}))
			},
		},
		"all of a ticket": {
			func(tx both) error { _, err := tx.TicketClaims(u.Event, u.Format, u.Ticket); return err },
			func(tx both) error { _, err := tx.Claims(u); return err },
		},
		"subject": {
			func(tx both) error { _, _, err := tx.Subject("x"); return err },
			func(tx both) error { return tx.PutSubject("x", ledger.SubjectRow{Version: 1}) },
		},
		"no subject at all": {
			func(tx both) error { return tx.Subjects("gate/", func(string, ledger.SubjectRow) bool { return true }) },
			func(tx both) error { return tx.PutSubject("gate/x", ledger.SubjectRow{Version: 1}) },
		},
		"flags of an event": {
			func(tx both) error { _, err := tx.Event("fair"); return err },
			func(tx both) error { return tx.PutEvent("fair", ledger.EventRow{Pruned: true}) },
		},
		"a ledger's feed": {
			func(tx both) error { _, err := tx.Stream(ticket.Stream{Source: "ledger/a", Run: 1}); return err },
			func(tx both) error {
				return tx.PutStream(ticket.Stream{Source: "ledger/a", Run: 1}, ledger.StreamRow{High: 1})
			},
		},
		"conflict": {
			func(tx both) error { _, _, err := tx.Conflict("x"); return err },
			func(tx both) error {
				_, _, err := tx.Conflict("x")
				return errors.Join(err, tx.PutConflict(ledger.ConflictRow{ID: "x"}))
			},
		},
		"alarm": {
			func(tx both) error { _, _, err := tx.Alarm("x"); return err },
			func(tx both) error {
				_, _, err := tx.Alarm("x")
				return errors.Join(err, tx.PutAlarm(ledger.Alarm{ID: "x"}))
			},
		},
		"a row of the office": {
			func(tx both) error { _, _, err := tx.Get("t", "1"); return err },
			func(tx both) error { return tx.Put(row) },
		},
		"a row that is added": {
			func(tx both) error { _, _, err := tx.Get("t", "1"); return err },
			func(tx both) error { _, err := tx.Add(row); return err },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			url := pgtest.Database(t)
			here, there := open(t, pgstore.Options{URL: url}), open(t, pgstore.Options{URL: url})
			conn := connect(t, url)
			defer conn.Close(context.Background())
			changed := make(chan error, 1)
			err := here.Update(t.Context(), func(tx ledger.Tx) error {
				if err := c.read(tx.(both)); err != nil {
					return err
				}
				go func() {
					changed <- there.Update(context.Background(), func(tx ledger.Tx) error { return c.change(tx.(both)) })
				}()
				for blocked(t, conn) == 0 {
					select {
					case err := <-changed:
						changed <- err
						return errors.New("it was changed under the reader's feet")
					default:
					}
				}
				return nil
			})
			if err := errors.Join(err, <-changed); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLostConnections: a connection that is lost before the commit is nobody's
// trouble, the function runs again; one that is lost in the commit is an unknown
// outcome for its caller, and for nobody else.
func TestLostConnections(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	s := open(t, pgstore.Options{URL: url})
	conn, holder := connect(t, url), connect(t, url)
	defer conn.Close(ctx)
	defer holder.Close(ctx)
	exec := func(c *pgx.Conn, sql string) {
		t.Helper()
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(conn, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(7); return null; end $$`)
	exec(conn, `create constraint trigger wait after insert on alarm deferrable initially deferred for each row execute function wait()`)
	var runs atomic.Int64
	raise := func(id string) <-chan error {
		out := make(chan error, 1)
		go func() {
			out <- s.Update(ctx, func(tx ledger.Tx) error {
				runs.Add(1)
				if _, err := tx.Event("fair"); err != nil {
					return err
				}
				return tx.PutAlarm(ledger.Alarm{ID: id})
			})
		}()
		return out
	}
	lose := func() {
		t.Helper()
		for blocked(t, conn) == 0 {
			if err := ctx.Err(); err != nil {
				t.Fatal(err)
			}
		}
		exec(conn, `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
	}

	exec(holder, "begin")
	exec(holder, "lock table event in access exclusive mode")
	first := raise("before")
	lose()
	exec(holder, "rollback")
	if err := <-first; err != nil || runs.Load() != 2 {
		t.Errorf("lost before the commit: %v after %d runs, want a second one to succeed", err, runs.Load())
	}

	exec(holder, "select pg_advisory_lock(7)")
	second := raise("within")
	lose()
	exec(holder, "select pg_advisory_unlock(7)")
	if err := <-second; !errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrBroken) || runs.Load() != 3 {
		t.Errorf("lost in the commit: %v after %d runs, want ErrUnknown and no further run", err, runs.Load())
	}
	if err := <-raise("after"); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
