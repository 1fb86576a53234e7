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

// VerifyInChild runs "exe args... path", a program that calls Verify and exits with
// 0 if there is nothing to complain of. Any other exit, a fault, and no exit within
// 10 s and 1 s for every 4 MiB is a *DamagedError. Where it could not be found out
// (the file cannot be opened, the child not started, or somebody ended it), it is
// another error, because a good store must not be set aside.
func VerifyInChild(ctx context.Context, exe string, args []string, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("verify store: %w", err)
	}
	limit := 10*time.Second + time.Duration(info.Size()>>22)*time.Second
	return verifyInChild(ctx, exe, args, path, limit)
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
	}
	return &DamagedError{path, said.line(exit)}
}

// probe finds out beforehand what would look like damage in a child: that the file
// cannot be opened, or that somebody who does not know our lock file has it.
func probe(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(flock(ctx, f, path, unix.LOCK_SH, lockPatience), f.Close())
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
