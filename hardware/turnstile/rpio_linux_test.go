package turnstile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeBoard lays a device tree and two devices out in a folder.
func fakeBoard(t *testing.T, compatible string, ranges ...uint32) board {
	t.Helper()
	dir := t.TempDir()
	b := board{tree: dir, mem: filepath.Join(dir, "mem"), gpiomem: filepath.Join(dir, "gpiomem")}
	if err := os.MkdirAll(filepath.Join(dir, "soc"), 0o700); err != nil {
		t.Fatal(err)
	}
	var words []byte
	for _, r := range ranges {
		words = binary.BigEndian.AppendUint32(words, r)
	}
	write(t, filepath.Join(dir, "compatible"), compatible)
	write(t, filepath.Join(dir, "soc", "ranges"), string(words))
	write(t, b.mem, "")
	write(t, b.gpiomem, "")
	return b
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKnownBoards: the boards of go-rpio's list, as their kernels name them, and
// what would be taken for one of them.
func TestKnownBoards(t *testing.T) {
	for name, c := range map[string]struct {
		compatible string
		ranges     []uint32
		wrong      string
	}{
		"Pi 0":             {"raspberrypi,model-zero-w\x00brcm,bcm2835\x00", []uint32{0x7e000000, 0x20000000, 0x1000000}, ""},
		"Pi 3":             {"raspberrypi,3-model-b\x00brcm,bcm2837\x00", []uint32{0x7e000000, 0x3f000000, 0x1000000}, ""},
		"Pi 4":             {"raspberrypi,4-model-b\x00brcm,bcm2711\x00", []uint32{0x7e000000, 0, 0xfe000000, 0x1800000}, ""},
		"Pi 5":             {"raspberrypi,5-model-b\x00brcm,bcm2712\x00", []uint32{0, 0x10, 0, 0x80000000}, "this board is raspberrypi,5-model-b, brcm,bcm2712: use driver \"gpiochip\""},
		"another board":    {"linux,dummy-virt\x00", nil, "this board is linux,dummy-virt"},
		"a longer name":    {"brcm,bcm27110\x00", []uint32{0, 0, 0xfe000000}, "this board is brcm,bcm27110"},
		"no address":       {"brcm,bcm2837\x00", nil, "should begin at 0x3f000000"},
		"another address":  {"brcm,bcm2837\x00", []uint32{0x7e000000, 0x40000000}, "the device tree says 0x40000000"},
		"addresses differ": {"brcm,bcm2711\x00", []uint32{0x7e000000, 0x20000000}, "the device tree says 0x20000000"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fakeBoard(t, c.compatible, c.ranges...).known()
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
	if err := (board{tree: filepath.Join(t.TempDir(), "none")}).known(); err == nil || !strings.Contains(err.Error(), "no device tree") {
		t.Errorf("no device tree: %v", err)
	}
}

// TestWholeMemoryOnlyWhereAllowed: go-rpio takes the whole memory where it can.
func TestWholeMemoryOnlyWhereAllowed(t *testing.T) {
	b := fakeBoard(t, "brcm,bcm2837\x00")
	if err := b.reachable(false); err == nil || !strings.Contains(err.Error(), "set allow_dev_mem = true") {
		t.Errorf("refused with %v", err)
	}
	if err := b.reachable(true); err != nil {
		t.Error(err)
	}
	if err := os.Remove(b.mem); err != nil {
		t.Fatal(err)
	}
	if err := b.reachable(true); err == nil || !strings.Contains(err.Error(), "drop PrivateDevices") {
		t.Errorf("without the device: %v", err)
	}
}

// TestWiringIsRefused: this machine is no Raspberry Pi, and nothing is touched
// before that is known.
func TestWiringIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		w     Wiring
		wrong string
	}{
		"a board's own pin": {Wiring{Driver: DriverRPIO, Pins: map[Line]int{LineRelay: 47}}, "pin 47 (relay) is not on the header: it has 0 to 27"},
		"no relay":          {Wiring{Driver: DriverRPIO, Pins: map[Line]int{LineRed: 4}}, "no pin for relay"},
		"a pin twice":       {Wiring{Driver: DriverRPIO, Pins: map[Line]int{LineRelay: 4, LineRed: 4}}, "pin 4 is for relay and for red"},
		"no such driver":    {Wiring{Driver: "gpio"}, `no driver "gpio"`},
		"a negative pin":    {Wiring{Driver: DriverGPIOChip, Pins: map[Line]int{LineRelay: -1}}, "relay cannot be on pin -1"},
		"pull of an output": {Wiring{Driver: DriverRPIO, Pins: map[Line]int{LineRelay: 4}, Pull: map[Line]Pull{LineRelay: PullUp}}, `relay cannot have pull "up"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(c.w); err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}
