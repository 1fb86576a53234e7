package scan

import (
	"slices"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/common"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
)

// bitWriter puts together the data bits of a symbol.
type bitWriter struct {
	bytes []byte
	n     int
}

func (w *bitWriter) put(value, bits int) {
	for i := bits - 1; i >= 0; i-- {
		if w.n%8 == 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes[w.n/8] |= byte(value>>i&1) << (7 - w.n%8)
		w.n++
	}
}

func (w *bitWriter) putBytes(b ...byte) {
	w.put(4, 4) // byte mode
	w.put(len(b), 8)
	for _, c := range b {
		w.put(int(c), 8)
	}
}

// parse decodes data bits as gozxing does for a version 5 symbol.
func parse(t *testing.T, w *bitWriter) *common.DecoderResult {
	t.Helper()
	w.put(0, 4) // terminator
	v, err := decoder.Version_GetVersionForNumber(5)
	if err != nil {
		t.Fatal(err)
	}
	res, err := decoder.DecodedBitStreamParser_Decode(w.bytes, v, decoder.ErrorCorrectionLevel_M, hints())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestTextsAreTheBytesThatWereEncoded(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	for name, b := range map[string][]byte{
		"every byte, first half":  all[:128],
		"every byte, second half": all[128:],
		"utf-8":                   []byte("Grüße, 世界"),
		"utf-16 mark":             {0xFE, 0xFF, 0, 'A', 0, 'B'},
		"shift jis":               {0x93, 0xFA, 0x96, 0x7B},
		"new line, zero":          []byte("A1:\n\x00\r\x1b[31m"),
	} {
		var w bitWriter
		w.putBytes(b...)
		if got, ok := plain(parse(t, &w)); !ok || got != string(b) {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, b)
		}
	}
}

func TestMixedModesKeepTheirOrder(t *testing.T) {
	var w bitWriter
	w.putBytes(0xC3, 0x28)
	w.put(1, 4) // numeric
	w.put(3, 10)
	w.put(123, 10)
	w.putBytes(0xFF)
	w.put(2, 4) // alphanumeric
	w.put(1, 9)
	w.put(10, 6)
	if got, ok := plain(parse(t, &w)); !ok || got != "\xC3\x28123\xFFA" {
		t.Errorf("got %q, %v", got, ok)
	}
}

func TestKanjiComesAsUTF8(t *testing.T) {
	var w bitWriter
	w.put(8, 4) // kanji
	w.put(1, 8)
	w.put((0x93FA-0x8140)>>8*0xC0+(0x93FA-0x8140)&0xFF, 13)
	if got, ok := plain(parse(t, &w)); !ok || got != "日" {
		t.Errorf("got %q, %v", got, ok)
	}
}

func TestSymbolsThatNeedInterpretingAreNotRead(t *testing.T) {
	for name, head := range map[string]func(w *bitWriter){
		"structured append":    func(w *bitWriter) { w.put(3, 4); w.put(0x01, 8); w.put(0x55, 8) },
		"ECI":                  func(w *bitWriter) { w.put(7, 4); w.put(26, 8) },
		"FNC1 first position":  func(w *bitWriter) { w.put(5, 4) },
		"ECI and FNC1":         func(w *bitWriter) { w.put(7, 4); w.put(26, 8); w.put(5, 4) },
		"FNC1 second position": func(w *bitWriter) { w.put(9, 4) },
	} {
		var w bitWriter
		head(&w)
		w.putBytes('A', '1', ':')
		if got, ok := plain(parse(t, &w)); ok {
			t.Errorf("%s: read %q", name, got)
		}
	}
}

// The same from whole frames, as far as gozxing's encoder makes such symbols: a
// plain symbol beside them is still read.
func TestFrameWithECIAndFNC1Symbols(t *testing.T) {
	f := canvas(1280, 720, 120)
	paint(t, f, "a1:eci", 40, 40, 6, 10, 240, map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_CHARACTER_SET: "UTF-8"})
	paint(t, f, "A1:FNC1", 400, 40, 6, 10, 240, map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_GS1_FORMAT: true})
	paint(t, f, "A1:PLAIN", 760, 40, 6, 10, 240, nil)
	if got := mustRead(t, f); !slices.Equal(got, []string{"A1:PLAIN"}) {
		t.Errorf("read %q", got)
	}
}
