package camera

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/blackjack/webcam"
	"golang.org/x/sys/unix"
)

// set puts a value into a field that the library keeps to itself.
func set[T any](cam *webcam.Webcam, field string, v T) {
	f := reflect.ValueOf(cam).Elem().FieldByName(field)
	*(*T)(unsafe.Pointer(f.UnsafeAddr())) = v
}

// memfd is a file that can be mapped as a device's buffers are.
func memfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.MemfdCreate("admit-one-buffers", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 1<<20); err != nil {
		t.Fatal(err)
	}
	return fd
}

func mapped(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "admit-one-buffers")
}

// A stream that did not start leaves its buffers mapped, and the library forgets
// them. This holds the names and kinds of its fields, too.
func TestCloseUnmapsWhatDidNotStart(t *testing.T) {
	fd := memfd(t)
	cam := &webcam.Webcam{}
	set(cam, "fd", uintptr(fd))
	buffers := make([][]byte, 3)
	for i := range 2 { // the third could not be mapped
		b, err := unix.Mmap(fd, 0, 1<<20, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		buffers[i] = b
	}
	set(cam, "buffers", buffers)
	if n := mapped(t); n != 2 {
		t.Fatalf("%d mapped", n)
	}
	d := &linuxDevice{cam: cam}
	if d.file() != fd {
		t.Errorf("file %d, want %d", d.file(), fd)
	}
	if err := d.Close(); err != nil || mapped(t) != 0 {
		t.Errorf("%v, %d mapped", err, mapped(t))
	}
	if err := unix.Fstat(fd, &unix.Stat_t{}); err != unix.EBADF {
		t.Errorf("the file is open: %v", err)
	}
}

// Waiting works with a file number that select(2) could not take.
func TestWaitsOnAHighFileNumber(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(unix.Close(p[0]), unix.Close(p[1])) }()
	high, err := unix.FcntlInt(uintptr(p[0]), unix.F_DUPFD_CLOEXEC, 1100)
	if err != nil {
		t.Fatalf("a process needs 1,100 files: raise its limit (ulimit -n): %v", err)
	}
	defer func() { _ = unix.Close(high) }()
	cam := &webcam.Webcam{}
	set(cam, "fd", uintptr(high))
	set(cam, "pollFds", []unix.PollFd{{Fd: int32(high), Events: unix.POLLIN}})
	d := &linuxDevice{cam: cam}
	if err := d.Wait(time.Millisecond); err != errQuiet { // it takes a second
		t.Errorf("with nothing to read: %v", err)
	}
	if _, err := unix.Write(p[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(time.Second); err != nil {
		t.Errorf("with a byte to read: %v", err)
	}
	// A file that is no device: each call gives the kernel's error.
	if _, _, err := d.Frame(); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("frame: %v", err)
	}
	if err := d.Release(0); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("release: %v", err)
	}
	if _, err := d.SetFormat(FormatGrey, 64, 48); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("set format: %v", err)
	}
	if err := d.Start(askBuffers); err == nil {
		t.Error("it starts")
	}
	if d.Formats() != nil || d.Sizes(FormatGrey) != nil || d.Rate(FormatGrey, 64, 48) != 0 || d.SetRate(15) != 0 || d.Controls() != nil {
		t.Error("it offers something")
	}
}

func TestOpenRefusesWhatIsNoCamera(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t)
	for range 2_000 { // of five
		for path, want := range map[string]string{
			os.DevNull:                  "open: not a video device",
			dir:                         "open: not a video device",
			fifo:                        "open: not a video device", // and its writer is not waited for
			write(t, "x", nil):          "open: not a video device",
			filepath.Join(dir, "video"): "open: no such file or directory: is it plugged in? no USB camera is",
		} {
			if _, err := openDevice(path); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, "no USB camera is")) {
				t.Fatalf("%s: %v, want %s", path, err, want)
			}
		}
	}
	if after := files(t); after > before {
		t.Errorf("%d files before, %d after", before, after)
	}
}

func TestCapabilitiesOfTheNodeCount(t *testing.T) {
	for name, c := range map[string]struct {
		whole, device uint32
		want          string
	}{
		"a camera":                {0x84A00001, 0x04200001, ""},
		"an old driver":           {0x04000001, 0, ""},
		"its metadata node":       {0x84A00001, 0x04A00000, "gives no pictures here (its capabilities are 0x4a00000)"},
		"an encoder":              {0x84204000, 0x04204000, "gives no pictures"},
		"only read":               {0x81000001, 0x01000001, "does not stream"},
		"an old one of an output": {0x04000002, 0, "gives no pictures"},
	} {
		caps := capability{whole: c.whole, device: c.device}
		copy(caps.card[:], "HD Webcam")
		err := caps.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"it was unplugged":        unix.ENODEV,
		"it was unplugged (":      fmt.Errorf("open: %w", unix.ENXIO),
		"plugged in?":             unix.ENOENT,
		"group video":             unix.EACCES,
		"another program uses it": errors.New("Failed to map request buffers: " + unix.EBUSY.Error()),
		"no bandwidth left":       errors.New("Failed to start streaming: " + unix.ENOSPC.Error()),
		"input/output error":      unix.EIO,
	} {
		got := explain(err)
		if got == nil || !strings.Contains(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%v: %v, want %s", err, got, want)
		}
	}
	var mode modeError
	if explain(nil) != nil || !errors.Is(explain(unix.ENODEV), errGone) || !errors.As(explain(unix.ENOSPC), &mode) || errors.As(explain(unix.EBUSY), &mode) {
		t.Error("kinds are lost")
	}
}

func TestTextIsPlain(t *testing.T) {
	if got := text([]byte("HD\x1b[31m\xff cam\x00rest")); got != "HD[31m cam" {
		t.Errorf("%q", got)
	}
}
