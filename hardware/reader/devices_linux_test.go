package reader

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// serial runs a serial reader of a path.
func serial(t *testing.T, path string, baud int) *running {
	t.Helper()
	return start(t, func(o LineOptions) (*Line, error) {
		return NewSerial(SerialOptions{Path: o.Path, Baud: baud, Log: o.Log})
	}, path)
}

// settings gives how the line stands; a terminal's two ends have the same.
func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	var s *unix.Termios
	if err := control(f, func(fd int) (err error) { s, err = unix.IoctlGetTermios(fd, unix.TCGETS); return err }); err != nil {
		t.Fatal(err)
	}
	return *s
}

// TestSerialLineIsRaw: every byte arrives as it was sent, nothing is sent back,
// and the rate is set.
func TestSerialLineIsRaw(t *testing.T) {
	for _, baud := range append(Bauds(), 0) {
		master, path := terminal(t)
		r := serial(t, path, baud)
		until(t, "the line", func() bool { return r.State() == nil })
		text := "a\x00b\x03\x04\x11\x13\x1a\x1c\x7f\xff\xfe tab\t"
		if _, err := master.WriteString(text + "\r\n" + text + "\n"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := r.next(); got != text {
				t.Errorf("%d baud: %q, want %q", baud, got, text)
			}
		}
		if baud == 0 {
			baud = DefaultBaud
		}
		s := settings(t, master)
		if s.Cflag&unix.CBAUD != speed(baud) || s.Cflag&unix.CSIZE != unix.CS8 || s.Cflag&(unix.PARENB|unix.CSTOPB|unix.CRTSCTS) != 0 || s.Lflag != 0 {
			t.Errorf("%d baud: settings %+v", baud, s)
		}
		if n := waiting(t, master); n != 0 {
			t.Errorf("%d bytes were sent back", n)
		}
		r.stop()
		if err := master.Close(); err != nil {
			t.Error(err)
		}
	}
}

func waiting(t *testing.T, f *os.File) (n int) {
	t.Helper()
	if err := control(f, func(fd int) (err error) { n, err = unix.IoctlGetInt(fd, unix.TIOCINQ); return err }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSerialLineIsHeldAlone: a second reader of it says so and harms nothing; when
// the first ends, the second takes over.
func TestSerialLineIsHeldAlone(t *testing.T) {
	master, path := terminal(t)
	defer master.Close()
	first := serial(t, path, 0)
	until(t, "the line", func() bool { return first.State() == nil })
	second := serial(t, path, 9600)
	until(t, "the refusal", func() bool { return errors.Is(second.State(), errInUse) })
	if s := settings(t, master); s.Cflag&unix.CBAUD != speed(DefaultBaud) {
		t.Error("the second reader changed the line's rate")
	}
	if _, err := master.WriteString("code\n"); err != nil {
		t.Fatal(err)
	}
	if got := first.next(); got != "code" {
		t.Errorf("look %q", got)
	}
	first.stop()
	until(t, "the second to take over", func() bool { return second.State() == nil })
	if _, err := master.WriteString("code\n"); err != nil {
		t.Fatal(err)
	}
	if got := second.next(); got != "code" {
		t.Errorf("look %q", got)
	}
}

func TestSerialReaderUnpluggedAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scanner") // as a link in /dev/serial/by-id
	r := serial(t, path, 0)
	for range 3 {
		until(t, "the loss", func() bool { return r.State() != nil })
		master, tty := terminal(t)
		if err := os.Symlink(tty, path); err != nil {
			t.Fatal(err)
		}
		until(t, "the line", func() bool { return r.State() == nil })
		if _, err := master.WriteString("code\rhal"); err != nil {
			t.Fatal(err)
		}
		if got := r.next(); got != "code" {
			t.Errorf("look %q", got)
		}
		if err := errors.Join(os.Remove(path), master.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScannerWithoutALineEnd: a megabyte from a serial line is one cut look, and
// the code after it is read.
func TestScannerWithoutALineEnd(t *testing.T) {
	master, path := terminal(t)
	defer master.Close()
	r := serial(t, path, 0)
	until(t, "the line", func() bool { return r.State() == nil })
	if _, err := master.WriteString(strings.Repeat("x", 1<<20) + "\nnext\n"); err != nil {
		t.Fatal(err)
	}
	if got := r.next(); got != strings.Repeat("x", MaxLine)+"<cut>" {
		t.Errorf("a look of %d bytes", len(got))
	}
	if got := r.next(); got != "next" {
		t.Errorf("look %q", got)
	}
}

// TestWrongDevices: each is an error that says what it is and what to do.
func TestWrongDevices(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	master, tty := terminal(t)
	defer master.Close()
	us := layouts()["us"]
	for name, c := range map[string]struct {
		path          string
		serial, evdev string
	}{
		"nothing":    {filepath.Join(dir, "none"), "plug the device in, or correct the path", "plug the device in, or correct the path"},
		"a FIFO":     {fifo, "it is no device but a FIFO", "it is no device but a FIFO"},
		"a file":     {file, "it is no device but a file", "it is no device but a file"},
		"a folder":   {dir, "it is no device but a directory", "it is no device but a directory"},
		"no line":    {"/dev/zero", "it is no serial line", "it is no input device"},
		"a terminal": {tty, "", "it is no input device"},
	} {
		src, err := openSerial(c.path, DefaultBaud)
		hold(t, name+" as a serial line", src, err, c.serial)
		src, err = openEvdev(c.path, us)
		hold(t, name+" as a keyboard", src, err, c.evdev)
	}
	for _, o := range []SerialOptions{{}, {Path: tty, Baud: 115201}, {Path: tty, Baud: -1}} {
		if _, err := NewSerial(o); err == nil {
			t.Errorf("taken: %+v", o)
		}
	}
}

func hold(t *testing.T, what string, src source, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		if want != "" {
			t.Errorf("%s was opened", what)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	case want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// TestFailedOpensLeaveNothing: a path that cannot be read is tried for ever.
func TestFailedOpensLeaveNothing(t *testing.T) {
	us := layouts()["us"]
	before := openFiles(t)
	for range 10_000 {
		for _, open := range []func() (source, error){
			func() (source, error) { return openSerial("/dev/zero", DefaultBaud) },
			func() (source, error) { return openEvdev("/dev/zero", us) },
		} {
			if src, err := open(); err == nil {
				t.Fatalf("opened: %v", src)
			}
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestAbsentDeviceIsSaidOnce: what a person reads of a scanner that is not there.
func TestAbsentDeviceIsSaidOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scanner-event-kbd")
	r := start(t, func(o LineOptions) (*Line, error) {
		return NewEvdev(EvdevOptions{Path: o.Path, Log: o.Log})
	}, path)
	until(t, "the loss", func() bool { return errors.Is(r.State(), fs.ErrNotExist) })
	r.stop()
	if n := strings.Count(r.log.String(), "level=WARN"); n != 1 {
		t.Errorf("told %d times: %s", n, r.log.String())
	}
}
