// Package reader reads codes from devices that deliver text: a scanner on a serial
// line or one that types as a keyboard does, a FIFO that another program writes
// to, standard input, a file. It knows nothing of tickets and judges nothing: a
// code arrives as the bytes that were sent, or the keys that were pressed.
package reader

import (
	"context"
	"time"
)

// Look is one code that a reader delivered.
type Look struct {
	// Text is what was sent, without the line end: any bytes, in any encoding,
	// never empty and never longer than MaxLine.
	Text string

	// At is when the end of it arrived, with a monotonic reading.
	At time.Time

	// Cut says that Text is not a whole line: it was longer than MaxLine, or its
	// end never came. It must not be taken for a code.
	Cut bool
}

// Reader is a source of looks.
type Reader interface {
	// Run calls out with each look, one call at a time, until ctx ends; then it
	// returns nil. A device that goes away is waited for and is no error. It is
	// called once.
	Run(ctx context.Context, out func(Look)) error
}
