package boltfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxStack ends a check that recurses round a cycle of pages, in bytes. A sound
// tree is a few pages deep.
const maxStack = 64 << 20

// confine limits the address space of this process to what it has and extra
// bytes, the depth of its stacks, and its processor time to what it took and work,
// in whole seconds: the process then says so and exits with exitOverworked.
func confine(extra int64, work time.Duration) error {
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
	return limitWork(work)
}

// exitOverworked is the exit code of a child that ran out of processor time.
const exitOverworked = 4

func limitWork(work time.Duration) error {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return fmt.Errorf("read processor time: %w", err)
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &r); err != nil {
		return fmt.Errorf("read limit of processor time: %w", err)
	}
	took := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	r.Cur = min(r.Max, uint64((took+work+time.Second-1)/time.Second))
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &r); err != nil {
		return fmt.Errorf("limit processor time: %w", err)
	}
	over := make(chan os.Signal, 1) // Go programs pass over SIGXCPU where nobody waits for it
	signal.Notify(over, unix.SIGXCPU)
	go func() {
		<-over
		fmt.Fprintf(os.Stderr, "checking it did not end within %v of work\n", work)
		os.Exit(exitOverworked)
	}()
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
