package turnstile

import (
	"os"
	"time"

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

// atMonotonic is the time at a reading of CLOCK_MONOTONIC, in nanoseconds.
func atMonotonic(ns int64) time.Time {
	now := time.Now()
	mono, err := monotonic()
	if err != nil {
		return now
	}
	return now.Add(time.Duration(ns - mono))
}

// monotonicAt is the reading of CLOCK_MONOTONIC at a time, in nanoseconds.
func monotonicAt(t time.Time) int64 {
	now := time.Now()
	mono, err := monotonic()
	if err != nil {
		return 0
	}
	return mono - int64(now.Sub(t))
}

// lock keeps a second process off the file until this one ends, however it does.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
