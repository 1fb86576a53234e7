package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/pgstore"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// build makes the program, for tests that want its real process.
func build(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "ledgerd")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// said is what a process writes, to be waited for.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newSaid() *said { return &said{more: make(chan struct{}, 1)} }

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns once a line has the text, and gives the line.
func (s *said) await(t *testing.T, text string, ended <-chan error) string {
	t.Helper()
	for {
		for line := range strings.Lines(s.String()) {
			if strings.Contains(line, text) {
				return line
			}
		}
		select {
		case <-s.more:
		case err := <-ended:
			t.Fatalf("it ended (%v) before it said %q:\n%s", err, text, s)
		}
	}
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// programmeKey makes a signing key in a file.
func programmeKey(t *testing.T) (file string, key ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "programme.key")
	if err := config.WriteKey(file, key); err != nil {
		t.Fatal(err)
	}
	return file, key
}

// openFair pushes a programme on which the event "fair" is open.
func openFair(t *testing.T, store ledger.Store, key ed25519.PrivateKey) *ledger.Ledger {
	t.Helper()
	l, err := ledger.New(store, ledger.Options{
		Process: "setup", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key, DeviceID: wire.DeviceID,
	})
	if err != nil {
		t.Fatal(err)
	}
	now, pub := time.Now().UTC().Truncate(time.Second), key.Public().(ed25519.PublicKey)
	_, err = l.PushProgramme(t.Context(), ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: "fair", Open: now.Add(-time.Hour), Close: now.Add(time.Hour), Forget: now.Add(24 * time.Hour),
		Formats: []string{"a1"}, Keys: []ticket.ProgrammeKey{{ID: ticket.KeyID(pub), Public: hex.EncodeToString(pub)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fairUnit(n int) ticket.Unit {
	u := ticket.Unit{Event: "fair", Format: ticket.FormatA1}
	copy(u.Ticket[:], fmt.Sprintf("%016d", n))
	return u
}

// TestMigrate moves a ledger's file into a database by the command: it tells what it
// copied, refuses to do it twice, and says what is wrong where it cannot. The ledger
// on the database then serves what the file had.
func TestMigrate(t *testing.T) {
	exe, dir := build(t), t.TempDir()
	keyFile, key := programmeKey(t)
	url := pgtest.New(t).Database(t) // one that reaches the disk: ledgerd takes no other
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	postgres := writeFile(t, filepath.Join(dir, "postgres.toml"), fmt.Sprintf(
		"data_dir = %q\nprogramme_key = %q\n[store]\ndriver = \"postgres\"\nurl = %q\n", data, keyFile, url))
	bolt := writeFile(t, filepath.Join(dir, "bolt.toml"), fmt.Sprintf("data_dir = %q\nprogramme_key = %q\n", data, keyFile))
	try := func(code int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(exe, append([]string{"migrate"}, args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			t.Errorf("migrate %v: %v, want exit %d and %q:\n%s", args, err, code, want, out)
		}
	}
	try(1, "no such file", "-config", postgres)
	file, err := boltfile.Open(t.Context(), filepath.Join(data, "ledger.db"), boltfile.Options{Name: "ledger", Version: ledgerstore.Version})
	if err != nil {
		t.Fatal(err)
	}
	store := ledgerstore.New(file)
	l := openFair(t, store, key)
	for n := range 10 {
		u := fairUnit(n)
		if err := l.Revoke(t.Context(), u.Format, u.Ticket, true, "ops"); err != nil {
			t.Fatal(err)
		}
	}
	try(1, "is in use by", "-config", postgres) // a ledgerd runs on the file
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	try(1, `set it to "postgres"`, "-config", bolt)
	try(2, "unknown argument", "-config", postgres, "now")
	try(0, "subject             11 rows", "-config", postgres)
	try(1, "has rows already", "-config", postgres)
	s, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	moved, err := ledger.New(s, ledger.Options{Process: "b", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		u := fairUnit(n)
		if r, err := moved.Ticket(context.Background(), u.Format, u.Ticket); err != nil || !r.Revoked {
			t.Errorf("ticket %d after the move: %+v, %v", n, r, err)
		}
	}
}
