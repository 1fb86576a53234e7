//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// motionJPEG is the pixel format of a stream of pictures.
const motionJPEG = "MJPG"

// streamEvery is the time between two pictures.
const streamEvery = 100 * time.Millisecond

// stream writes the picture that a file holds just then, over and over, as the
// program of a CSI camera does.
func stream(path string, out io.Writer) error {
	for {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		time.Sleep(streamEvery)
	}
}
