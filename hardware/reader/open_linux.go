package reader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens what is at a path, and makes a FIFO where nothing is. Everything is
// opened without blocking, so that a read of it can be given up.
func open(path string) (source, error) {
	if path == "-" {
		return openStdin()
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFIFO(path); err != nil {
			return source{}, err
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return source{}, err
	}
	flags := os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	mode := info.Mode()
	switch {
	case mode&fs.ModeNamedPipe != 0:
		// Open for writing too: the pipe then never ends when its writers leave.
		flags = os.O_RDWR | unix.O_NONBLOCK
	case mode&fs.ModeCharDevice == 0 && !mode.IsRegular():
		return source{}, fmt.Errorf("%v is no FIFO, serial line or file", mode.Type())
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return source{}, err
	}
	return fileSource(f, path, mode.IsRegular())
}

// fileSource makes a source of an open file. The path is looked at again while
// nothing comes, for a FIFO may be removed and made anew under its reader.
func fileSource(f *os.File, path string, ends bool) (source, error) {
	mine, err := f.Stat()
	if err != nil {
		return source{}, errors.Join(err, f.Close())
	}
	same := func() bool {
		now, err := os.Stat(path)
		return err == nil && os.SameFile(mine, now)
	}
	return source{ReadCloser: f, deadline: f.SetReadDeadline, same: same, ends: ends}, nil
}

// openStdin opens standard input anew, without blocking: whoever shares the
// original notices nothing. What cannot be opened anew, a socket or another
// user's terminal, is read as it is and does not block from now on.
func openStdin() (source, error) {
	f, err := os.OpenFile("/proc/self/fd/0", os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return source{}, fmt.Errorf("share standard input: %w", err)
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return source{}, errors.Join(fmt.Errorf("share standard input: %w", err), unix.Close(fd))
		}
		f = os.NewFile(uintptr(fd), "standard input")
	}
	always := func() bool { return true }
	return source{ReadCloser: f, deadline: f.SetReadDeadline, same: always, ends: true}, nil
}

// makeFIFO makes a FIFO that only this user may use. It does not do so below
// /dev, where an absent serial line would never get its place back, nor in
// another user's directory.
func makeFIFO(path string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("make FIFO: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("make FIFO: %w", err)
	}
	if below := func(top string) bool { return strings.HasPrefix(dir+"/", top) }; below("/dev/") && !below("/dev/shm/") {
		return fmt.Errorf("%s: %w: plug the device in, or correct the path", path, fs.ErrNotExist)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make FIFO: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: it is not made in a directory of another user; make it with mkfifo", path, fs.ErrNotExist)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make FIFO: %w", err)
	}
	return nil
}
