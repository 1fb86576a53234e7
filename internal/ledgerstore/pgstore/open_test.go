package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ledgerstore/pgschema"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
)

// TestRefused: a server that could lose an answer is not taken, and the error says
// what to do and never the password.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	s := pgtest.New(t)
	try := func(name, want string, volatile bool) {
		t.Helper()
		url := strings.Replace(s.URL(name), "postgres@", "postgres:hunter2@", 1)
		store, err := pgstore.Open(ctx, pgstore.Options{URL: url, Process: "a", Volatile: volatile, Log: discard()})
		var refused *pgstore.ServerError
		switch {
		case want == "" && err == nil:
			err = store.Close()
			fallthrough
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || refused.Remedy == "" || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	s.Exec(t, "postgres", "create database good", "create database off", "alter database off set synchronous_commit = off",
		"create database local", "alter database local set synchronous_commit = local",
		"create database latin encoding 'LATIN1' template template0")
	try("good", "", false)
	try("off", "synchronous_commit is off", false)
	try("local", "", false)
	try("latin", "LATIN1", false)
	s.Exec(t, "postgres", "alter system set synchronous_standby_names = 'none'", "set synchronous_commit = local")
	s.Exec(t, "postgres", "select pg_reload_conf()")
	awaitSetting(t, s, "synchronous_standby_names", "none")
	try("local", "synchronous_commit is local", false)
	s.Exec(t, "postgres", "alter system reset synchronous_standby_names", "alter system set fsync = off", "select pg_reload_conf()")
	awaitSetting(t, s, "fsync", "off")
	try("good", "fsync is off", false)
	try("good", "", true)
	s.Exec(t, "postgres", "alter system reset fsync")
	signal := filepath.Join(s.Dir(), "data", "standby.signal")
	if err := errors.Join(s.Stop(), os.WriteFile(signal, nil, 0o600), s.Own(signal), s.Start()); err != nil {
		t.Fatal(err)
	}
	try("good", "standby", false)
}

// awaitSetting returns when new connections have a setting.
func awaitSetting(t *testing.T, s *pgtest.Server, name, want string) {
	t.Helper()
	for got := ""; got != want; {
		conn := connect(t, s.URL("postgres"))
		if err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadURL: what cannot be read is said without what it is.
func TestBadURL(t *testing.T) {
	for _, url := range []string{"postgres://u:hunter2@h:port/d", "hunter2", "postgres://u:hunter2@%zz/d"} {
		_, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Log: discard()})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// TestOpenTogether: several processes start at once on an empty database; one makes
// the tables, the others find them.
func TestOpenTogether(t *testing.T) {
	log := &lines{}
	url := pgtest.Database(t)
	var eg errgroup.Group
	for range 4 {
		eg.Go(func() error {
			s, err := pgstore.Open(context.Background(), pgstore.Options{URL: url, Volatile: true, Log: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	if err := eg.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := log.count("database migrated"); n != 1 {
		t.Errorf("the first step was taken %d times", n)
	}
	conn := connect(t, url)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "insert into schema_version (version_id, is_applied) values (99, true)"); err != nil {
		t.Fatal(err)
	}
	if _, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Volatile: true, Log: discard()}); !errors.Is(err, pgschema.ErrNewer) {
		t.Errorf("a database of a newer ledgerd: %v", err)
	}
}

// TestName: a second process of one name is refused, in words that say who has it; a
// third with another name is not. The name is kept over a restart of the server, and
// is free when its process has gone.
func TestName(t *testing.T) {
	s, log := pgtest.New(t), &lines{}
	o := pgstore.Options{URL: s.Database(t), Process: "a", Log: slog.New(slog.NewTextHandler(log, nil))}
	first, err := pgstore.TakeName(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		_, err := pgstore.TakeName(t.Context(), o)
		if !errors.Is(err, pgstore.ErrNameTaken) || !strings.Contains(err.Error(), "since 2") {
			t.Errorf("a second process of one name: %v", err)
		}
	}
	refused()
	other := o
	other.Process = "b"
	second, err := pgstore.TakeName(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var eg errgroup.Group
	eg.Go(func() error { return first.Run(ctx) })
	if err := errors.Join(s.Kill(), s.Start()); err != nil {
		t.Fatal(err)
	}
	for log.count("database is back") == 0 {
		conn := connect(t, o.URL)
		conn.Close(t.Context())
	}
	refused()
	stop()
	if err := errors.Join(eg.Wait(), first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	again, err := pgstore.TakeName(t.Context(), o)
	if err != nil {
		t.Fatalf("when the first has gone: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
