package turnstile

import (
	"bytes"
	"fmt"
	"io"
)

// errNoTrace is returned for a file without line ends: it is none of ours.
var errNoTrace = fmt.Errorf("a line of more than %d bytes: this is not a turnstile's file", tailChunk)

// linesBackwards calls more with the lines of the first size bytes, the last
// one first, until it answers false. What follows the last line end is a line too.
func linesBackwards(f io.ReaderAt, size int64, more func(line []byte) bool) error {
	var rest []byte // the part of a line that begins in an earlier chunk
	for end := size; end > 0; {
		begin := max(end-tailChunk, 0)
		chunk := make([]byte, end-begin, end-begin+int64(len(rest)))
		if _, err := f.ReadAt(chunk, begin); err != nil {
			return err
		}
		end = begin
		chunk = append(chunk, rest...)
		for {
			cut := bytes.LastIndexByte(chunk, '\n')
			if cut < 0 {
				break
			}
			if !more(chunk[cut+1:]) {
				return nil
			}
			chunk = chunk[:cut]
		}
		if rest = chunk; len(rest) > tailChunk {
			return errNoTrace
		}
	}
	if size > 0 {
		more(rest)
	}
	return nil
}
