package camera

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// program is a child that is played by a test: each opening is a pipe that write
// is called with. It ends when write returns, and counts openings and ends.
type program struct {
	mu            sync.Mutex
	opens, closes int
	fail          error
	write         func(opening int, w io.Writer) error
	writers       sync.WaitGroup
}

type played struct {
	net.Conn
	p *program
}

func (c played) Close() error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.closes++
	return errors.Join(c.Conn.Close(), errors.New("it ended with exit status 7"))
}

// SetReadDeadline is that of a pipe between processes, which does not mind that
// the other end is closed.
func (c played) SetReadDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func (p *program) open() (stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opens++
	if p.fail != nil {
		return nil, p.fail
	}
	ours, theirs := net.Pipe()
	n := p.opens
	p.writers.Go(func() {
		_ = p.write(n, theirs)
		_ = theirs.Close()
	})
	return played{ours, p}, nil
}

func (p *program) count() (opens, closes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opens, p.closes
}

// withProgram runs a test with a child camera over a program, in a bubble.
func withProgram(t *testing.T, p *program, test func(t *testing.T, c *Child, log *syncLog, seen func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &syncLog{}
		c, err := NewChild(ChildOptions{Command: []string{"rpicam-vid", "-o", "-"}, Log: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		c.open = p.open
		var mu sync.Mutex
		n := 0
		ctx, stop := contextOf(t)
		done := make(chan error)
		go func() {
			done <- c.Run(ctx, func(f Frame) {
				mu.Lock()
				defer mu.Unlock()
				if n++; f.W != 64 || f.H != 48 {
					t.Errorf("a frame of %d x %d", f.W, f.H)
				}
			})
		}()
		test(t, c, log, func() int { synctest.Wait(); mu.Lock(); defer mu.Unlock(); return n })
		begun := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(begun) > 0 {
			t.Errorf("run: %v after %v", err, time.Since(begun))
		}
		p.writers.Wait() // on the bubble's clock
		if opens, closes := p.count(); p.fail == nil && opens != closes {
			t.Errorf("opened %d times, closed %d times", opens, closes)
		}
	})
}

// pictures writes n pictures, ten a second.
func pictures(w io.Writer, n int, p []byte) error { return every(100*time.Millisecond, w, n, p) }

// slowly writes n pictures, two a second.
func slowly(w io.Writer, n int, p []byte) error { return every(500*time.Millisecond, w, n, p) }

func every(d time.Duration, w io.Writer, n int, p []byte) error {
	for range n {
		if _, err := w.Write(p); err != nil {
			return err
		}
		time.Sleep(d)
	}
	return nil
}

func TestChildDelivers(t *testing.T) {
	p := withoutTables(t, jpegOf(t, noisy(64, 48, 1)))
	child := &program{write: func(_ int, w io.Writer) error { return pictures(w, 1<<20, p) }}
	withProgram(t, child, func(t *testing.T, c *Child, log *syncLog, seen func() int) {
		time.Sleep(time.Minute)
		if n := seen(); n < 590 || n > 601 {
			t.Errorf("%d frames in a minute", n)
		}
		if err := c.State(); err != nil || len(log.lines("")) != 1 {
			t.Errorf("%v, %q", err, log.lines(""))
		}
	})
}

func TestChildIsStartedAgain(t *testing.T) {
	p := jpegOf(t, noisy(64, 48, 1))
	for name, c := range map[string]struct {
		write      func(opening int, w io.Writer) error
		want       string // State
		most       int    // openings in ten minutes
		seen, lost int    // frames at least, lines of loss
	}{
		"ends at once":        {func(int, io.Writer) error { return nil }, "its pictures ended (it ended with exit status 7)", 130, 0, 1},
		"says nothing":        {func(_ int, w io.Writer) error { time.Sleep(time.Hour); return nil }, "no frame for 8s (it ended with exit status 7)", 50, 0, 1},
		"stalls after a time": {func(_ int, w io.Writer) error { _ = slowly(w, 10, p); time.Sleep(time.Hour); return nil }, "", 100, 700, 100},
		"noise":               {func(_ int, w io.Writer) error { return pictures(w, 1<<20, bytes.Repeat([]byte("noise "), 100)) }, "no frame for 8s", 50, 0, 1},
		"cut pictures":        {func(_ int, w io.Writer) error { return pictures(w, 1<<20, p[:len(p)-50]) }, "a picture that is cut", 110, 0, 1},
		"ten thousand a second": {func(_ int, w io.Writer) error {
			for {
				if _, err := w.Write(bytes.Repeat(p[:8], 100)); err != nil {
					return err
				}
			}
		}, "a picture that is cut", 135, 0, 1},
		"zeros without end": {func(_ int, w io.Writer) error {
			for b := make([]byte, 1<<20); ; {
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
		}, "no picture in 16777216 bytes", 135, 0, 1},
		"pictures of nothing": {func(_ int, w io.Writer) error {
			return pictures(w, 1<<20, []byte{0xFF, 0xD8, 0xFF, 0xDA, 0, 2, 1, 2, 3, 0xFF, 0xD9})
		}, "without a believable size", 130, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			child := &program{write: c.write}
			withProgram(t, child, func(t *testing.T, cam *Child, log *syncLog, seen func() int) {
				time.Sleep(10*time.Minute + 50*time.Millisecond)
				err := cam.State()
				if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("state %v, want %s", err, c.want)
				}
				opens, _ := child.count()
				if opens > c.most || opens < 20 || seen() < c.seen {
					t.Errorf("started %d times, %d frames", opens, seen())
				}
				if n := len(log.lines("camera lost")); n < 1 || n > c.lost {
					t.Errorf("told %d times", n)
				}
			})
		})
	}
	child := &program{fail: fmt.Errorf("start: no such file or directory")}
	withProgram(t, child, func(t *testing.T, cam *Child, log *syncLog, _ func() int) {
		time.Sleep(time.Minute)
		if err := cam.State(); err == nil || err.Error() != "camera child rpicam-vid: start: no such file or directory" {
			t.Error(err)
		}
		if child.opens < 10 || child.opens > 25 {
			t.Errorf("tried %d times in a minute", child.opens)
		}
	})
}

