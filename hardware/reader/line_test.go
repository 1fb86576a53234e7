package reader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var _ Reader = (*Line)(nil)

// stage is a line reader in a bubble whose source is played by the test.
type stage struct {
	*Line
	t     *testing.T
	log   bytes.Buffer
	opens int
	looks []Look
}

// onStage runs f with a reader, then ends it; the bubble's end proves that no
// goroutine is left.
func onStage(t *testing.T, open func(s *stage) (source, error), f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		l, err := NewLine(LineOptions{Path: "played", Log: slog.New(slog.NewTextHandler(&s.log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		s.Line = l
		l.open = func() (source, error) {
			if s.opens++; s.opens > 100_000 {
				panic("busy loop: no time passes any more")
			}
			return open(s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx, func(look Look) { s.looks = append(s.looks, look) }) }()
		synctest.Wait()
		f(t, s)
		cancel()
		synctest.Wait()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		default:
			t.Fatal("Run did not end")
		}
	})
}

// pipeSource is a source that the far end of a pipe writes to.
func pipeSource() (source, net.Conn) {
	near, far := net.Pipe()
	return source{ReadCloser: near, deadline: near.SetReadDeadline, same: func() bool { return true }}, far
}

// onPipe runs f with a reader that reads a pipe.
func onPipe(t *testing.T, f func(t *testing.T, s *stage, far net.Conn)) {
	t.Helper()
	var far net.Conn
	open := func(*stage) (src source, err error) {
		src, far = pipeSource()
		return src, nil
	}
	onStage(t, open, func(t *testing.T, s *stage) { f(t, s, far) })
}

func (s *stage) texts() (texts []string) {
	synctest.Wait()
	for _, l := range s.looks {
		text := l.Text
		if l.Cut {
			text += "<cut>"
		}
		texts = append(texts, text)
	}
	return texts
}

func (s *stage) wantTexts(want ...string) {
	s.t.Helper()
	if got := s.texts(); !slices.Equal(got, want) {
		s.t.Errorf("looks %.20q, want %.20q", got, want)
	}
}

// pass lets time pass and everything that is due happen.
func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// told counts the log's lines of a level.
func (s *stage) told(level string) int {
	synctest.Wait()
	return strings.Count(s.log.String(), "level="+level)
}

func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestLooksArriveAtOnceWithTheirTime(t *testing.T) {
	onPipe(t, func(t *testing.T, s *stage, far net.Conn) {
		for _, text := range []string{"one\r", "two\n", "three\r\n"} {
			s.pass(time.Hour)
			send(t, far, text)
			synctest.Wait()
			if at := s.looks[len(s.looks)-1].At; !at.Equal(time.Now()) {
				t.Errorf("%q arrived now and has the time %v", text, at)
			}
		}
		s.wantTexts("one", "two", "three")
		if s.opens != 1 || s.State() != nil || s.log.Len() != 0 {
			t.Errorf("%d opens, state %v, log %s", s.opens, s.State(), s.log.String())
		}
	})
}

// TestLineWithoutEnd: what a writer left unfinished is told as cut, and costs
// the next line nothing.
func TestLineWithoutEnd(t *testing.T) {
	onPipe(t, func(t *testing.T, s *stage, far net.Conn) {
		send(t, far, "slow")
		s.pass(silence - time.Millisecond)
		send(t, far, "ly")
		s.pass(silence - time.Millisecond)
		send(t, far, "\n")
		s.wantTexts("slowly")
		send(t, far, "half")
		s.pass(silence)
		send(t, far, "good\n")
		s.wantTexts("slowly", "half<cut>", "good")
		long := strings.Repeat("x", MaxLine)
		send(t, far, long+long)
		s.pass(silence)
		send(t, far, "next\n")
		s.wantTexts("slowly", "half<cut>", "good", long+"<cut>", "next")
	})
}

// ending is a source that gives a text and then an error, for ever.
type ending struct {
	text io.Reader
	err  error
}

func (e ending) Read(b []byte) (int, error) {
	if n, err := e.text.Read(b); err == nil {
		return n, nil
	}
	return 0, e.err
}

func (e ending) Close() error { return nil }

func endingSource(text string, err error) source {
	return source{
		ReadCloser: ending{strings.NewReader(text), err},
		deadline:   func(time.Time) error { return errors.ErrUnsupported },
		same:       func() bool { return true },
	}
}

// TestBrokenDeviceIsNoBusyLoop: however a device fails, it is tried a few times
// a minute, and told once.
func TestBrokenDeviceIsNoBusyLoop(t *testing.T) {
	broken := errors.New("broken device")
	for name, open := range map[string]func(*stage) (source, error){
		"cannot be opened":         func(*stage) (source, error) { return source{}, broken },
		"ends at once":             func(*stage) (source, error) { return endingSource("", io.EOF), nil },
		"fails at once":            func(*stage) (source, error) { return endingSource("", broken), nil },
		"says something and ends":  func(*stage) (source, error) { return endingSource("x\n", io.EOF), nil },
		"says something and fails": func(*stage) (source, error) { return endingSource("x\n", broken), nil },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, open, func(t *testing.T, s *stage) {
				s.pass(time.Minute)
				if s.opens < 5 || s.opens > 20 {
					t.Errorf("opened %d times in a minute", s.opens)
				}
				if s.told("WARN") != 1 || s.told("INFO") != 0 {
					t.Errorf("told: %s", s.log.String())
				}
				if s.State() == nil {
					t.Error("its state is well")
				}
				if strings.Contains(name, "says") && len(s.looks) != s.opens {
					t.Errorf("%d looks in %d times", len(s.looks), s.opens)
				}
			})
		})
	}
}

