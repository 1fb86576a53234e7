package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Main runs a package's tests, and ends the server that they shared. A package
// that calls Database has "func TestMain(m *testing.M) { pgtest.Main(m) }".
func Main(m *testing.M) {
	code := m.Run()
	if shared.used.Load() {
		if s, err := shared.start(); err == nil {
			if err := s.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "pgtest:", err)
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

// shared is the server of this test binary. It writes to no disk: what a test
// proves about crashes and speed, it proves on a server of its own.
var shared = server{start: sync.OnceValues(func() (*Server, error) {
	return Start("fsync=off", "full_page_writes=off", "max_connections=200")
})}

type server struct {
	used  atomic.Bool
	start func() (*Server, error)
	names atomic.Uint64
}

// Database makes an empty database on the server that this test binary shares, and
// gives its URL.
func Database(t testing.TB) string {
	t.Helper()
	shared.used.Store(true)
	s, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	return s.Database(t)
}

// Database makes an empty database, and gives its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", shared.names.Add(1))
	s.Exec(t, "postgres", "create database "+name)
	return s.URL(name)
}

// Exec runs statements in a database as its superuser.
func (s *Server) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, st := range statements {
		if _, err := conn.Exec(ctx, st); err != nil {
			t.Fatalf("%s: %v", st, err)
		}
	}
}

// New starts a server for one test alone, which ends with it. Its commits reach
// the disk unless a setting says otherwise.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("PostgreSQL said:\n" + s.Log())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
