//go:build !linux

package camera

import "errors"

// openDevice refuses: Video for Linux is Linux's.
func openDevice(string) (device, error) {
	return nil, errors.New("there is Video for Linux only on Linux")
}