func TestPluggedInAgain(t *testing.T) {
	var far net.Conn
	var plugged atomic.Bool
	plugged.Store(true)
	open := func(*stage) (src source, err error) {
		if !plugged.Load() {
			return source{}, errors.New("no such device")
		}
		src, far = pipeSource()
		return src, nil
	}
	onStage(t, open, func(t *testing.T, s *stage) {
		for range 3 {
			s.pass(time.Minute)
			send(t, far, "code\nhal")
			plugged.Store(false)
			if err := far.Close(); err != nil {
				t.Fatal(err)
			}
			s.pass(time.Minute)
			if s.State() == nil {
				t.Error("unplugged, and its state is well")
			}
			plugged.Store(true)
			s.pass(lastPause + lastPause/4) // the longest that it may take
			if s.State() != nil {
				t.Errorf("plugged in again: %v", s.State())
			}
			send(t, far, "code\n")
		}
		s.wantTexts("code", "code", "code", "code", "code", "code")
		s.pass(time.Minute)
		if s.told("WARN") != 3 || s.told("INFO") != 3 {
			t.Errorf("told: %s", s.log.String())
		}
		if strings.Contains(s.log.String(), "code") {
			t.Errorf("a code was logged: %s", s.log.String())
		}
	})
}

func TestReplacedPathIsOpenedAgain(t *testing.T) {
	var far net.Conn
	var replaced atomic.Bool
	open := func(*stage) (src source, err error) {
		src, far = pipeSource()
		mine := far
		src.same = func() bool { return mine != far || !replaced.Load() }
		return src, nil
	}
	onStage(t, open, func(t *testing.T, s *stage) {
		s.pass(time.Minute)
		if s.opens != 1 {
			t.Fatalf("opened %d times", s.opens)
		}
		replaced.Store(true)
		s.pass(checkEvery)
		replaced.Store(false)
		if s.opens != 2 || s.log.Len() != 0 {
			t.Errorf("opened %d times, told %s", s.opens, s.log.String())
		}
		send(t, far, "code\n")
		s.wantTexts("code")
	})
}

func TestFileIsReadOnce(t *testing.T) {
	open := func(*stage) (source, error) {
		src := endingSource("one\ntwo\nlast", io.EOF)
		src.ends = true
		return src, nil
	}
	onStage(t, open, func(t *testing.T, s *stage) {
		s.pass(time.Hour)
		s.wantTexts("one", "two", "last")
		if s.opens != 1 || s.State() != nil || s.log.Len() != 0 {
			t.Errorf("%d opens, state %v, log %s", s.opens, s.State(), s.log.String())
		}
	})
}

func TestRunIsCalledOnce(t *testing.T) {
	onPipe(t, func(t *testing.T, s *stage, _ net.Conn) {
		if err := s.Run(t.Context(), func(Look) {}); err == nil {
			t.Error("a second Run was taken")
		}
	})
	if _, err := NewLine(LineOptions{}); err == nil {
		t.Error("an empty path was taken")
	}
}
