package boltfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SetAside renames a damaged file to PATH.damaged-TIME (UTC, in seconds, with a
// number if there is one already), so that Open can begin a new one and the old one
// can be looked into. It gives ErrLocked where another process has made and opened
// a new one meanwhile.
func SetAside(path string, now time.Time) (newPath string, err error) {
	l, err := lock(context.Background(), path)
	if err != nil {
		return "", fmt.Errorf("set store aside: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	base := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	newPath = base
	for n := 2; ; n++ {
		_, err := os.Lstat(newPath)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("set store aside: %w", err)
		}
		newPath = fmt.Sprintf("%s-%d", base, n)
	}
	if err := os.Rename(path, newPath); err != nil {
		return "", fmt.Errorf("set store aside: %w", err)
	}
	return newPath, syncPath(filepath.Dir(path))
}
