package config

import (
	"slices"
	"strconv"
	"strings"
)

// The drivers of readers.
const (
	DriverLine   = "line"   // text from a FIFO, a file, standard input or a line that something else set up
	DriverSerial = "serial" // a serial device that is held alone and set up here
	DriverEvdev  = "evdev"  // a scanner that types, as a USB keyboard does
)

// Reader delivers one code after another.
type Reader struct {
	Driver string `toml:"driver,omitempty"` // one of the drivers of readers; default line
	Path   string `toml:"path"`             // what is read, best by its name in /dev/serial/by-id or /dev/input/by-id; line: "-" is standard input
	Baud   int    `toml:"baud,omitempty"`   // serial: bits a second; default 115200, which a device on USB ignores
	Layout string `toml:"layout,omitempty"` // evdev: the keyboard layout that the scanner is set to; default us
}

// bauds and layouts are what the drivers know.
func bauds() []int {
	return []int{1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600}
}
func layouts() []string { return []string{"de", "fr", "gb", "us"} }

func (rd *Reader) setDefaults() { *rd = Reader{Driver: DriverLine} }

// complete fills in what depends on the driver, and makes the path absolute.
func (rd *Reader) complete(dir string) {
	resolve(&rd.Path, dir)
	if rd.Driver == DriverSerial && rd.Baud == 0 {
		rd.Baud = 115200
	}
	if rd.Driver == DriverEvdev && rd.Layout == "" {
		rd.Layout = "us"
	}
}

func (rd Reader) check(r *report, at string) {
	r.driver(at+".driver", rd.Driver, DriverLine, DriverSerial, DriverEvdev)
	name := map[string]string{
		DriverSerial: "name a serial device, as in \"/dev/serial/by-id/...\"",
		DriverEvdev:  "name an input device, as in \"/dev/input/by-id/...-event-kbd\"",
		DriverLine:   "name a FIFO, a serial device or a file, or \"-\" for standard input",
	}
	right, known := name[rd.Driver]
	if !known {
		right = name[DriverLine]
	}
	r.required(at+".path", rd.Path, right)
	if !known {
		return // what its keys must be cannot be said
	}
	if rd.Path == "-" && rd.Driver != DriverLine {
		r.addf(at+".path", right, "\"-\", standard input, is for driver = %q only", DriverLine)
	}
	switch {
	case rd.Driver == DriverSerial && !slices.Contains(bauds(), rd.Baud):
		r.addf(at+".baud", "write one of "+numbers(bauds()), "%d is no rate of a serial line", rd.Baud)
	case rd.Driver != DriverSerial && rd.Baud != 0:
		r.addf(at+".baud", "remove it, or write driver = \"serial\"", "is for driver = %q only", DriverSerial)
	}
	switch {
	case rd.Driver == DriverEvdev:
		r.oneOf(at+".layout", rd.Layout, layouts())
	case rd.Layout != "":
		r.addf(at+".layout", "remove it, or write driver = \"evdev\"", "is for driver = %q only", DriverEvdev)
	}
}

// checkOnce tells a path that two readers name: each would get half of what comes,
// or one would find the device in use for ever. paths has the keys of those before.
func (rd Reader) checkOnce(r *report, key string, paths map[string]string) {
	first, taken := paths[rd.Path]
	switch {
	case rd.Path == "":
	case taken && rd.Path == "-":
		r.addf(key, "name a FIFO or a device", "standard input is already read by %s", first)
	case taken:
		r.addf(key, "name another, or remove this reader", "%s is already read by %s", show(rd.Path), first)
	default:
		paths[rd.Path] = key
	}
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}
