package boltfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How long another holder of the file is waited for: a process that is just
// ending, not one that runs.
const (
	lockPatience = time.Second
	lockInterval = 50 * time.Millisecond
)

// lock takes FILE.lock for this process until the answer is closed. It is held
// while the file is made, checked, open or set aside; bbolt's own lock on the file
// cannot serve for that, because the checking child needs it, and because a panic
// in bbolt keeps it. The lock file stays: removing it would let two have it.
func lock(ctx context.Context, path string) (*os.File, error) {
	l, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := flock(ctx, l, path, unix.LOCK_EX, lockPatience); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// flock waits for a lock on f, which belongs to the store at path.
func flock(ctx context.Context, f *os.File, path string, how int, patience time.Duration) error {
	retry := time.NewTicker(lockInterval)
	defer retry.Stop()
	for start := time.Now(); ; {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock store: %w", err)
		case time.Since(start) >= patience:
			return lockedBy(path, f.Name())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock store: %w", ctx.Err())
		case <-retry.C:
		}
	}
}

// lockedBy says who holds a lock on file.
func lockedBy(path, file string) *LockedError {
	e := &LockedError{Path: path}
	var st unix.Stat_t
	if unix.Stat(file, &st) != nil {
		return e
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return e
	}
	e.PID = holder(string(locks), uint64(unix.Major(uint64(st.Dev))), uint64(unix.Minor(uint64(st.Dev))), st.Ino)
	if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", e.PID)); err == nil {
		e.Program = strings.TrimSpace(string(comm))
	} else {
		e.PID = 0
	}
	return e
}

// holder finds the process in /proc/locks, whose lines are as in
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:393245 0 EOF
//
// with the device in hex (proc_locks(5)). File systems in layers show another
// device there than stat does, so the inode alone is the second choice.
func holder(locks string, major, minor, inode uint64) int {
	found := 0
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		id := strings.Split(f[5], ":")
		if len(id) != 3 || id[2] != strconv.FormatUint(inode, 10) {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		if err != nil || pid <= 0 {
			continue
		}
		if id[0]+":"+id[1] == fmt.Sprintf("%02x:%02x", major, minor) {
			return pid
		}
		found = pid
	}
	return found
}
