package camera

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image/jpeg"
)

// Markers of a JPEG picture (ITU-T T.81, table B.1), which follow a byte FF.
const (
	markTEM  = 0x01 // alone, as are RST0 to RST7, SOI and EOI; others have a length
	markSOF0 = 0xC0 // baseline
	markSOF1 = 0xC1 // extended sequential
	markDHT  = 0xC4
	markJPG  = 0xC8
	markDAC  = 0xCC
	markRST0 = 0xD0
	markRST7 = 0xD7
	markSOI  = 0xD8
	markEOI  = 0xD9
	markSOS  = 0xDA
)

// Limits of one picture of a live camera. They are checked before any memory is
// taken: four bytes of noise in a header can ask for gigabytes.
const (
	maxJPEG       = 4 << 20    // bytes; a picture of 1280 x 720 has about 100,000
	maxLivePixels = 16_000_000 // pixels; above the 12 million of the largest Pi camera
)

// Errors of a picture. They are variables without detail, so that a device that
// sends ten thousand bad pictures a second makes no garbage with them.
var (
	errNotJPEG     = errors.New("no JPEG picture")
	errCutJPEG     = errors.New("JPEG picture cut off in its header")
	errProgressive = errors.New("JPEG picture of a kind that cameras do not send (progressive or arithmetic)")
	errJPEGSize    = errors.New("JPEG picture without a believable size")
	errLongJPEG    = fmt.Errorf("JPEG picture of more than %d bytes", maxJPEG)
)

// jpegHeader is what stands before a picture's first scan.
type jpegHeader struct {
	w, h   int  // pixels
	tables bool // it has Huffman tables
	scan   int  // where the first scan's header begins
}

// readJPEGHeader walks the segments of a picture up to its first scan. It takes
// sequential pictures of one or three components only: that is what MJPEG is, and
// a progressive one of a few bytes can keep a decoder busy for minutes.
func readJPEGHeader(p []byte) (h jpegHeader, err error) {
	if len(p) < 4 || p[0] != 0xFF || p[1] != markSOI {
		return h, errNotJPEG
	}
	for i := 2; ; {
		for i+1 < len(p) && p[i] == 0xFF && p[i+1] == 0xFF { // fill bytes
			i++
		}
		if i+4 > len(p) {
			return h, errCutJPEG
		}
		mark := p[i+1]
		if p[i] != 0xFF || !hasLength(mark) {
			return h, errNotJPEG
		}
		n := int(binary.BigEndian.Uint16(p[i+2:]))
		if n < 2 || i+2+n > len(p) {
			return h, errCutJPEG
		}
		switch {
		case mark == markSOS && h.w == 0:
			return h, errJPEGSize
		case mark == markSOS:
			h.scan = i
			return h, nil
		case mark == markDHT:
			h.tables = true
		case mark == markSOF0 || mark == markSOF1:
			if err := h.frame(p[i+4 : i+2+n]); err != nil {
				return h, err
			}
		case mark >= markSOF0 && mark <= 0xCF && mark != markJPG:
			return h, errProgressive
		}
		i += 2 + n
	}
}

// hasLength tells whether a marker is followed by a segment.
func hasLength(mark byte) bool {
	return mark > markTEM && mark != 0xFF && (mark < markRST0 || mark > markEOI)
}

// frame reads the frame header: precision, height, width, number of components.
func (h *jpegHeader) frame(seg []byte) error {
	if len(seg) < 6 || h.w != 0 {
		return errJPEGSize
	}
	h.h, h.w = int(binary.BigEndian.Uint16(seg[1:])), int(binary.BigEndian.Uint16(seg[3:]))
	if h.w < 1 || h.h < 1 || h.w > maxLivePixels/h.h || seg[5] != 1 && seg[5] != 3 {
		return errJPEGSize
	}
	return nil
}

// appendJPEG appends a camera's picture to dst as a JPEG that can be read alone.
// Motion JPEG may leave out the Huffman tables, which are then those of annex K;
// and some cameras forget the end marker. The header is that of the source.
func appendJPEG(dst, src []byte) ([]byte, jpegHeader, error) {
	if len(src) > maxJPEG {
		return dst, jpegHeader{}, errLongJPEG
	}
	h, err := readJPEGHeader(src)
	if err != nil {
		return dst, h, err
	}
	dst = append(dst, src[:h.scan]...)
	if !h.tables {
		dst = appendStandardTables(dst)
	}
	dst = append(dst, src[h.scan:]...)
	if !ended(src) {
		dst = append(dst, 0xFF, markEOI)
	}
	return dst, h, nil
}

// ended tells whether a picture has its end marker; zeros may follow it, where
// a driver fills up its buffers.
func ended(p []byte) bool {
	for len(p) > 0 && p[len(p)-1] == 0 {
		p = p[:len(p)-1]
	}
	return bytes.HasSuffix(p, []byte{0xFF, markEOI})
}

// jpegDecoder makes grey frames of JPEGs.
//
// The standard decoder gives a new picture each time, and its brightness is a
// plane of its own that serves as the frame where it lies: nothing is converted
// or copied. What is left is the decoder's own garbage, a picture a frame.
type jpegDecoder struct{ r bytes.Reader }

// decode gives the brightness of a JPEG that appendJPEG made. A decoder that
// breaks on it gives an error like any other.
func (d *jpegDecoder) decode(p []byte) (f Frame, err error) {
	defer func() {
		if v := recover(); v != nil {
			f, err = Frame{}, fmt.Errorf("decoder broke: %v", v)
		}
	}()
	d.r.Reset(p)
	img, err := jpeg.Decode(&d.r)
	if err != nil {
		return Frame{}, err
	}
	return greyOf(img), nil
}
