package boltfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxStack ends a check that recurses round a cycle of pages, in bytes. A sound
// tree is a few pages deep.
const maxStack = 64 << 20

// confine limits the address space of this process to what it has and extra
// bytes, and the depth of its stacks.
func confine(extra int64) error {
	debug.SetMaxStack(maxStack)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return fmt.Errorf("read own size: %w", err)
	}
	var pages int64
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		return fmt.Errorf("read own size: %w", err)
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err != nil {
		return fmt.Errorf("read memory limit: %w", err)
	}
	r.Cur = min(r.Max, uint64(pages*int64(os.Getpagesize())+extra))
	if err := unix.Setrlimit(unix.RLIMIT_AS, &r); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	return nil
}

// dieWithParent has the kernel kill the child when this process dies.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// reserve allocates blocks for size bytes without changing the file's length. File
// systems that cannot are left alone.
func reserve(path string, size int64) error {
	if size <= 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("reserve disk: %w", err)
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("reserve %d bytes of disk: %w", size, err)
	}
	return nil
}
