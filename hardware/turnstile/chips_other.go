//go:build !linux

package turnstile

// Chips gives an error: the character device is Linux's.
func Chips() ([]Chip, error) { return nil, errLinux }
