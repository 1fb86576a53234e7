package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/kv"
	"admitone/internal/ledger"
)

// Store is the ledger's tables on a PostgreSQL database.
type Store struct {
	pool  *pgxpool.Pool
	known cache
}

var _ ledger.Store = (*Store)(nil)

// Limits of transactions.
const (
	maxRuns     = 8 // how often a function runs where transactions got in each other's way
	runWait     = 5 * time.Millisecond
	commitFor   = 15 * time.Second // beyond the server's own limits: then the connection is given up
	rollbackFor = 5 * time.Second
)

// View is ledger.Store.View.
func (s *Store) View(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.view(ctx, func(t *tx) error { return fn(t) })
}

// Update is ledger.Store.Update.
func (s *Store) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.update(ctx, func(t *tx) error { return fn(t) })
}

// Close waits for the transactions under way and closes all connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Ready asks the database for a sign of life.
func (s *Store) Ready(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return wrap("ask the database", conn.Ping(ctx))
}

func (s *Store) view(ctx context.Context, fn func(*tx) error) error {
	t, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	defer t.conn.Release()
	defer t.rollback()
	if err := fn(t); err != nil {
		return err
	}
	return t.failed
}

// snapshot begins a transaction for reading. It is begun before its function is
// called, since a connection that the server has closed shows only now, and that is
// nobody's trouble but a new connection's.
func (s *Store) snapshot(ctx context.Context) (*tx, error) {
	for try := 1; ; try++ {
		conn, err := s.acquire(ctx)
		if err != nil {
			return nil, err
		}
		t := newTx(ctx, conn, &s.known, reading)
		err = t.Send(&pgx.Batch{})
		if err == nil {
			return t, nil
		}
		gone := conn.Conn().IsClosed()
		t.rollback()
		conn.Release()
		if !gone || try == maxRuns || ctx.Err() != nil {
			return nil, wrap("read the database", err)
		}
	}
}

// update runs fn until it is through, alone where it has to be.
func (s *Store) update(ctx context.Context, fn func(*tx) error) error {
	m := shared
	for try := 1; ; {
		err := s.attempt(ctx, m, try > 1, fn)
		switch {
		case errors.Is(err, errAlone):
			m = alone
			continue
		case !again(err) || try == maxRuns:
			return err
		}
		select {
		case <-time.After(rand.N(runWait << try)):
			try++
		case <-ctx.Done():
			return err
		}
	}
}

// again reports whether a transaction was undone because of others, so that its
// function should run once more.
func again(err error) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		switch pe.Code {
		case "40P01", "40001", "23505": // deadlock, serialisation, a constraint that another was faster to use up
			return true
		}
	}
	return errors.Is(err, errAgain)
}

// attempt runs fn once and commits.
func (s *Store) attempt(ctx context.Context, m mode, careful bool, fn func(*tx) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := newTx(ctx, conn, &s.known, m)
	t.careful = careful
	defer t.rollback() // also where fn ends its goroutine; nothing after a commit
	err = call(fn, t)
	switch {
	case t.lonely:
		return errAlone
	case t.failed != nil && conn.Conn().IsClosed() && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", errAgain, t.failed)
	case t.failed != nil && !errors.Is(err, t.failed):
		return fmt.Errorf("change the database: %w", t.failed)
	case err != nil:
		return err
	}
	return t.commit()
}

// call turns a panic of fn into an error, as a store on a file does.
func call(fn func(*tx) error, t *tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &kv.PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	return fn(t)
}

var errUndone = errors.New("the server undid the transaction")

// commit sends what was put off together with the commit. It is waited for whatever
// the caller's context does.
func (t *tx) commit() error {
	if !t.begun && len(t.pending.QueuedQueries) == t.opening {
		return nil // nothing was read or written
	}
	if t.bumped {
		t.pending.Queue("update state set version = version + 1")
	}
	t.pending.Queue("commit").Exec(func(c pgconn.CommandTag) error {
		if c.String() != "COMMIT" {
			return errUndone
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitFor)
	defer cancel()
	err := t.conn.SendBatch(ctx, &t.pending).Close()
	t.pending = pgx.Batch{}
	var pe *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUndone), errors.As(err, &pe) && pe.SeverityUnlocalized == "ERROR":
		return fmt.Errorf("commit: %w", err) // the server said no, and undid it
	case pgconn.SafeToRetry(err):
		return fmt.Errorf("%w: %w", errAgain, err) // it never heard of it
	}
	return fmt.Errorf("commit: %w: %w", ledger.ErrUnknown, err)
}

// rollback ends a transaction that is not committed. A connection that cannot is of
// no more use, and is replaced by the pool.
func (t *tx) rollback() {
	conn := t.conn.Conn()
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), rollbackFor)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		_ = conn.Close(ctx) // what was wrong with it is told by the statement that failed
	}
}
