package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteNew writes a new file that is there in full or not at all, whenever the power
// is cut: a key that is half there is a program that never starts again. It returns
// an error when the file is there already: nothing is overwritten.
func WriteNew(file string, b []byte, mode fs.FileMode) error {
	if err := writeNew(file, b, mode); err != nil {
		return fmt.Errorf("write new file: %w", err)
	}
	return nil
}

func writeNew(file string, b []byte, mode fs.FileMode) error {
	dir := filepath.Dir(file)
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+".new*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := publish(f.Name(), file); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// publish gives a file its name, which nothing may have. File systems as on a stick
// know no links; there two at once could both succeed, and the second one stay.
func publish(tmp, file string) error {
	err := os.Link(tmp, file)
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return &fs.PathError{Op: "create", Path: file, Err: fs.ErrExist}
	}
	return os.Rename(tmp, file)
}
