package camera

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started is a child camera with real processes.
type started struct {
	t      *testing.T
	cam    *Child
	frames chan Frame // the channel holds one: frames are dropped while nobody reads
	stop   func()
	log    *syncLog
}

func startChild(t *testing.T, o ChildOptions) *started {
	t.Helper()
	s := &started{t: t, frames: make(chan Frame, 1), log: &syncLog{}}
	o.Log = s.log.logger()
	var err error
	if s.cam, err = NewChild(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- s.cam.Run(ctx, func(f Frame) {
			f.Pix = nil // not ours afterwards
			select {
			case s.frames <- f:
			default:
			}
		})
	}()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if got := s.log.lines("hangs"); len(got) > 0 {
			t.Errorf("told %q", got)
		}
	}
	return s
}

func (s *started) frame() Frame {
	s.t.Helper()
	select {
	case f := <-s.frames:
		return f
	case <-time.After(30 * time.Second):
		s.t.Fatalf("no frame: %v", s.cam.State())
		return Frame{}
	}
}

// loses waits until the camera was lost n times in all.
func (s *started) loses(n uint64) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if <-tick.C; s.cam.Stats().Lost >= n {
			return
		}
	}
	s.t.Fatalf("not lost: %v", s.cam.State())
}

func picture(t *testing.T) (path string, p []byte) {
	p = jpegOf(t, noisy(64, 48, 1))
	return write(t, "p.jpg", p), p
}

// ends tells whether a process is gone; one that nobody waits for is, too.
func ends(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestChildAndAllItStartedEnd(t *testing.T) {
	before := files(t)
	pic, _ := picture(t)
	for name, script := range map[string]string{
		"obeys":               `sleep 1000 & echo $! $$ >"$1"; cat "$0"; wait`,
		"ignores the polite":  `trap "" TERM; (trap "" TERM; sleep 1000) & echo $! $$ >"$1"; while :; do cat "$0"; done`,
		"stopped":             `sleep 1000 & echo $! $$ >"$1"; cat "$0"; kill -STOP $$`,
		"has left its output": `sleep 1000 >/dev/null & echo $! $$ >"$1"; cat "$0"; exec >/dev/null; wait`,
	} {
		pids := filepath.Join(t.TempDir(), "pids")
		s := startChild(t, ChildOptions{Command: []string{"sh", "-c", script, pic, pids}})
		if f := s.frame(); f.W != 64 || time.Since(f.Captured) > 20*time.Second {
			t.Errorf("%s: %+v", name, f)
		}
		text, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s.stop()
		if d := time.Since(begun); d > 10*time.Second {
			t.Errorf("%s: stopped after %v", name, d)
		}
		for _, pid := range strings.Fields(string(text)) {
			for range 300 { // a killed process takes a moment to be gone
				if ends(pid) {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			if !ends(pid) {
				t.Errorf("%s: process %s goes on", name, pid)
			}
		}
	}
	if after := files(t); after > before {
		t.Errorf("%d files before, %d after", before, after)
	}
}

func TestChildThatEndsIsStartedAgain(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
	t.Setenv("ADMIT_TEST", "kept")
	pic, _ := picture(t)
	before := files(t)
	s := startChild(t, ChildOptions{Command: []string{"sh", "-c", `cat "$0"; echo first >&2; echo "[$NOTIFY_SOCKET] $ADMIT_TEST $PWD" >&2; exit 3`, pic}})
	for range 3 {
		s.frame()
	}
	s.loses(3)
	if got := s.log.lines("camera lost"); len(got) != 1 || !strings.Contains(got[0], "its pictures ended (it ended with exit status 3, its last words: [] kept /)") {
		t.Errorf("told %q", got)
	}
	s.stop()
	if after := files(t); after > before {
		t.Errorf("%d files before, %d after", before, after)
	}
}

func TestChildThatStallsIsKilled(t *testing.T) {
	pic, _ := picture(t)
	s := startChild(t, ChildOptions{Command: []string{"sh", "-c", `cat "$0"; sleep 1000`, pic}, Deadline: 50 * time.Millisecond})
	s.frame()
	s.frame()
	s.stop()
	if got := s.log.lines("camera lost"); len(got) != 1 || !strings.Contains(got[0], "signal: terminated") {
		t.Errorf("told %q", got)
	}
}

func TestChildThatIsNotThere(t *testing.T) {
	s := startChild(t, ChildOptions{Command: []string{"/nowhere/rpicam-vid"}})
	s.loses(2)
	if err := s.cam.State(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	s.stop()
}

func TestSocketIsConnectedAgain(t *testing.T) {
	_, p := picture(t)
	path := filepath.Join(t.TempDir(), "camera.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(slices.Concat([]byte("--frame\r\n\r\n"), p, p))
			_ = conn.Close()
		}
	}()
	s := startChild(t, ChildOptions{Path: path})
	for range 3 {
		s.frame()
	}
	s.loses(2)
	s.stop()
}

// Writers of a FIFO come and go, and the camera stays.
func TestFIFOIsHeldOpen(t *testing.T) {
	_, p := picture(t)
	path := filepath.Join(t.TempDir(), "camera.fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startChild(t, ChildOptions{Path: path, Deadline: time.Minute})
	for range 3 {
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the camera
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s.frame()
	}
	if st := s.cam.Stats(); st.Lost > 0 {
		t.Errorf("%+v", st)
	}
	s.stop()
}

func TestPathThatIsNoStream(t *testing.T) {
	pic, _ := picture(t)
	for want, path := range map[string]string{
		"neither a socket nor a FIFO": pic, "no such file": pic + ".not", "neither a socket nor a FIFO ": os.DevNull,
	} {
		if _, err := openPath(path); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var l tail
	for range 100 {
		if n, err := l.Write([]byte(strings.Repeat("x", 99) + "\n")); n != 100 || err != nil {
			t.Fatal(n, err)
		}
	}
	_, _ = l.Write([]byte(strings.Repeat("y", 10_000)))
	_, _ = l.Write([]byte("\nno camera\x1b[31m\x00there\n\n"))
	if got := l.last(); got != "no camera[31m" || len(l.buf) > maxTail {
		t.Errorf("%q of %d bytes", got, len(l.buf))
	}
	if got := (&tail{}).last(); got != "" {
		t.Errorf("%q", got)
	}
}
