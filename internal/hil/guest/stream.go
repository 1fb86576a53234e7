//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"
)

// motionJPEG is the pixel format of a stream of pictures.
const motionJPEG = "MJPG"

// streamEvery is the time between two pictures: a slow processor is done with one
// before the next comes.
const streamEvery = time.Second

// stream writes pictures, as the program of a CSI camera does: what the file at
// path holds just then. After the first, each that comes anew is shown often times
// only, and the first one again then.
func stream(path string, often int, out io.Writer) error {
	var first, last []byte
	shown := 0
	for {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, last) {
			last, shown = b, 0
		}
		if shown++; shown > often {
			b = first
		}
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		time.Sleep(streamEvery)
	}
}
