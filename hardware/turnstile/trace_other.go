//go:build !linux

package turnstile

import (
	"os"
	"time"
)

// monotonic has no zero to share with other programs here: the trace begins at 0.
func monotonic() (int64, error) { return 0, nil }

// atMonotonic has no zero to share with other programs here: it is now.
func atMonotonic(int64) time.Time { return time.Now() }

// monotonicAt is nothing here, as atMonotonic.
func monotonicAt(time.Time) int64 { return 0 }

// lock does nothing here: the gate runs on Linux.
func lock(*os.File) error { return nil }
