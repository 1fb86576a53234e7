package reader

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// DefaultLayout is the layout that scanners are delivered with.
const DefaultLayout = "us"

// EvdevOptions of a reader of a scanner that types.
type EvdevOptions struct {
	// Path is an input device, best by its name in /dev/input/by-id, which ends in
	// -event-kbd and stays when the device is plugged in elsewhere.
	Path string

	Layout string       // of the keys, one of Layouts: what the scanner is set to; default DefaultLayout
	Log    *slog.Logger // as in LineOptions
}

// Layouts names the keyboard layouts that are built in.
func Layouts() []string { return slices.Sorted(maps.Keys(layouts())) }

// NewEvdev makes a reader of a scanner that types as a USB keyboard does, and
// opens nothing. Enter or Tab ends a code. The device is grabbed: what it types
// reaches no console and no other program. It is opened again when it was
// unplugged and comes back.
func NewEvdev(o EvdevOptions) (*Line, error) {
	if o.Layout == "" {
		o.Layout = DefaultLayout
	}
	l, known := layouts()[o.Layout]
	switch {
	case o.Path == "":
		return nil, errors.New("set up keyboard reader: the path is empty")
	case !known:
		return nil, fmt.Errorf("set up keyboard reader: there is no layout %q: it is one of %v", o.Layout, Layouts())
	}
	return newLine(o.Path, o.Log, func(path string) (source, error) { return openEvdev(path, l) }), nil
}

// offer is what an input device says of itself.
type offer struct {
	name        string
	types, keys []byte // EVIOCGBIT of the event types and of the keys, a bit each
}

// maxKeys is how many key numbers there are (KEY_CNT).
const maxKeys = 0x300

// refuse says why a device is no scanner that types, and what it is instead; nil
// for one that has letters, digits and a key that ends a code.
func (o offer) refuse() error {
	var missing []string
	for _, need := range []struct {
		what string
		keys []uint16
		all  bool
	}{
		{"letters", append(row(16, 25), append(row(30, 38), row(44, 50)...)...), true},
		{"digits", row(2, 11), true},
		{"Enter or Tab", []uint16{keyEnter, keyEnter2, keyTab}, false},
	} {
		has := func(k uint16) bool { return hasBit(o.keys, int(k)) }
		if need.all && slices.ContainsFunc(need.keys, func(k uint16) bool { return !has(k) }) || !slices.ContainsFunc(need.keys, has) {
			missing = append(missing, need.what)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%q is no scanner that types: it has no %s; it offers %s", o.name, strings.Join(missing, ", no "), o.list())
}

// row gives the keys from the first to the last.
func row(first, last uint16) (keys []uint16) {
	for k := first; k <= last; k++ {
		keys = append(keys, k)
	}
	return keys
}

// list says what a device offers, in words.
func (o offer) list() string {
	var keys, buttons int
	for k := range maxKeys {
		switch {
		case !hasBit(o.keys, k):
		case k >= 0x100 && k < 0x160: // BTN_MISC to the last of the buttons
			buttons++
		default:
			keys++
		}
	}
	var all []string
	for _, n := range []struct {
		n    int
		what string
	}{{keys, "keys"}, {buttons, "buttons"}} {
		if n.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	for _, t := range []struct {
		typ  int
		what string
	}{{2, "movements, as a mouse"}, {3, "positions, as a touch screen or a joystick"}, {5, "switches"}, {evLED, "lights"}, {0x12, "sounds"}, {0x15, "vibration"}} {
		if hasBit(o.types, t.typ) {
			all = append(all, t.what)
		}
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, ", ")
}
