//go:build !linux

package turnstile

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("this driver needs Linux")

// openGPIOChip gives an error: the character device is Linux's.
func openGPIOChip(Wiring) (Lines, error) { return nil, errLinux }

// openRPIO gives an error: the board's memory is reached through Linux.
func openRPIO(Wiring) (Lines, error) { return nil, errLinux }

// apart does nothing here.
func apart() *syscall.SysProcAttr { return nil }
