package turnstile

import (
	"os"

	"golang.org/x/sys/unix"
)

// monotonic reads CLOCK_MONOTONIC, in nanoseconds.
func monotonic() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, err
	}
	return ts.Nano(), nil
}

// lock keeps a second process off the file until this one ends, however it does.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
