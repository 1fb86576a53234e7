//go:build !linux

package camera

import "errors"

func startCommand([]string) (stream, error) {
	return nil, errors.New("child cameras are supervised only on Linux")
}

func openPath(string) (stream, error) {
	return nil, errors.New("child cameras are read only on Linux")
}
