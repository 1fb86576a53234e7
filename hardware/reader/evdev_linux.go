//go:build 386 || amd64 || arm || arm64 || loong64 || riscv64

package reader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of linux/input.h, as _IOR and _IOW of asm-generic/ioctl.h make them.
const (
	eviocGVersion = 2<<30 | 4<<16 | 'E'<<8 | 0x01
	eviocGrab     = 1<<30 | 4<<16 | 'E'<<8 | 0x90
	eviocSMask    = 1<<30 | 16<<16 | 'E'<<8 | 0x93
	eviocGName    = 2<<30 | 'E'<<8 | 0x06 // these three: and the size of what they fill
	eviocGKey     = 2<<30 | 'E'<<8 | 0x18
	eviocGBit     = 2<<30 | 'E'<<8 | 0x20 // and the event type
)

// maxName is how much of a device's name is read, in bytes; ledBytes and keyBytes
// are the sizes of bitmaps.
const (
	maxName   = 256
	typeBytes = 4
	keyBytes  = maxKeys / 8
)

// fill asks a device for what fits in a buffer.
func fill(fd int, request uint, size int) ([]byte, error) {
	buf := make([]byte, size)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request|uint(size)<<16), uintptr(unsafe.Pointer(&buf[0])))
	if errno != 0 {
		return nil, errno
	}
	return buf, nil
}

// openEvdev opens and grabs a scanner that types.
func openEvdev(path string, l layout) (source, error) {
	f, err := openDevice(path, os.O_RDWR, "input")
	if err != nil {
		return source{}, advise(err, path)
	}
	t := newTypist(l, wordBytes)
	t.pressed = func() (keys []byte, err error) {
		err = control(f, func(fd int) error {
			keys, err = fill(fd, eviocGKey, keyBytes)
			return err
		})
		return keys, err
	}
	if err := control(f, claimEvdev); err != nil {
		return source{}, errors.Join(advise(err, path), f.Close())
	}
	unlock(f)
	narrow(f)
	if keys, err := t.pressed(); err == nil {
		t.look(keys)
	}
	src, err := fileSource(f, path, false)
	src.decoder, src.doubt = t, t.doubt
	return src, err
}

// claimEvdev looks at what a device is and takes it for this process alone.
func claimEvdev(fd int) error {
	if _, err := unix.IoctlGetInt(fd, eviocGVersion); err != nil {
		return fmt.Errorf("it is no input device (%w): a serial line is read by driver = \"serial\"", err)
	}
	o, err := ask(fd)
	if err != nil {
		return fmt.Errorf("ask the device what it is: %w", err)
	}
	if err := o.refuse(); err != nil {
		return err
	}
	switch err := unix.IoctlSetInt(fd, eviocGrab, 1); {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%q: %w", o.name, errInUse)
	case err != nil:
		return fmt.Errorf("grab %q: %w", o.name, err)
	}
	return nil
}

func ask(fd int) (o offer, err error) {
	name, err := fill(fd, eviocGName, maxName)
	if err == nil {
		o.types, err = fill(fd, eviocGBit, typeBytes)
	}
	if err == nil {
		o.keys, err = fill(fd, eviocGBit+evKey, keyBytes)
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	o.name = string(name)
	return o, err
}

// unlock puts the light of the capitals' lock out: a console may have lit it before
// the grab, and a scanner that heeds it would turn its letters round. A device that
// cannot be written to has no such light.
func unlock(f *os.File) {
	n := binary.NativeEndian
	var b []byte
	for _, e := range [][3]uint16{{evLED, ledCaps, 0}, {evSyn, synReport, 0}} {
		b = append(b, make([]byte, 2*wordBytes)...) // the kernel sets the time
		b = n.AppendUint16(n.AppendUint16(b, e[0]), e[1])
		b = n.AppendUint32(b, uint32(e[2]))
	}
	_, _ = f.Write(b)
}

// narrow has the kernel keep scan codes for itself: its queue for us holds some 64
// events, which a third fewer of take longer to fill while this process has to wait
// for its turn. Kernels before 4.4 cannot, and need not.
func narrow(f *os.File) {
	mask := make([]byte, 16) // struct input_mask: the event type, and no codes of it
	binary.NativeEndian.PutUint32(mask, evMisc)
	_ = control(f, func(fd int) error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), eviocSMask, uintptr(unsafe.Pointer(&mask[0])))
		return errno
	})
}

// advise adds to a path that does not hold a scanner which paths might.
func advise(err error, path string) error {
	if errors.Is(err, errInUse) || errors.Is(err, os.ErrPermission) {
		return err
	}
	found, _ := filepath.Glob("/dev/input/by-id/*-event-kbd") // only a bad pattern is an error
	var other []string
	for _, p := range found {
		if p != path {
			other = append(other, p)
		}
	}
	if other == nil {
		return fmt.Errorf("%w; no other keyboard is plugged in", err)
	}
	return fmt.Errorf("%w; plugged in are %s", err, strings.Join(other, ", "))
}
