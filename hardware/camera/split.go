package camera

import "bytes"

// splitter finds the pictures in a stream of JPEGs, whatever stands between them:
// nothing, zeros, or the headers of a multipart stream. It follows the segments
// by their lengths, so that a small picture within another's header, or the bytes
// of an end marker in a table, do not end a picture early. What is cut, too long
// or no JPEG is dropped, and it goes on at the next beginning; noise that looks
// like a beginning costs the picture after it at most.
type splitter struct {
	buf     []byte // of the picture so far; kept from one to the next
	state   splitState
	segment int  // bytes of the segment still to come
	scan    bool // the segment is a scan's header: its data follow
	dropped int  // pictures that were begun and came to nothing
}

type splitState uint8

// What the next byte is.
const (
	wantFF     splitState = iota // between pictures
	wantSOI                      // after an FF between pictures
	wantFirst                    // after SOI: the FF of the first segment, which noise rarely has
	wantMark                     // after an FF in the header
	wantLength                   // a segment's length, two bytes
	wantLength2
	wantSegment // a segment's content
	wantNext    // after a segment: an FF
	wantData    // a scan's data
	wantDataFF  // after an FF in the data
)

// take takes the next bytes of the stream and calls out with each picture that
// they complete. It is the splitter's until out returns.
func (s *splitter) take(p []byte, out func(picture []byte)) {
	for len(p) > 0 {
		n := s.run(p)
		if s.state > wantSOI && len(s.buf)+n > maxJPEG {
			s.drop()
			continue
		}
		if s.state > wantSOI {
			s.buf = append(s.buf, p[:n]...)
		}
		if n > 0 {
			p = p[n:]
			continue
		}
		if s.step(p[0]) {
			out(s.buf)
			s.state = wantFF
		}
		p = p[1:]
	}
}

// run gives how many bytes from the beginning of p mean nothing by themselves.
func (s *splitter) run(p []byte) int {
	n := 0
	switch s.state {
	case wantFF, wantData:
		if n = bytes.IndexByte(p, 0xFF); n < 0 {
			n = len(p)
		}
	case wantSegment:
		n = min(s.segment, len(p))
		if s.segment -= n; s.segment == 0 {
			s.endSegment()
		}
	}
	return n
}

// step takes one byte that means something, and tells whether the picture is
// whole with it.
func (s *splitter) step(b byte) (whole bool) {
	if s.state > wantSOI {
		if len(s.buf) >= maxJPEG {
			s.drop()
			return false
		}
		s.buf = append(s.buf, b)
	}
	switch s.state {
	case wantFF:
		s.state = wantSOI
	case wantSOI:
		s.begin(b)
	case wantFirst, wantNext:
		if b != 0xFF {
			s.drop()
			break
		}
		s.state = wantMark
	case wantMark:
		s.mark(b)
	case wantLength:
		s.segment, s.state = int(b)<<8, wantLength2
	case wantLength2:
		s.length(b)
	case wantData:
		s.state = wantDataFF
	case wantDataFF:
		return s.data(b)
	}
	return false
}

// begin takes the byte after an FF between pictures.
func (s *splitter) begin(b byte) {
	switch b {
	case markSOI:
		s.buf = append(s.buf[:0], 0xFF, markSOI)
		s.state = wantFirst
	case 0xFF:
	default:
		s.state = wantFF
	}
}

// mark takes a marker in the header.
func (s *splitter) mark(b byte) {
	switch {
	case b == 0xFF: // a fill byte
	case b == markSOI:
		s.dropped++
		s.begin(markSOI)
	case !hasLength(b):
		s.drop()
	default:
		s.scan, s.state = b == markSOS, wantLength
	}
}

// length takes the second byte of a segment's length, which counts its own two.
func (s *splitter) length(b byte) {
	s.segment += int(b) - 2
	switch {
	case s.segment < 0:
		s.drop()
	case s.segment == 0:
		s.endSegment()
	default:
		s.state = wantSegment
	}
}

func (s *splitter) endSegment() {
	s.state = wantNext
	if s.scan {
		s.state = wantData
	}
}

// data takes the byte after an FF in a scan's data.
func (s *splitter) data(b byte) (whole bool) {
	switch {
	case b == 0 || b >= markRST0 && b <= markRST7:
		s.state = wantData
	case b == markEOI:
		return true
	default:
		s.mark(b)
	}
	return false
}

// drop gives up the picture that was begun.
func (s *splitter) drop() {
	s.dropped++
	s.state = wantFF
}
