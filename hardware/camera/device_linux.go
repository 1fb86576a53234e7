package camera

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/blackjack/webcam"
	"github.com/blackjack/webcam/ioctl"
	"golang.org/x/sys/unix"
)

// This file is all that knows the library. It was written against the source of
// its version 0.6.1, which go.mod pins, and does itself what that leaves out:
//
//   - It asks the device node for its own capabilities; the library takes those of
//     the whole device, which a metadata node has too.
//   - It asks for the format that the driver has set; the library gives back the
//     size that was asked for.
//   - It keeps the file from child processes; the library opens it without
//     O_CLOEXEC, and a child that holds it keeps the camera busy.
//   - It unmaps the buffers of a stream that did not start; the library forgets
//     them, and memory that is mapped keeps the device busy, its file closed or
//     not (github.com/blackjack/webcam/issues/70).
//
// The library waits with poll(2), so file numbers above 1023 are no trouble. It
// hands pointers to the kernel as numbers, which holds only while the compiler
// inlines its ioctl.Ioctl: it must not be built with -gcflags=-l.
type linuxDevice struct {
	cam     *webcam.Webcam
	name    string
	started bool
}

// videoMajor is the major number of video devices (Linux, devices.txt).
const videoMajor = 81

// Capabilities of a device node (videodev2.h).
const (
	capCapture    = 0x00000001
	capStreaming  = 0x04000000
	capDeviceCaps = 0x80000000
)

// capability is struct v4l2_capability.
type capability struct {
	driver        [16]byte
	card, bus     [32]byte
	version       uint32
	whole, device uint32 // capabilities of the whole device, and of this node
	_             [3]uint32
}

// pixFormat is struct v4l2_format with a struct v4l2_pix_format in it. The union's
// alignment is a pointer's, and its size 200 bytes.
type pixFormat struct {
	kind  uint32
	union struct {
		_                    [0]uintptr
		width, height, pixel uint32
		field                uint32
		bytesPerLine         uint32
		sizeImage            uint32
		_                    [44]uint32
	}
}

// The kernel tells these calls by the structs' sizes, too; a wrong one does not
// compile.
const (
	_ = uint(unsafe.Sizeof(capability{}) - 104)
	_ = uint(104 - unsafe.Sizeof(capability{}))
	_ = uint(unsafe.Sizeof(pixFormat{}) - 200 - unsafe.Sizeof(uintptr(0)))
	_ = uint(200 + unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(pixFormat{}))
)

const kindCapture = 1 // V4L2_BUF_TYPE_VIDEO_CAPTURE

// call is one ioctl of the group 'V', which the driver reads and writes.
func call(fd int, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

func openDevice(path string) (device, error) {
	d, err := open(path)
	if err != nil {
		return nil, explain(err)
	}
	return d, nil
}

// open opens a device, after a look at it: the library would open whatever the
// path is, and opening some devices does something.
func open(path string) (*linuxDevice, error) {
	look, name, err := inspect(path)
	if err != nil {
		return nil, err
	}
	// Held until the library has the device too: it is awake, and the open that
	// keeps other goroutines from starting a child does not take long.
	defer func() { _ = unix.Close(look) }()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	cam, err := webcam.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	d := &linuxDevice{cam: cam, name: name}
	unix.CloseOnExec(d.file())
	return d, d.cam.SetBufferCount(askBuffers)
}

// inspect opens a video device and asks it what it is. It returns an error when
// it is none that gives pictures.
func inspect(path string) (fd int, name string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return -1, "", fmt.Errorf("open: %w", errors.Unwrap(err))
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&os.ModeCharDevice == 0 || unix.Major(uint64(st.Rdev)) != videoMajor {
		return -1, "", errors.New("open: not a video device")
	}
	if fd, err = unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		return -1, "", fmt.Errorf("open: %w", err)
	}
	var c capability
	if err = call(fd, ioctl.IoR('V', 0, unsafe.Sizeof(c)), unsafe.Pointer(&c)); err != nil {
		err = fmt.Errorf("ask for its capabilities: %w", err)
	} else if err = c.check(); err == nil {
		return fd, fmt.Sprintf("%s (%s, %s)", text(c.card[:]), text(c.driver[:]), text(c.bus[:])), nil
	}
	return -1, "", errors.Join(err, unix.Close(fd))
}

// check returns an error when the node gives no pictures, or not by streaming.
func (c *capability) check() error {
	caps := c.whole
	if caps&capDeviceCaps != 0 {
		caps = c.device
	}
	switch {
	case caps&capCapture == 0:
		return fmt.Errorf("%s gives no pictures here (its capabilities are %#x); the node whose name ends in -video-index0 may", text(c.card[:]), caps)
	case caps&capStreaming == 0:
		return fmt.Errorf("%s does not stream (its capabilities are %#x)", text(c.card[:]), caps)
	}
	return nil
}

// text is a C string, without what a terminal would act on.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// file gives the number of the library's file, which it keeps to itself.
func (d *linuxDevice) file() int {
	return int(reflect.ValueOf(d.cam).Elem().FieldByName("fd").Uint())
}

