package reader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// speed is how the kernel writes a rate of Bauds.
func speed(baud int) uint32 {
	return map[int]uint32{
		1200: unix.B1200, 2400: unix.B2400, 4800: unix.B4800, 9600: unix.B9600, 19200: unix.B19200, 38400: unix.B38400,
		57600: unix.B57600, 115200: unix.B115200, 230400: unix.B230400, 460800: unix.B460800, 921600: unix.B921600,
	}[baud]
}

// openSerial opens a serial line for this process alone.
func openSerial(path string, baud int) (source, error) {
	f, err := openDevice(path, os.O_RDWR, "dialout")
	if err != nil {
		return source{}, err
	}
	if err := control(f, func(fd int) error { return claimSerial(fd, baud) }); err != nil {
		return source{}, errors.Join(err, f.Close())
	}
	src, err := fileSource(f, path, false)
	src.ReadCloser = exclusive{f}
	return src, err
}

// claimSerial takes a line that nobody else has taken, and sets it up. What came
// before is not for us.
func claimSerial(fd, baud int) error {
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("it is no serial line (%w): a FIFO or a file is read by driver = \"line\", a scanner that types by driver = \"evdev\"", err)
	}
	// The kernel refuses an open by an ordinary user; root has to ask.
	if taken, err := unix.IoctlGetInt(fd, unix.TIOCGEXCL); err == nil && taken != 0 {
		return errInUse
	}
	if err := unix.IoctlSetInt(fd, unix.TIOCEXCL, 0); err != nil {
		return fmt.Errorf("take the line: %w", err)
	}
	want := raw(*old, baud)
	err = unix.IoctlSetTermios(fd, unix.TCSETS, &want)
	var got *unix.Termios
	if err == nil {
		got, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	}
	if err == nil && got.Cflag&unix.CBAUD != speed(baud) {
		err = fmt.Errorf("the device does not do %d baud", baud)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set the line up: %w", err), unix.IoctlSetInt(fd, unix.TIOCNXCL, 0))
	}
	return nil
}

// raw gives the settings of a line whose bytes arrive as they were sent: 8N1, no
// flow control, no modem lines, no breaks. A read waits for one byte: without that
// an idle line would read as ended.
func raw(t unix.Termios, baud int) unix.Termios {
	t.Iflag = unix.IGNBRK
	t.Oflag &^= unix.OPOST
	t.Lflag = 0
	t.Cflag &^= unix.CSIZE | unix.PARENB | unix.CSTOPB | unix.CRTSCTS | unix.CBAUD
	t.Cflag |= unix.CS8 | unix.CREAD | unix.CLOCAL | speed(baud)
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return t
}

// exclusive is a serial line that gives itself back: the mark stays on the line
// for as long as anybody has it open.
type exclusive struct{ *os.File }

func (e exclusive) Close() error {
	// A device that is gone has no mark to take off.
	_ = control(e.File, func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCNXCL, 0) })
	return e.File.Close()
}

var errInUse = errors.New("it is in use by another program: end that program (fuser names it), or name it in one [[lane.reader]] only")

// openDevice opens a character device without blocking. group is who may, by
// Debian's rules.
func openDevice(path string, flags int, group string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: plug the device in, or correct the path", fs.ErrNotExist)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeCharDevice == 0:
		return nil, fmt.Errorf("it is no device but %s: a FIFO or a file is read by driver = \"line\"", kind(info.Mode()))
	}
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, errInUse
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: the gate's user must be in the group %s", fs.ErrPermission, group)
	}
	return f, err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	}
	return "a " + m.Type().String()
}

// control runs f on the file's descriptor and leaves the file as it is, pollable.
func control(file *os.File, f func(fd int) error) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
