//go:build hil && linux

package reader

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of linux/uinput.h: a device that this process plays.
const (
	uiCreate     = 'U'<<8 | 1
	uiDestroy    = 'U'<<8 | 2
	uiSetup      = 1<<30 | 92<<16 | 'U'<<8 | 3
	uiSetEvent   = 1<<30 | 4<<16 | 'U'<<8 | 100
	uiSetKey     = 1<<30 | 4<<16 | 'U'<<8 | 101
	uiSetMove    = 1<<30 | 4<<16 | 'U'<<8 | 102
	uiSetMisc    = 1<<30 | 4<<16 | 'U'<<8 | 104
	uiSetLED     = 1<<30 | 4<<16 | 'U'<<8 | 105
	uiGetSysname = 2<<30 | 64<<16 | 'U'<<8 | 44
	eviocGLED    = 2<<30 | 'E'<<8 | 0x19
)

// played is an input device that the test plays, with the kernel between it and
// the reader.
type played struct {
	t    *testing.T
	f    *os.File
	path string
}

// plug makes a device with keys, of which a mouse also has movements.
func plug(t *testing.T, name string, mouse bool, keys []uint16) *played {
	t.Helper()
	f, err := os.OpenFile("/dev/uinput", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	setup := make([]byte, 92) // struct uinput_setup: bus, vendor, product, version, name, effects
	binary.NativeEndian.PutUint16(setup, 3)
	copy(setup[8:87], name)
	set := func(request uint, values ...int) (err error) {
		for _, v := range values {
			err = errors.Join(err, control(f, func(fd int) error { return unix.IoctlSetInt(fd, request, v) }))
		}
		return err
	}
	err = errors.Join(set(uiSetEvent, evKey, evMisc, evLED), set(uiSetMisc, 4), set(uiSetLED, ledCaps))
	if mouse {
		err = errors.Join(err, set(uiSetEvent, 2), set(uiSetMove, 0, 1))
	}
	for _, k := range keys {
		err = errors.Join(err, set(uiSetKey, int(k)))
	}
	sys := make([]byte, 64)
	err = errors.Join(err, ioctl(f, uiSetup, &setup[0]), set(uiCreate, 0), ioctl(f, uiGetSysname, &sys[0]))
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, f: f}
	input := strings.TrimRight(string(sys), "\x00")
	until(t, "the device", func() bool {
		nodes, _ := filepath.Glob("/sys/devices/virtual/input/" + input + "/event*")
		if len(nodes) != 1 {
			return false
		}
		p.path = "/dev/input/" + filepath.Base(nodes[0])
		_, err := os.Stat(p.path)
		return err == nil
	})
	return p
}

func ioctl(f *os.File, request uintptr, arg *byte) error {
	return control(f, func(fd int) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			return errno
		}
		return nil
	})
}

func plugScanner(t *testing.T) *played { return plug(t, "Test Scanner", false, row(1, 127)) }

func (p *played) unplug() {
	p.t.Helper()
	if err := p.f.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// play has the kernel send what hands typed. It drops what changes nothing, so
// keys have to go up and down.
func (p *played) play(h *hands) {
	p.t.Helper()
	if _, err := p.f.Write(h.b); err != nil {
		p.t.Fatal(err)
	}
	h.b = nil
}

// scannerPace is from report to report of a USB device of low speed.
const scannerPace = 8 * time.Millisecond

// scan types a code as a scanner does, a key at a time, and ends it.
func (p *played) scan(code string) {
	p.t.Helper()
	tick := time.NewTicker(scannerPace)
	defer tick.Stop()
	for _, r := range code {
		p.play(newHands().typed(p.t, layouts()["us"], string(r)))
		<-tick.C
	}
	p.play(newHands().tap(keyEnter))
}

// maxTries is how often something is done again that a board may miss: one that
// does not run for longer than the kernel's queue lasts loses what is typed
// meanwhile, as it should.
const maxTries = 10

// reads has a code typed until it is read. No other comes out.
func (p *played) reads(r *running, code string) {
	p.t.Helper()
	for range maxTries {
		p.scan(code)
		for l, came := r.within(2 * silence); came; l, came = r.within(2 * silence) {
			if l.Text == code && !l.Cut {
				return
			}
			if !l.Cut {
				p.t.Fatalf("look %q, want %q", l.Text, code)
			}
		}
	}
	p.t.Fatalf("%q is not read", code)
}

// within waits for a look for so long at most.
func (r *running) within(d time.Duration) (l Look, came bool) {
	select {
	case l = <-r.looks:
		return l, true
	case <-time.After(d):
		return l, false
	}
}

func (p *played) run() *running {
	p.t.Helper()
	return start(p.t, func(o LineOptions) (*Line, error) { return NewEvdev(EvdevOptions{Path: o.Path, Log: o.Log}) }, p.path)
}

func newHands() *hands { return &hands{word: wordBytes} }