func (d *linuxDevice) Name() string { return d.name }

func (d *linuxDevice) Formats() (all []Format) {
	for f := range d.cam.GetSupportedFormats() {
		all = append(all, Format(f))
	}
	return all
}

func (d *linuxDevice) Sizes(f Format) (all []sizes) {
	for _, s := range d.cam.GetSupportedFrameSizes(webcam.PixelFormat(f)) {
		all = append(all, sizes{
			minW: int(s.MinWidth), maxW: int(s.MaxWidth), stepW: int(s.StepWidth),
			minH: int(s.MinHeight), maxH: int(s.MaxHeight), stepH: int(s.StepHeight),
		})
	}
	return all
}

func (d *linuxDevice) Rate(f Format, w, h int) (best float64) {
	for _, r := range d.cam.GetSupportedFramerates(webcam.PixelFormat(f), uint32(w), uint32(h)) {
		if r.MinNumerator > 0 { // of the shortest time between two frames
			best = max(best, float64(r.MinDenominator)/float64(r.MinNumerator))
		}
	}
	return best
}

func (d *linuxDevice) SetFormat(f Format, w, h int) (layout, error) {
	if _, _, _, err := d.cam.SetImageFormat(webcam.PixelFormat(f), uint32(w), uint32(h)); err != nil {
		return layout{}, explain(err)
	}
	p := pixFormat{kind: kindCapture}
	if err := call(d.file(), ioctl.IoRW('V', 4, unsafe.Sizeof(p)), unsafe.Pointer(&p)); err != nil {
		return layout{}, explain(err)
	}
	u := p.union
	return layout{
		format: Format(u.pixel), w: int(u.width), h: int(u.height), stride: int(u.bytesPerLine), size: int(u.sizeImage),
	}, nil
}

// SetRate asks for a rate. A driver that has no rates keeps its own.
func (d *linuxDevice) SetRate(rate float64) float64 {
	_ = d.cam.SetFramerate(float32(rate))
	got, err := d.cam.GetFramerate()
	if err != nil {
		return 0
	}
	return float64(got)
}

func (d *linuxDevice) Controls() (all []control) {
	for id, c := range d.cam.GetControls() {
		all = append(all, control{id: uint32(id), name: c.Name, least: int(c.Min), most: int(c.Max)})
	}
	return all
}

func (d *linuxDevice) SetControl(id uint32, value int) error {
	return d.cam.SetControl(webcam.ControlID(id), int32(value))
}

func (d *linuxDevice) Start(buffers int) error {
	if err := d.cam.SetBufferCount(uint32(buffers)); err != nil {
		return err
	}
	if err := d.cam.StartStreaming(); err != nil {
		return explain(err)
	}
	d.started = true
	return nil
}

// Wait waits in whole seconds, as the library does.
func (d *linuxDevice) Wait(t time.Duration) error {
	err := d.cam.WaitForFrame(uint32(max(1, t/time.Second)))
	if _, timeout := err.(*webcam.Timeout); timeout {
		return errQuiet
	}
	return explain(err)
}

func (d *linuxDevice) Frame() ([]byte, uint32, error) {
	data, index, err := d.cam.GetFrame()
	if err == unix.EAGAIN {
		return nil, 0, errQuiet
	}
	return data, index, explain(err)
}

func (d *linuxDevice) Release(index uint32) error { return explain(d.cam.ReleaseFrame(index)) }

func (d *linuxDevice) Close() error {
	var err error
	if !d.started {
		err = d.unmap()
	}
	return errors.Join(err, d.cam.Close())
}

// unmap gives back the buffers of a stream that did not start.
func (d *linuxDevice) unmap() error {
	var errs []error
	buffers := reflect.ValueOf(d.cam).Elem().FieldByName("buffers")
	for i := range buffers.Len() {
		if b := buffers.Index(i).Bytes(); len(b) > 0 {
			errs = append(errs, unix.Munmap(b))
		}
	}
	return errors.Join(errs...)
}

// explain says what an error of a device means, and what to do.
func explain(err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch errnoOf(err) {
	case unix.ENODEV, unix.ENXIO:
		return fmt.Errorf("%w (%w)", errGone, err)
	case unix.ENOENT:
		hint = "is it plugged in? " + plugged()
	case unix.EACCES, unix.EPERM:
		hint = "may this user? add it to the group video"
	case unix.EBUSY:
		hint = "another program uses it"
	case unix.ENOSPC:
		return modeError{fmt.Errorf("%w: its USB bus has no bandwidth left; use another port, MJPG or a smaller size", err)}
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// errnoOf gives the system's error; of some, the library keeps the text alone.
func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	for _, e := range []unix.Errno{unix.EBUSY, unix.ENODEV, unix.ENOSPC} {
		if strings.HasSuffix(err.Error(), e.Error()) {
			return e
		}
	}
	return 0
}

// plugged names the cameras that are there.
func plugged() string {
	there, err := filepath.Glob("/dev/v4l/by-id/*-video-index0")
	if err != nil || len(there) == 0 {
		return "no USB camera is"
	}
	return "there are " + strings.Join(there, ", ")
}
