package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"admitone/internal/ledgerstore/pgschema"
)

// Options of a store. URL and Log are required.
type Options struct {
	// URL names the database, as libpq and pgx read it (postgres://user:password@host/name).
	// It is a secret: no error and no log line of this package has it.
	URL string

	// Process is this process's name, which connections show to the server.
	Process string

	// Conns is how many connections there are at most; 0: 16.
	Conns int

	// StatementTimeout and LockTimeout bound what one statement may take, and wait
	// for others; 0: 5 s and 3 s. What they end has no answer.
	StatementTimeout, LockTimeout time.Duration

	// Volatile takes a server that writes to no disk (fsync off). For tests.
	Volatile bool

	Log *slog.Logger
}

// Numbers of connections.
const (
	defaultConns     = 16
	statementTimeout = 5 * time.Second
	lockTimeout      = 3 * time.Second

	// idleTimeout ends a transaction whose process went away without a word: what it
	// had locked is free again.
	idleTimeout = 15 * time.Second

	connectTimeout = 5 * time.Second
	acquireFor     = 5 * time.Second // how long a call tries to connect, over a restart of the server
	minWait        = 20 * time.Millisecond
	maxWait        = time.Second
)

// Open brings the database's schema up to date and opens a pool of connections. It
// returns a *ServerError for a server that the ledger must not trust, and
// pgschema.ErrNewer for a database of a newer ledgerd.
func Open(ctx context.Context, o Options) (*Store, error) {
	c, err := configure(o)
	if err != nil {
		return nil, err
	}
	first, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	err = errors.Join(o.check(ctx, first), first.Close(ctx))
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	plain := c.ConnConfig.Copy()
	delete(plain.RuntimeParams, "statement_timeout") // a step may take its time
	delete(plain.RuntimeParams, "lock_timeout")
	if err := pgschema.Up(ctx, plain, o.Log); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return &Store{pool: pool}, nil
}

// errURL says no more: what a parser says of a URL may have the password in it.
var errURL = errors.New("open store: the database's URL cannot be read; it looks like postgres://user:password@host:5432/name")

// configure gives what every connection is opened with.
func configure(o Options) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errURL
	}
	c.MaxConns = defaultConns
	if o.Conns > 0 {
		c.MaxConns = int32(o.Conns)
	}
	c.AfterConnect = o.check // after a failover the server is another one
	cc := c.ConnConfig
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		"application_name":                    "ledgerd " + o.Process,
		"statement_timeout":                   millis(o.StatementTimeout, statementTimeout),
		"lock_timeout":                        millis(o.LockTimeout, lockTimeout),
		"idle_in_transaction_session_timeout": millis(0, idleTimeout),
		"tcp_keepalives_idle":                 "20", // a process whose machine died holds its name and locks no longer than a minute
		"tcp_keepalives_interval":             "10",
		"tcp_keepalives_count":                "3",
		"jit":                                 "off", // every statement is short
	} {
		cc.RuntimeParams[name] = value
	}
	return c, nil
}

func millis(d, otherwise time.Duration) string {
	if d == 0 {
		d = otherwise
	}
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// ServerError is returned for a server on which an answer that was given could be
// lost, or that this store does not know.
type ServerError struct {
	Problem string // what is wrong
	Remedy  string // what to do
}

// Error gives both.
func (e *ServerError) Error() string { return e.Problem + "; " + e.Remedy }

// minVersion is the oldest server that tests could be run on by its makers' own
// support when this was written.
const minVersion = 130000

// check looks at the server behind a new connection.
func (o Options) check(ctx context.Context, conn *pgx.Conn) error {
	var version int
	var standby bool
	var commit, standbys, fsync, encoding string
	err := conn.QueryRow(ctx, `select current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('server_encoding')`).
		Scan(&version, &standby, &commit, &standbys, &fsync, &encoding)
	switch {
	case err != nil:
		return fmt.Errorf("look at the server: %w", err)
	case version < minVersion:
		return &ServerError{"the server is PostgreSQL " + strconv.Itoa(version/10000), "use 13 or newer"}
	case standby:
		return &ServerError{"the server is a standby and takes no writes", "name the primary, or all hosts with target_session_attrs=read-write"}
	case commit == "off":
		return &ServerError{"synchronous_commit is off: a crash would take back answers that gates have acted on",
			"set synchronous_commit = on for this database and role (ALTER DATABASE, ALTER ROLE)"}
	case commit == "local" && standbys != "":
		return &ServerError{"synchronous_commit is local though synchronous_standby_names is set: a failover would take back answers that gates have acted on",
			"set synchronous_commit = on for this database and role (ALTER DATABASE, ALTER ROLE)"}
	case fsync == "off" && !o.Volatile:
		return &ServerError{"fsync is off: a power cut would take back answers that gates have acted on", "set fsync = on in postgresql.conf"}
	case encoding != "UTF8":
		return &ServerError{"the database's encoding is " + encoding, "make it with ENCODING 'UTF8'"}
	}
	return nil
}

// acquire gives a connection. Where all are in use it waits for as long as the
// caller does: whoever has them is bounded by the server's timeouts. A server that
// is starting again it gives a while.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	began := time.Now()
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		conn, err := s.pool.Acquire(ctx)
		var untrusted *ServerError
		if err == nil || errors.As(err, &untrusted) || time.Since(began) > acquireFor {
			return conn, wrap("connect to the database", err)
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the database: %w", err)
		}
	}
}
