package camera

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Times of a child's end.
const (
	politeFor = 500 * time.Millisecond // from SIGTERM to SIGKILL
	pipesFor  = time.Second            // for its standard error, which somebody else may hold open
)

// command is a running child and what it writes.
type command struct {
	*os.File // its standard output
	cmd      *exec.Cmd
	said     tail
	done     chan error // the child was waited for
	end      chan struct{}
}

// startCommand starts a program in a process group of its own, so that all that
// it starts ends with it.
func startCommand(argv []string) (stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	c := &command{File: r, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan error, 1), end: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = w, &c.said
	c.cmd.Dir = "/"
	c.cmd.Env = slices.DeleteFunc(os.Environ(), ours)
	c.cmd.WaitDelay = pipesFor
	// The child is killed when we are. The kernel takes the end of the thread that
	// started it for our end, so that thread is kept for as long as the child lives.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		if started <- err; err != nil {
			return
		}
		<-c.end
		c.done <- c.cmd.Wait()
	}()
	err = <-started
	if cerr := w.Close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start: %w", err), r.Close())
	}
	return c, nil
}

// ours tells the variables that are this process's alone: a child that spoke to
// the service manager in our name could keep a dead gate alive.
func ours(env string) bool {
	name, _, _ := strings.Cut(env, "=")
	switch name {
	case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "CREDENTIALS_DIRECTORY":
		return true
	}
	return false
}

// Close ends the child and its process group, politely at first, and says how it
// ended and what it wrote last to its standard error.
func (c *command) Close() error {
	// Nobody has waited for the child yet, so its number is still its own.
	group := -c.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	_ = c.SetReadDeadline(time.Now().Add(politeFor))
	for buf := make([]byte, 4096); ; { // until all of the group have closed their end
		if _, err := c.Read(buf); err != nil {
			break
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	close(c.end)
	err := <-c.done
	if cerr := c.File.Close(); cerr != nil {
		return cerr
	}
	if last := c.said.last(); last != "" {
		return fmt.Errorf("it ended with %v, its last words: %s", how(err), last)
	}
	return fmt.Errorf("it ended with %v", how(err))
}

func how(err error) any {
	if err == nil {
		return "exit status 0"
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 512 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-maxTail):]...)
	if n := len(t.buf) - maxTail; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

// last gives the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buf), []byte("\n"))
	return text(lines[len(lines)-1])
}

// openPath connects to a socket, or opens a FIFO.
func openPath(path string) (stream, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", errors.Unwrap(err))
	}
	switch info.Mode().Type() {
	case fs.ModeSocket:
		conn, err := net.DialTimeout("unix", path, politeFor)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		return conn.(*net.UnixConn), nil
	case fs.ModeNamedPipe:
		// For writing, too: so it is open while no writer is there yet, and does not
		// end with one.
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		return f, nil
	}
	return nil, errors.New("open: neither a socket nor a FIFO")
}
