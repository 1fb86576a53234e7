package boltfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"admitone/internal/kv"
)

// TestTwoProcesses: who comes second is told who has the file; when that one has
// been killed, the file is free.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	path := temp(t)
	child := exec.Command(os.Args[0], "child-hold", path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	_, err = Open(t.Context(), path, options())
	var l *LockedError
	if !errors.As(err, &l) || !errors.Is(err, ErrLocked) || l.PID != child.Process.Pid || !strings.HasPrefix(filepath.Base(os.Args[0]), l.Program) || l.Program == "" {
		t.Errorf("open: %v, want ErrLocked by %d", err, child.Process.Pid)
	}
	if !strings.Contains(err.Error(), fmt.Sprint("process ", child.Process.Pid)) {
		t.Errorf("the error does not say who: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(cancelled, path, options()); !errors.Is(err, context.Canceled) {
		t.Errorf("open with no time: %v", err)
	}
	if err := errors.Join(child.Process.Kill(), ignoreExit(child.Wait())); err != nil {
		t.Fatal(err)
	}
	openAt(t, path, options())
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// TestTwoOpeners are in one process: the second is refused, and gets the file when
// the first has closed it.
func TestTwoOpeners(t *testing.T) {
	t.Parallel()
	path := temp(t)
	f := openAt(t, path, options())
	var l *LockedError
	if _, err := Open(t.Context(), path, options()); !errors.As(err, &l) || l.PID != os.Getpid() {
		t.Errorf("open: %v, want a LockedError of this process", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, path, options())
}

// TestForeignHolder has a program that does not know our lock file hold bbolt's own.
func TestForeignHolder(t *testing.T) {
	t.Parallel()
	path := temp(t)
	if err := openAt(t, path, options()).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := Open(t.Context(), path, options()); !errors.Is(err, ErrLocked) {
		t.Errorf("open: %v, want ErrLocked", err)
	}
	if err := inChild(t, path); !errors.Is(err, ErrLocked) || damaged(err) {
		t.Errorf("verify: %v, want ErrLocked, and no damage", err)
	}
}

func TestHolder(t *testing.T) {
	t.Parallel()
	locks := `1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF
2: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF
3: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF
4: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF
5: FLOCK  ADVISORY  WRITE 0 fe:00:78 0 EOF
`
	for _, c := range []struct{ major, minor, inode, want uint64 }{
		{0xfe, 0, 77, 14}, {0xfe, 1, 77, 12}, {8, 1, 77, 14}, {0xfe, 0, 78, 0}, {0xfe, 0, 79, 0},
	} {
		if got := holder(locks, c.major, c.minor, c.inode); got != int(c.want) {
			t.Errorf("%+v: process %d", c, got)
		}
	}
}

// TestOffside: a half-made file of an earlier attempt is in nobody's way, and what
// is made has the fixed page size, a date, and nothing beside it but its lock.
func TestOffside(t *testing.T) {
	t.Parallel()
	path := temp(t)
	write(t, path+".new", []byte("half-made"))
	o := options()
	at := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return at }
	o.Verify = func(context.Context, string) error { return errors.New("there is nothing to check yet") }
	f := openAt(t, path, o)
	if !f.Fresh() || !f.Created().Equal(at) || f.db.Info().PageSize != pageSize {
		t.Errorf("fresh %v, created %v, pages of %d", f.Fresh(), f.Created(), f.db.Info().PageSize)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
	boom := errors.New("boom")
	o.Verify = func(context.Context, string) error { return boom }
	if _, err := Open(t.Context(), path, o); !errors.Is(err, boom) {
		t.Errorf("open: %v, want what Verify says", err)
	}
	o.Verify = nil
	f = openAt(t, path, o)
	if f.Fresh() || !f.Created().Equal(at) {
		t.Errorf("opened again: fresh %v, created %v", f.Fresh(), f.Created())
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no name":    {Version: 1},
		"no version": {Name: "a"},
		"tiny":       {Name: "a", Version: 1, MaxSize: 4096},
	} {
		path := temp(t)
		if _, err := Open(t.Context(), path, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: made a file", name)
		}
	}
}

// TestReserve: the disk's blocks are there before the content is, and the file is no
// longer for it.
func TestReserve(t *testing.T) {
	t.Parallel()
	path := temp(t)
	o := options()
	o.Reserve = 4 << 20
	openAt(t, path, o)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Blocks*512 < o.Reserve || st.Size >= o.Reserve {
		t.Errorf("%d blocks, %d bytes, %v", st.Blocks, st.Size, err)
	}
}

// TestLog: bbolt's reports reach the log, its remarks on each operation do not.
func TestLog(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f := openAt(t, temp(t), o)
	before := b.Len()
	if before == 0 {
		t.Error("the opening is not in the log")
	}
	if err := f.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("a", []byte("k"), nil) }); err != nil {
		t.Fatal(err)
	}
	if b.Len() != before {
		t.Errorf("a commit is in the log: %s", b.String()[before:])
	}
	f.commitTx = func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), syscall.EIO) }
	err := f.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("a", []byte("k2"), nil) })
	if !errors.Is(err, kv.ErrUnknown) || !errors.Is(err, syscall.EIO) {
		t.Errorf("update: %v", err)
	}
	logger{o.Log}.Warningf("page %d", 7)
	if !strings.Contains(b.String(), `msg="bbolt reports" text="page 7"`) {
		t.Errorf("log: %s", b.String())
	}
}
