//go:build !linux

package reader

import (
	"errors"
	"runtime"
)

// open is for Linux, which the gate runs on.
func open(string) (source, error) {
	return source{}, errors.New("a line reader needs Linux, and this is " + runtime.GOOS)
}

func openSerial(string, int) (source, error) {
	return source{}, errors.New("a serial reader needs Linux, and this is " + runtime.GOOS)
}
