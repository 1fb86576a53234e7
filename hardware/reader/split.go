package reader

import (
	"bytes"
	"time"
)

// MaxLine is the longest line that is taken whole, in bytes. The longest QR
// code has 4,296 characters, and no ticket format comes near it.
const MaxLine = 4096

// splitter cuts a stream of bytes into looks. LF, CR and CRLF each end a line;
// scanner modules send any of them. Empty lines are not looks.
type splitter struct {
	line []byte
	skip bool // the line was too long and was told: its rest is skipped
}

// take takes what arrived at a time.
func (s *splitter) take(data []byte, at time.Time, out func(Look)) {
	for len(data) > 0 {
		end := bytes.IndexAny(data, "\r\n")
		part := data
		if end >= 0 {
			part = data[:end]
		}
		s.add(part, at, out)
		if end < 0 {
			return
		}
		s.flush(at, false, out)
		data = data[end+1:]
	}
}

// add adds a part of a line; a line that gets too long becomes a look at once.
func (s *splitter) add(part []byte, at time.Time, out func(Look)) {
	if s.skip {
		return
	}
	room := MaxLine - len(s.line)
	s.line = append(s.line, part[:min(room, len(part))]...)
	if len(part) > room {
		s.flush(at, true, out)
		s.skip = true
	}
}

// flush ends the line: what there is of it becomes a look.
func (s *splitter) flush(at time.Time, cut bool, out func(Look)) {
	text := string(s.line)
	s.line, s.skip = s.line[:0], false
	if text != "" {
		out(Look{Text: text, At: at, Cut: cut})
	}
}

// inside tells whether a line has begun and not ended.
func (s *splitter) inside() bool { return len(s.line) > 0 || s.skip }
