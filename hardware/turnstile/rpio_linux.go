package turnstile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stianeikeland/go-rpio/v4"
)

// headerPins is how many BCM numbers a Raspberry Pi's header has. Those above
// belong to the board itself: to its card, its radio and its lamps.
const headerPins = 28

// board is where rpio finds what it runs on; a test has its own.
type board struct {
	tree    string // the device tree
	mem     string // the whole memory
	gpiomem string // the GPIO registers only
}

func thisBoard() board {
	return board{tree: "/proc/device-tree", mem: "/dev/mem", gpiomem: "/dev/gpiomem"}
}

// soc is a chip that go-rpio knows, by the last of its names in the device tree,
// with the address at which its registers begin.
type soc struct {
	name string
	base uint32
}

// socs is go-rpio's list: Raspberry Pi 0 and 1, 2, 3, and 4. A Pi 5 has its pins on
// another chip. The names are those of Raspberry Pi's kernels and of upstream's.
func socs() []soc {
	return []soc{
		{"brcm,bcm2708", 0x20000000}, {"brcm,bcm2835", 0x20000000},
		{"brcm,bcm2709", 0x3f000000}, {"brcm,bcm2836", 0x3f000000},
		{"brcm,bcm2710", 0x3f000000}, {"brcm,bcm2837", 0x3f000000},
		{"brcm,bcm2711", 0xfe000000},
	}
}

// openRPIO opens the driver rpio. The library is asked last: it falls back to the
// registers of the first Raspberry Pi when it does not know the board, whatever
// lies at that address, and prefers the whole memory to the GPIO registers.
func openRPIO(w Wiring) (Lines, error) {
	for _, line := range w.lines() {
		if pin := w.Pins[line]; pin >= headerPins {
			return nil, fmt.Errorf("pin %d (%v) is not on the header: it has 0 to %d", pin, line, headerPins-1)
		}
	}
	b := thisBoard()
	if err := b.known(); err != nil {
		return nil, err
	}
	if err := b.reachable(w.AllowDevMem); err != nil {
		return nil, err
	}
	if err := rpio.Open(); err != nil {
		return nil, fmt.Errorf("open GPIO registers: %w", err)
	}
	// rpio.Close is never called: it writes interrupt registers, which through
	// /dev/gpiomem are other ones. The process's end unmaps them all.
	return newRegisters(rpioBank{}, w)
}

// known holds the board to the list, and its address to the chip's: that is where
// the library looks, which reads it before main runs.
func (b board) known() error {
	text, err := os.ReadFile(filepath.Join(b.tree, "compatible"))
	if err != nil {
		return fmt.Errorf("driver rpio is for Raspberry Pi 0 to 4, and this board has no device tree (%w): use driver \"gpiochip\"", err)
	}
	names := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	i := slices.IndexFunc(socs(), func(s soc) bool { return slices.Contains(names, s.name) })
	if i < 0 {
		return fmt.Errorf("driver rpio is for Raspberry Pi 0 to 4, and this board is %s: use driver \"gpiochip\"", strings.Join(names, ", "))
	}
	want := socs()[i]
	ranges, err := os.ReadFile(filepath.Join(b.tree, "soc", "ranges"))
	if err != nil {
		return fmt.Errorf("read where the registers are: %w", err)
	}
	if got := base(ranges); got != want.base {
		return fmt.Errorf("the registers of %s should begin at %#x, and the device tree says %#x: use driver \"gpiochip\"", want.name, want.base, got)
	}
	return nil
}

// base reads the address as the library does: the second word, or the third where
// addresses have two words.
func base(ranges []byte) uint32 {
	for at := 4; at <= 8 && at+4 <= len(ranges); at += 4 {
		if v := binary.BigEndian.Uint32(bytes.Clone(ranges[at:])); v != 0 {
			return v
		}
	}
	return 0
}

// reachable finds out which of the two devices the library would take: the whole
// memory if it can be opened, the GPIO registers if that is forbidden, and nothing
// if it is not there.
func (b board) reachable(allowMem bool) error {
	err := canOpen(b.mem)
	switch {
	case err == nil && !allowMem:
		return fmt.Errorf("this process may open %s, the whole memory, and driver rpio would: run it as a user without that right who is in group gpio, or set allow_dev_mem = true", b.mem)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrPermission):
		return fmt.Errorf("driver rpio needs %s to be there, if only to be refused: drop PrivateDevices from the unit: %w", b.mem, err)
	}
	err = canOpen(b.gpiomem)
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("add the user to group gpio: %w", err)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("this kernel has no %s: use driver \"gpiochip\", or run as root with allow_dev_mem = true", b.gpiomem)
	case err != nil:
		return fmt.Errorf("reach GPIO registers: %w", err)
	}
	return nil
}

func canOpen(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// rpioBank is the board's pins.
type rpioBank struct{}

func (rpioBank) output(pin int) { rpio.Pin(pin).Output() }
func (rpioBank) input(pin int)  { rpio.Pin(pin).Input() }

func (rpioBank) read(pin int) bool { return rpio.Pin(pin).Read() == rpio.High }

func (rpioBank) write(pin int, high bool) {
	if high {
		rpio.Pin(pin).High()
	} else {
		rpio.Pin(pin).Low()
	}
}

func (rpioBank) pull(pin int, p Pull) {
	rpio.Pin(pin).Pull(map[Pull]rpio.Pull{PullUp: rpio.PullUp, PullDown: rpio.PullDown, PullNone: rpio.PullOff}[p])
}
