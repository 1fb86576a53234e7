package turnstile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// trace writes down each change of each output.
type trace struct {
	w      io.Writer
	file   *os.File // where it is one
	opened time.Time
	mono   int64 // CLOCK_MONOTONIC at opened, ns
}

// traceLine is one line of the file.
type traceLine struct {
	MonoNS int64  `json:"mono_ns"`
	Line   string `json:"line"`
	Active bool   `json:"active"`
}

func openTrace(o SimOptions) (*trace, error) {
	mono, err := monotonic()
	if err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	// The second reading is the later one: a process that stands still in between
	// dates its changes too early by that, but none after what follows it.
	t := &trace{w: o.Trace, mono: mono, opened: time.Now()}
	if o.Path == "" {
		return t, nil
	}
	t.file, err = os.OpenFile(o.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	t.w = t.file
	if err := lock(t.file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w by another process: %w", o.Path, ErrHeld, err), t.file.Close())
	}
	if err := t.repair(); err != nil {
		return nil, errors.Join(fmt.Errorf("repair %s: %w", o.Path, err), t.file.Close())
	}
	return t, nil
}

// write appends one change with one write. A Go time's monotonic reading is
// CLOCK_MONOTONIC, so that what it adds to the first reading is the next one.
func (t *trace) write(line Line, active bool) error {
	if t.w == nil {
		return nil
	}
	b, err := json.Marshal(traceLine{t.mono + int64(time.Since(t.opened)), line.String(), active})
	if err != nil {
		return fmt.Errorf("write down %v: %w", line, err)
	}
	if _, err := t.w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write down %v: %w", line, err)
	}
	return nil
}

func (t *trace) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// repair makes the file's end true: a line that was cut off is ended, and
// outputs that it leaves active are inactive from now on, for that is how the
// lines were opened.
func (t *trace) repair() error {
	end, err := t.file.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return err
	}
	var last [1]byte
	if _, err := t.file.ReadAt(last[:], end-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		if _, err := t.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		end++
	}
	left, err := leftActive(t.file, end)
	if err != nil {
		return err
	}
	for line := LineRelay; line.Output(); line++ {
		if !left[line] {
			continue
		}
		if err := t.write(line, false); err != nil {
			return err
		}
	}
	return nil
}

// tailChunk is how much of a trace is read at a time, from its end.
const tailChunk = 64 << 10

// leftActive tells which outputs a trace of a size leaves active. It reads from
// the end, only as far as it must: a relay may have become active long ago,
// with a lamp blinking since.
func leftActive(f io.ReaderAt, size int64) (active [outputCount]bool, err error) {
	var known [outputCount]bool
	missing := len(known)
	see := func(text []byte) {
		var l traceLine
		if json.Unmarshal(text, &l) != nil {
			return // a line that was cut off says nothing
		}
		line, err := ParseLine(l.Line)
		if err != nil || !line.Output() || known[line] {
			return
		}
		known[line], active[line] = true, l.Active
		missing--
	}
	err = linesBackwards(f, size, func(text []byte) bool {
		see(text)
		return missing > 0
	})
	return active, err
}
