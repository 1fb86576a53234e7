package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"
)

// Times of the line reader.
const (
	// silence ends a line whose end does not come: at 1,200 baud a byte takes 9 ms.
	silence = time.Second
	// checkEvery is how often a silent source is looked at: is its path still
	// the same file? A source that lived so long works.
	checkEvery = 2 * time.Second
	// Between two tries to open: doubled from the first to the last, and up to a
	// quarter more, so that several readers do not try in step.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// LineOptions of a line reader.
type LineOptions struct {
	// Path is a FIFO, a serial line or another character device, a file, or "-"
	// for standard input.
	//
	// Where nothing is there, a FIFO is made, with mode 0600; not below /dev and
	// not in a directory of another user. A FIFO is held open, so that its
	// writers come and go. A file and standard input are read to their end once.
	Path string

	// Log is told once when the path cannot be read, and once when it can be
	// again; default: discard. Codes are never logged.
	Log *slog.Logger
}

// Line reads one code a line, from what NewLine, NewSerial or NewEvdev names.
type Line struct {
	path    string
	log     *slog.Logger
	open    func() (source, error)
	state   atomic.Pointer[error] // nil: open
	started atomic.Bool
	told    bool // that it is lost; belongs to Run
}

// source is what lines are read from.
type source struct {
	io.ReadCloser
	deadline func(time.Time) error // of a read; an error where it has none
	same     func() bool           // is the path still this source?
	ends     bool                  // its end is an end: there is nothing to reopen
	decoder  decoder               // nil: its bytes are text
	doubt    func() error          // nil, or what the source holds against itself while it works
}

// decoder makes looks of what a source delivers.
type decoder interface {
	take(data []byte, at time.Time, out func(Look)) // what arrived at a time
	flush(at time.Time, cut bool, out func(Look))   // the line ends here, cut or not
	inside() bool                                   // a line has begun and not ended
}

// errEnd is the end of a device that should have none: unplugged, or hung up.
var errEnd = errors.New("the device ended")

// errReplaced is returned when the path is another file by now.
var errReplaced = errors.New("the path was replaced")

// NewLine makes a line reader and opens nothing.
func NewLine(o LineOptions) (*Line, error) {
	if o.Path == "" {
		return nil, errors.New("set up line reader: the path is empty")
	}
	return newLine(o.Path, o.Log, open), nil
}

func newLine(path string, log *slog.Logger, open func(path string) (source, error)) *Line {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Line{path: path, log: log, open: func() (source, error) { return open(path) }}
	notYet := fmt.Errorf("read %s: not open yet", path)
	l.state.Store(&notYet)
	return l
}

// State is nil while the path is open, or was read to its end, and says why it
// is not otherwise, or what is wrong with what it delivers.
func (l *Line) State() error {
	if err := l.state.Load(); err != nil {
		return *err
	}
	return nil
}

// Run implements Reader. It returns an error only when it was run before.
func (l *Line) Run(ctx context.Context, out func(Look)) error {
	if l.started.Swap(true) {
		return errors.New("run line reader: it was run before")
	}
	pause := firstPause
	for ctx.Err() == nil {
		err := l.session(ctx, out, func() {
			pause = firstPause
			l.well()
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			<-ctx.Done()
			return nil
		case errors.Is(err, errReplaced):
			continue
		}
		l.ill(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause + rand.N(pause/4)):
		}
		pause = min(2*pause, lastPause)
	}
	return nil
}

// session opens the source and reads it until it ends or fails. It calls works
// when the source has lived for a while: opening it, or a byte from it, proves
// nothing of a device that then ends. Nil means that it was read to its end.
func (l *Line) session(ctx context.Context, out func(Look), works func()) error {
	src, err := l.open()
	if err != nil {
		return fmt.Errorf("open %s: %w", l.path, err)
	}
	l.state.Store(nil)
	interrupt := context.AfterFunc(ctx, func() { _ = src.deadline(time.Unix(1, 0)) })
	defer interrupt()
	err = l.read(ctx, src, out, works)
	if cerr := src.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close %s: %w", l.path, cerr)
	}
	return err
}

func (l *Line) read(ctx context.Context, src source, out func(Look), works func()) error {
	s := src.decoder
	if s == nil {
		s = &splitter{}
	}
	buf := make([]byte, 4096)
	opened := time.Now()
	for {
		wait := checkEvery
		if s.inside() {
			wait = silence
		}
		// A source without deadlines, as a file, does not block either.
		_ = src.deadline(time.Now().Add(wait))
		if ctx.Err() != nil {
			return nil
		}
		n, err := src.Read(buf)
		now := time.Now()
		s.take(buf[:n], now, out)
		if src.doubt != nil {
			l.doubt(src.doubt())
		}
		if now.Sub(opened) >= checkEvery {
			works()
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.flush(now, true, out)
			if !src.same() {
				return errReplaced
			}
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("read %s: %w", l.path, err)
		case src.ends:
			s.flush(now, false, out)
			return nil
		default:
			return fmt.Errorf("read %s: %w", l.path, errEnd)
		}
	}
}

// doubt follows what a source that works says of itself; that is told when it
// begins.
func (l *Line) doubt(err error) {
	if (err == nil) == (l.State() == nil) {
		return
	}
	if err == nil {
		l.state.Store(nil)
		return
	}
	err = fmt.Errorf("read %s: %w", l.path, err)
	l.state.Store(&err)
	l.log.Warn("reader in doubt", "path", l.path, "error", err)
}

// well follows a source that works; that is told where its loss was.
func (l *Line) well() {
	if l.told {
		l.log.Info("reader works again", "path", l.path)
	}
	l.told = false
}

// ill follows a source that was lost, or was never there; that is told once.
func (l *Line) ill(err error) {
	l.state.Store(&err)
	if !l.told {
		l.log.Warn("reader lost, trying again", "path", l.path, "error", err)
	}
	l.told = true
}
