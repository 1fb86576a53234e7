package boltfile

import (
	"errors"
	"fmt"
)

// ErrLocked is what a LockedError is: another process has the file.
var ErrLocked = errors.New("store is in use")

// LockedError says who has the file. It is returned within 2 s.
type LockedError struct {
	Path    string
	PID     int    // 0: not to be found out, as in another container
	Program string // the name the kernel has of it, at most 15 bytes; empty with PID 0
}

// Error names the file, the program and its process.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("store %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("store %s is in use by %q, process %d", e.Path, e.Program, e.PID)
}

// Is makes it ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// DamagedError says that a file cannot be used and why. It is for SetAside.
type DamagedError struct {
	Path string
	Why  string // one line
}

// Error names the file and the reason.
func (e *DamagedError) Error() string { return fmt.Sprintf("store %s is damaged: %s", e.Path, e.Why) }

// KindError is returned for a good file that is not what Options.Name says: the
// configuration names the wrong file. It is not for SetAside.
type KindError struct {
	Path       string
	Have, Want string // Have is empty for a bbolt file of another program
}

// Error says what to do.
func (e *KindError) Error() string {
	have := fmt.Sprintf("a %q store", e.Have)
	if e.Have == "" {
		have = "a bbolt file of another program"
	}
	return fmt.Sprintf("store %s is %s, not a %q store: check the path in the configuration", e.Path, have, e.Want)
}

// VersionError is returned for a good file of another version. It is not for
// SetAside: what it holds is right, only this program is the wrong one.
type VersionError struct {
	Path       string
	Have, Want int
}

// Error says what to do.
func (e *VersionError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("store %s was written by a newer program (version %d, this program knows %d): "+
			"install that program again, or move the file away to start with an empty store", e.Path, e.Have, e.Want)
	}
	return fmt.Sprintf("store %s was written by an older program (version %d, this program needs %d): "+
		"run the older program, or move the file away to start with an empty store", e.Path, e.Have, e.Want)
}
