package boltfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ExitUnsure is the exit code of a child that could not find out how a store is.
const ExitUnsure = 3

// starved is how much longer than its processor time a check may take: on a machine
// that has other things to do, a sound store must not count as a damaged one.
const starved = 6

// checkTime is the processor time that a check of a file of size bytes may take. Pages
// that point at each other keep a check busy for ever.
func checkTime(size int64) time.Duration { return 10*time.Second + time.Duration(size>>22)*time.Second }

// VerifyInChild runs "exe args... path", a program that calls Verify and exits with
// 0 if there is nothing to complain of. Any other exit, a fault, and no exit within
// 10 s and 1 s for every 4 MiB of its processor time, and six times that of the
// clock's, is a *DamagedError. Where it could not be found out
// (the child not started, or with ExitUnsure, or somebody ended it), it is another
// error, because a good store must not be set aside. A file that cannot be opened at
// any of several times is a *DamagedError, too: it is of no use to anybody.
func VerifyInChild(ctx context.Context, exe string, args []string, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	return verifyInChild(ctx, exe, args, path, starved*checkTime(info.Size()))
}

func verifyInChild(ctx context.Context, exe string, args []string, path string, limit time.Duration) error {
	if err := probe(ctx, path); err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, exe, append(slices.Clone(args), path)...)
	said := &firstBytes{max: 4096}
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	runtime.LockOSThread() // the child dies with the thread that made it
	defer runtime.UnlockOSThread()
	dieWithParent(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("verify store: %w", ctx.Err())
	case timed.Err() != nil:
		return &DamagedError{path, fmt.Sprintf("checking it did not end within %v", limit)}
	case !errors.As(err, &exit) || wasEnded(exit):
		return fmt.Errorf("verify store: %w", err)
	case exit.ExitCode() == ExitUnsure:
		return fmt.Errorf("verify store: %s", said.line(exit))
	}
	return &DamagedError{path, said.line(exit)}
}

// How often a file is opened before it counts as one that cannot be, and how long is
// waited in between.
const (
	openTries = 3
	openRetry = 100 * time.Millisecond
)

// probe finds out beforehand what would look like damage in a child: that the file
// cannot be opened, or that somebody who does not know our lock file has it.
func probe(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	for try := 1; hopeless(err) && try < openTries; try++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(openRetry):
		}
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if hopeless(err) {
		return &DamagedError{path, fmt.Sprintf("it cannot be opened: %v", err)}
	}
	if err != nil {
		return err
	}
	return errors.Join(flock(ctx, f, path, unix.LOCK_SH, lockPatience), f.Close())
}

// hopeless says whether an error of opening a file is the file's own: the disk cannot
// give it, or it is somebody else's. Others are the machine's, as too many open files.
func hopeless(err error) bool {
	return slices.ContainsFunc([]error{syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EUCLEAN}, func(e error) bool { return errors.Is(err, e) })
}

// wasEnded says whether the child's end was somebody's wish, and no fault.
func wasEnded(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	return slices.Contains([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL}, status.Signal())
}

// firstBytes keeps the beginning of what is written: a fault's trace can be long.
type firstBytes struct {
	bytes.Buffer
	max int
}

func (w *firstBytes) Write(p []byte) (int, error) {
	w.Buffer.Write(p[:min(len(p), w.max-w.Len())])
	return len(p), nil
}

// line is the first line, less what a DamagedError will say again, or else how the
// child exited.
func (w *firstBytes) line(exit *exec.ExitError) string {
	line, _, _ := strings.Cut(strings.TrimSpace(w.String()), "\n")
	if _, why, ok := strings.Cut(line, " is damaged: "); ok {
		return why
	}
	if line == "" {
		return exit.Error()
	}
	return line
}
