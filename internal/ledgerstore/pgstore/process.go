package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNameTaken is returned where another ledger process of the same name works on
// the database.
var ErrNameTaken = errors.New("another ledger process has this name; give each its own in process")

// Name is a process's name on a database. Two processes of one name would publish
// under one source: so the name is a lock of a session, held for as long as its
// process lives, by a connection that does nothing else.
type Name struct {
	o    Options
	conn *pgx.Conn
	log  *slog.Logger
}

// Numbers of names.
const (
	nameTries = 4                // a process that was just killed may still be on its way out
	nameRetry = time.Second      //
	nameOwn   = 90 * time.Second // for so long, whoever has the name may be this process's own lost connection
)

// TakeName takes the name in Options.Process, and returns ErrNameTaken where another
// has it and keeps it.
func TakeName(ctx context.Context, o Options) (*Name, error) {
	n := &Name{o: o, log: o.Log}
	for try := 1; ; try++ {
		err := n.take(ctx)
		if err == nil {
			return n, nil
		}
		if !errors.Is(err, ErrNameTaken) || try == nameTries {
			return nil, fmt.Errorf("take the name %q: %w", o.Process, err)
		}
		select {
		case <-time.After(nameRetry):
		case <-ctx.Done():
			return nil, fmt.Errorf("take the name %q: %w", o.Process, ctx.Err())
		}
	}
}

func (n *Name) take(ctx context.Context) error {
	c, err := configure(n.o)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return err
	}
	key := lockKey(lockProcess, []byte(n.o.Process))
	var mine bool
	err = conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", key).Scan(&mine)
	if err == nil && !mine {
		err = fmt.Errorf("%w (it is connected %s)", ErrNameTaken, holder(ctx, conn, key))
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	n.conn = conn
	return nil
}

// holder tells who has a lock, as far as this role may know.
func holder(ctx context.Context, conn *pgx.Conn, key int64) string {
	var from, since string
	err := conn.QueryRow(ctx, `select coalesce(host(a.client_addr), 'from its own host'), coalesce('since ' || to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), '')
		from pg_locks l join pg_stat_activity a using (pid)
		where l.locktype = 'advisory' and l.classid::bigint << 32 | l.objid::bigint = $1 and l.granted`, key).Scan(&from, &since)
	if err != nil {
		return "from somewhere"
	}
	return from + " " + since
}

// Close gives the name back.
func (n *Name) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackFor)
	defer cancel()
	return n.conn.Close(ctx) // the server lets the name go with the connection
}

// Run keeps the name until ctx ends, and returns nil then. After the connection was
// lost it takes the name again, and returns ErrNameTaken where another has it.
func (n *Name) Run(ctx context.Context) error {
	for {
		_, err := n.conn.WaitForNotification(ctx) // of nothing: it returns when the connection is lost
		if err == nil {
			continue
		}
		if err = n.again(ctx); ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("keep the name %q: %w", n.o.Process, err)
		}
	}
}

// again takes the name for a new connection, as long as nobody else has it.
func (n *Name) again(ctx context.Context) error {
	_ = n.conn.Close(ctx) // it is lost
	told, lost := false, time.Now()
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		err := n.take(ctx)
		switch {
		case err == nil:
			n.log.Info("database is back", "process", n.o.Process)
			return nil
		case errors.Is(err, ErrNameTaken) && time.Since(lost) > nameOwn:
			return err
		case !told:
			told = true
			n.log.Error("database is away", "process", n.o.Process, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
