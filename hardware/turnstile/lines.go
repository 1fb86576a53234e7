// Package turnstile drives a turnstile and its lamps: the relay that opens it,
// the red, green and amber lamp, the buzzer, and the contacts that say who went
// through. It knows nothing of tickets.
//
// A driver implements [Lines]: lines that are active or inactive, whatever
// their polarity. [Turnstile] stands on it and keeps what must hold whoever
// calls, and however late: the relay is never active beyond the maximum
// on-time after the last call that asked for it, a line sees no edge that
// nobody asked for, and when it ends everything is inactive.
//
// [Sim] is a driver without hardware: it writes each change of a line to a
// file, and people go through it by script.
package turnstile

import (
	"context"
	"fmt"
	"time"
)

// Line is one line of the turnstile's wiring.
type Line uint8

// The outputs, then the inputs. A turnstile need not have all of them wired.
const (
	// LineRelay opens the turnstile while it is active.
	LineRelay Line = iota
	// LineRed is the red cross.
	LineRed
	// LineGreen is the green arrow.
	LineGreen
	// LineAmber is the amber lamp.
	LineAmber
	// LineBuzzer sounds while it is active; it has one pitch.
	LineBuzzer
	// LineLight lights what the camera sees, while it is dark.
	LineLight

	// LinePassageIn becomes active once for each person who enters.
	LinePassageIn
	// LinePassageOut becomes active once for each person who leaves.
	LinePassageOut
	// LineReady is active while the turnstile can be used.
	LineReady
	// LineAlarm is active while the turnstile reports a fault or forced entry.
	LineAlarm
	// LineEmergency is active while people must get out: the relay is active for
	// as long, whatever else is asked for.
	LineEmergency
	// LineStaff becomes active each time that staff press their button.
	LineStaff

	lineCount
)

// outputCount is how many outputs there are: they come first.
const outputCount = LineLight + 1

var lineNames = [lineCount]string{
	"relay", "red", "green", "amber", "buzzer", "light",
	"passage_in", "passage_out", "ready", "alarm", "emergency", "staff",
}

// String gives the line's name as configuration and the simulated turnstile's
// file spell it.
func (l Line) String() string {
	if l < lineCount {
		return lineNames[l]
	}
	return fmt.Sprintf("line(%d)", uint8(l))
}

// MarshalText gives the name, so that a line is one in JSON, also as a key.
func (l Line) MarshalText() ([]byte, error) {
	if l >= lineCount {
		return nil, fmt.Errorf("there is no %v", l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads a name, as ParseLine does.
func (l *Line) UnmarshalText(b []byte) error {
	line, err := ParseLine(string(b))
	if err == nil {
		*l = line
	}
	return err
}

// Output tells whether the line is one that we drive.
func (l Line) Output() bool { return l < outputCount }

// Input tells whether the line is one that we read.
func (l Line) Input() bool { return l >= outputCount && l < lineCount }

// ParseLine reads a line's name.
func ParseLine(name string) (Line, error) {
	for l, n := range lineNames {
		if n == name {
			return Line(l), nil
		}
	}
	return 0, fmt.Errorf("parse line: %q is none of %v", name, lineNames)
}

// Change is an input line that took a state. At carries a monotonic reading.
type Change struct {
	Line   Line
	Active bool
	At     time.Time
}

// Lines is a driver: the lines of one turnstile. Polarity is the driver's
// matter: everywhere else a line is active or inactive. A driver is opened with
// every output inactive and with no edge on the way there. Its methods may be
// called from several goroutines at once.
type Lines interface {
	// Set makes an output active or inactive. A line that is not wired is
	// accepted and ignored. Setting what is set already makes no edge; for the
	// relay it is a renewal, from which a driver with a time limit of its own
	// counts again. After an error the line's level is not known.
	Set(line Line, active bool) error

	// Inputs names the inputs that are wired; the answer never changes.
	Inputs() []Line

	// Watch calls changed first with the present state of every wired input and
	// then with each change, one call at a time, until ctx ends; then it returns
	// nil. It returns an error when the inputs cannot be read any more. It runs
	// once in a driver's life.
	Watch(ctx context.Context, changed func(Change)) error

	// Close makes every output inactive and gives the lines back.
	Close() error
}
