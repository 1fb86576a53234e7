package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"admitone/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestLives: what is committed is there after a stop and after a kill, a
// connection from before is not, and two tests do not see each other's database.
func TestLives(t *testing.T) {
	ctx := context.Background()
	s := pgtest.New(t)
	url := s.Database(t)
	read := func() (n int) {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if err := conn.QueryRow(ctx, "select count(*) from seen").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table seen as select 1"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func() error{s.Stop, s.Kill} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "select 1"); err == nil {
			t.Error("a server that is down answers")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if n := read(); n != 1 {
			t.Errorf("%d rows are left, want 1", n)
		}
	}
	a, b := pgtest.Database(t), pgtest.Database(t)
	if a == b {
		t.Errorf("two tests share the database %s", a)
	}
}