// A few bad pictures between good ones are counted, and that is all.
func TestChildWithSomeBadPictures(t *testing.T) {
	p := jpegOf(t, noisy(64, 48, 1))
	huge := bytes.Clone(p)
	sof := bytes.Index(huge, []byte{0xFF, markSOF0})
	copy(huge[sof+5:], []byte{0xFF, 0xFF, 0xFF, 0xFF})
	progressive := bytes.Clone(p)
	progressive[sof+1] = 0xC2
	child := &program{write: func(_ int, w io.Writer) error {
		for {
			if err := pictures(w, 1, bytes.Join([][]byte{p, huge, p[:len(p)-50], progressive, []byte("noise")}, nil)); err != nil {
				return err
			}
		}
	}}
	withProgram(t, child, func(t *testing.T, c *Child, _ *syncLog, seen func() int) {
		time.Sleep(time.Minute)
		if n := seen(); n < 500 || c.State() != nil {
			t.Errorf("%d frames, %v", n, c.State())
		}
		if s := c.Stats(); s.Skipped < 3*s.Frames-5 || s.Skipped > 3*s.Frames+5 || s.Lost != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// late is a stream that hears of the end just before it gets a new deadline.
type late struct {
	net.Conn
	stop func()
}

func (l late) SetReadDeadline(t time.Time) error {
	if t.After(time.Now()) {
		l.stop()
		synctest.Wait() // until its interruption has been
	}
	return l.Conn.SetReadDeadline(t)
}

func TestStopIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := contextOf(t)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c, err := NewChild(ChildOptions{Path: "x"})
		if err != nil {
			t.Fatal(err)
		}
		c.open = func() (stream, error) { return late{ours, stop}, nil }
		begun := time.Now()
		if err := c.Run(ctx, nil); err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestNewChildRefuses(t *testing.T) {
	for _, o := range []ChildOptions{{}, {Command: []string{"a"}, Path: "/b"}} {
		if _, err := NewChild(o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
}
