package scan

import (
	"unicode/utf8"

	"github.com/makiuchi-d/gozxing/common"
)

// plainSymbol is the symbology modifier of a QR code without ECI and FNC1 ("]Q1",
// ISO/IEC 15424). Others mean that their text depends on what the scanner makes
// of them.
const plainSymbol = 1

// plain returns the bytes that a symbol encodes, and false for the kinds that are
// not read: one part of a structured append is no text, and under ECI or FNC1 two
// symbols can give one text, or one symbol two.
//
// Runes up to U+00FF stand for the bytes of byte mode (see hints); digits and
// letters of the other modes are ASCII. Kanji come as UTF-8.
func plain(res *common.DecoderResult) (string, bool) {
	if res.HasStructuredAppend() || res.GetSymbologyModifier() != plainSymbol {
		return "", false
	}
	text := res.GetText()
	out := make([]byte, 0, len(text))
	for _, c := range text {
		if c <= 0xFF {
			out = append(out, byte(c))
		} else {
			out = utf8.AppendRune(out, c)
		}
	}
	return string(out), true
}
