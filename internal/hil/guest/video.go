//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The numbers and structures of linux/videodev2.h that this program needs.
const (
	typeCapture = 1
	typeOutput  = 2
	memoryMap   = 1
	fieldNone   = 1
	nextControl = 0x80000000
)

type pixFormat struct {
	Width, Height, PixelFormat, Field, BytesPerLine, SizeImage, Colorspace uint32
	Priv, Flags, Encoding, Quantization, Transfer                          uint32
}

type format struct {
	Type uint32
	_    [unsafe.Sizeof(uintptr(0)) - 4]byte // the union holds pointers
	Pix  pixFormat
	_    [200 - unsafe.Sizeof(pixFormat{})]byte
}

type requestBuffers struct{ Count, Type, Memory, Capabilities, Flags uint32 }

type buffer struct {
	Index, Type, BytesUsed, Flags, Field uint32
	Timestamp                            unix.Timeval
	Timecode                             [16]byte
	Sequence, Memory                     uint32
	Offset                               uintptr // of the union: an offset for a memory map
	Length, Reserved, Request            uint32
}

type formatDesc struct {
	Index, Type, Flags uint32
	Description        [32]byte
	PixelFormat, Mbus  uint32
	Reserved           [3]uint32
}

type queryControl struct {
	ID, Type                        uint32
	Name                            [32]byte
	Minimum, Maximum, Step, Default int32
	Flags                           uint32
	Reserved                        [2]uint32
}

type control struct {
	ID    uint32
	Value int32
}

// The requests: direction (1 to the kernel, 2 from it), number in the V series.
func request[T any](direction, number uintptr) uintptr {
	var t T
	return direction<<30 | unsafe.Sizeof(t)<<16 | 'V'<<8 | number
}

func ioctl[T any](fd int, direction, number uintptr, arg *T) error {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request[T](direction, number), uintptr(unsafe.Pointer(arg)))
	if e != 0 {
		return e
	}
	return nil
}

func fourCC(s string) uint32 { return binary.LittleEndian.Uint32([]byte(s)) }

// formats names the pixel formats that a camera offers.
func formats(path string) ([]string, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var out []string
	for i := uint32(0); ; i++ {
		d := formatDesc{Index: i, Type: typeCapture}
		if err := ioctl(fd, 3, 2, &d); err == unix.EINVAL {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("list formats of %s: %w", path, err)
		}
		out = append(out, string(binary.LittleEndian.AppendUint32(nil, d.PixelFormat)))
	}
}

// setControl sets a control by its name.
func setControl(path, name string, value int) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var names []string
	for q := (queryControl{ID: nextControl}); ioctl(fd, 3, 36, &q) == nil; q.ID |= nextControl {
		n := strings.TrimRight(string(q.Name[:]), "\x00")
		if n != name {
			names = append(names, n)
			continue
		}
		if err := ioctl(fd, 3, 28, &control{q.ID, int32(value)}); err != nil {
			return fmt.Errorf("set %q of %s: %w", name, path, err)
		}
		return nil
	}
	return fmt.Errorf("%s has no control %q, only %q", path, name, names)
}

// timings are struct v4l2_dv_timings, which is packed.
type timings [132]byte

// newTimings are those of 1280x720 at 24 frames a second, the slowest signal of that
// size that CEA-861 has. Others the virtual camera does not take.
func newTimings() (t timings) {
	b := t[:0]
	for _, v := range []uint32{0, 1280, 720, 0, 3} { // the kind; not interlaced; positive syncs
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, 59_400_000)   // pixels a second
	for _, v := range []uint32{1760, 40, 220, 5, 5, 20} { // front porch, sync, back porch: of lines, then of frames
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return t
}

// setTimings makes the virtual camera and its screen slower than they are at first:
// an emulated processor would be busy with pixels alone.
func setTimings(devices []string) error {
	for _, d := range devices {
		fd, err := unix.Open(d, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", d, err)
		}
		t := newTimings()
		err = ioctl(fd, 3, 87, &t)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("set timings of %s: %w", d, err)
		}
	}
	return nil
}
