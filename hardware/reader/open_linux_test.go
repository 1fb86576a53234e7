package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is what a test waits for something that must come.
const patience = 20 * time.Second

// running is a line reader that reads a real path.
type running struct {
	*Line
	t     *testing.T
	looks chan Look
	log   *logBuffer
	stop  func()
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func run(t *testing.T, path string) *running {
	t.Helper()
	return start(t, NewLine, path)
}

// start runs a reader that is made with a path and a log.
func start(t *testing.T, reader func(LineOptions) (*Line, error), path string) *running {
	t.Helper()
	log := &logBuffer{}
	l, err := reader(LineOptions{Path: path, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Line: l, t: t, looks: make(chan Look, 100_000), log: log}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, func(look Look) { r.looks <- look }) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run did not end")
		}
	})
	t.Cleanup(r.stop)
	return r
}

// until waits for a condition that nothing tells of.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

func (r *running) next() string {
	r.t.Helper()
	select {
	case l := <-r.looks:
		if l.Cut {
			return l.Text + "<cut>"
		}
		return l.Text
	case <-time.After(patience):
		r.t.Fatal("no look came")
		return ""
	}
}

// write opens a path, writes to it and closes it, as a shell does.
func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFIFOIsMadeAndOutlivesItsWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "line")
	r := run(t, path)
	until(t, "the FIFO", func() bool { return r.State() == nil })
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeNamedPipe|0o600 {
		t.Fatalf("it is %v: %v", info.Mode(), err)
	}
	for i := range 200 {
		write(t, path, fmt.Sprintf("code %d\n", i))
	}
	for i := range 200 {
		if got, want := r.next(), fmt.Sprintf("code %d", i); got != want {
			t.Fatalf("look %d is %q", i, got)
		}
	}
	if r.log.String() != "" || r.State() != nil {
		t.Errorf("told %s, state %v", r.log.String(), r.State())
	}
}

func TestManyLinesInOneWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "line")
	r := run(t, path)
	until(t, "the FIFO", func() bool { return r.State() == nil })
	const n = 20_000 // more than a pipe holds
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "code %d\r\n", i)
	}
	b.WriteString(strings.Repeat("x", 1<<20) + "\nlast\n")
	write(t, path, b.String())
	for i := range n {
		if got, want := r.next(), fmt.Sprintf("code %d", i); got != want {
			t.Fatalf("look %d is %q", i, got)
		}
	}
	if got := r.next(); got != strings.Repeat("x", MaxLine)+"<cut>" {
		t.Errorf("a line of 1 MiB is a look of %d bytes", len(got))
	}
	if got := r.next(); got != "last" {
		t.Errorf("the line after it is %q", got)
	}
}

func TestExistingFIFOAndFile(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := unix.Mkfifo(fifo, 0o622); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("one\ntwo"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, fifo)
	until(t, "the FIFO", func() bool { return r.State() == nil })
	write(t, fifo, "code\n")
	if got := r.next(); got != "code" {
		t.Errorf("the FIFO gave %q", got)
	}
	r = run(t, file)
	if got := []string{r.next(), r.next()}; !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the file gave %q", got)
	}
}

// TestNoFileIsLeftOpen opens and ends readers of all kinds, good and bad.
func TestNoFileIsLeftOpen(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	// A file that nobody closes must not be closed by the collector.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "line"), dir, "/dev/null", filepath.Join(dir, "no/line"), "-"}
	cycle := func() {
		for _, p := range paths {
			r := run(t, p)
			until(t, "the outcome of opening", func() bool { return r.State() == nil || r.log.String() != "" })
			r.stop()
		}
	}
	cycle() // what the runtime opens for good
	before := count()
	for range 50 {
		cycle()
	}
	if after := count(); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, path := range map[string]string{
		"directory":       dir,
		"socket":          socket,
		"absent device":   "/dev/ttyNONE7",
		"absent in by-id": "/dev/admitone-none/scanner",
		"absent folder":   filepath.Join(dir, "none", "line"),
	} {
		if src, err := open(path); err == nil {
			t.Errorf("%s was opened", name)
			src.Close()
		}
		if _, err := os.Lstat(path); err == nil && strings.HasPrefix(name, "absent") {
			t.Errorf("%s: something was made", name)
		}
	}
	// As root a test can make a directory of another user; without, /etc is one.
	foreign := "/etc"
	if os.Geteuid() == 0 {
		foreign = filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o777), os.Chown(foreign, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(foreign, "admitone-test-line")
	if _, err := open(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("in another user's directory: %v", err)
	}
}

func TestSourceNoticesThatItsPathIsAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "line")
	src, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if !src.same() {
		t.Error("it is the same")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if src.same() {
		t.Error("it is removed")
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if src.same() {
		t.Error("it is another")
	}
}

// terminal is a pseudo-terminal: a serial line that can be unplugged.
func terminal(t *testing.T) (master *os.File, path string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return master, fmt.Sprintf("/dev/pts/%d", n)
}

func TestSerialLineUnpluggedAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scanner") // as a link in /dev/serial/by-id
	plug := func() *os.File {
		master, tty := terminal(t)
		if err := errors.Join(os.Symlink(tty, path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		return master
	}
	master := plug()
	r := run(t, path)
	for range 3 {
		until(t, "the line", func() bool { return r.State() == nil })
		if _, err := master.WriteString("code\r"); err != nil {
			t.Fatal(err)
		}
		if got := r.next(); got != "code" {
			t.Errorf("look %q", got)
		}
		if err := master.Close(); err != nil {
			t.Fatal(err)
		}
		until(t, "the loss", func() bool { return r.State() != nil })
		master = plug()
	}
	if err := master.Close(); err != nil {
		t.Error(err)
	}
}
