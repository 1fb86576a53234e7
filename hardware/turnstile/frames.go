package turnstile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A keeper and its parent exchange frames: JSON objects, one a line, at most
// frameLimit bytes. The parent's first is an open; each order after it is
// answered, in the order of the orders.
const frameLimit = 16 << 10

// verb says what a frame is.
type verb string

const (
	// From the parent.
	verbOpen    verb = "open"    // opens the wiring; answered by opened or refused
	verbSet     verb = "set"     // Line, Active
	verbBeat    verb = "beat"    // the parent lives
	verbPassage verb = "passage" // sim: Passage
	verbInput   verb = "input"   // sim: Line, Active

	// From the keeper.
	verbOpened  verb = "opened"
	verbRefused verb = "refused" // Err says why; the keeper ends
	verbAnswer  verb = "answer"  // to the order of the same ID; Err is empty where it was carried out
	verbChange  verb = "change"  // an input: Line, Active, MonoNS
	verbTripped verb = "tripped" // a limit made outputs inactive; Err says which
)

// frame is one of either side.
type frame struct {
	Do      verb    `json:"do"`
	ID      uint64  `json:"id,omitempty"`
	Line    Line    `json:"line"` // change, set and input only
	Active  bool    `json:"active,omitempty"`
	Passage Passage `json:"passage,omitempty"`
	MonoNS  int64   `json:"mono_ns,omitempty"` // CLOCK_MONOTONIC of the change
	Err     string  `json:"err,omitempty"`
	Held    bool    `json:"held,omitempty"` // refused: a line is in use
	Gone    bool    `json:"gone,omitempty"` // answer: the chip is gone
	Terms   *terms  `json:"terms,omitempty"`
}

// terms are what a keeper keeps.
type terms struct {
	Wiring Wiring        `json:"wiring"`
	MaxOn  time.Duration `json:"max_on"` // the relay is active for so long after a set at most
	Silent time.Duration `json:"silent"` // and any output for so long after the parent was heard last
	Retry  time.Duration `json:"retry"`  // how long a line that is in use is tried again
}

// frames reads one side's.
type frames struct{ r *bufio.Reader }

func newFrames(r io.Reader) frames { return frames{bufio.NewReaderSize(r, frameLimit)} }

// next gives the next frame; io.EOF at the end.
func (f frames) next() (frame, error) {
	line, err := f.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return frame{}, fmt.Errorf("read frame: more than %d bytes", frameLimit)
	case err != nil:
		return frame{}, err
	}
	var fr frame
	if err := json.Unmarshal(line, &fr); err != nil {
		return frame{}, fmt.Errorf("read frame: %w", err)
	}
	return fr, nil
}

// writeFrame writes one frame with one write.
func writeFrame(w io.Writer, fr frame) error {
	b, err := json.Marshal(fr)
	if err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}
