package reader

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// DefaultBaud is the rate of a serial line whose rate nobody named, in bits a
// second. Scanner modules on USB (CDC) take any rate and ignore it.
const DefaultBaud = 115200

// SerialOptions of a serial reader.
type SerialOptions struct {
	// Path is a serial device, best by its name in /dev/serial/by-id, which stays
	// when the device is plugged in elsewhere.
	Path string

	Baud int          // bits a second, one of Bauds; default DefaultBaud
	Log  *slog.Logger // as in LineOptions
}

// Bauds are the rates that a serial line can have, in bits a second: those that
// every kind of Linux and every USB adapter knows.
func Bauds() []int {
	return []int{1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600}
}

// NewSerial makes a reader of a serial line, and opens nothing. The line is held
// exclusively and set to 8 data bits, no parity, one stop bit, no flow control,
// nothing interpreted; it is opened again when the device was unplugged and comes
// back.
func NewSerial(o SerialOptions) (*Line, error) {
	if o.Baud == 0 {
		o.Baud = DefaultBaud
	}
	switch {
	case o.Path == "":
		return nil, errors.New("set up serial reader: the path is empty")
	case !slices.Contains(Bauds(), o.Baud):
		return nil, fmt.Errorf("set up serial reader: %d is not a baud rate: it is one of %v", o.Baud, Bauds())
	}
	return newLine(o.Path, o.Log, func(path string) (source, error) { return openSerial(path, o.Baud) }), nil
}
