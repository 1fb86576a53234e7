package camera

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
)

// withoutTables takes the Huffman tables out of a JPEG, as most webcams do.
func withoutTables(t testing.TB, p []byte) []byte {
	t.Helper()
	out := slices.Clone(p[:2])
	for i := 2; p[i+1] != markSOS; {
		n := 2 + int(binary.BigEndian.Uint16(p[i+2:]))
		if p[i+1] != markDHT {
			out = append(out, p[i:i+n]...)
		}
		if i += n; p[i+1] == markSOS {
			return append(out, p[i:]...)
		}
	}
	t.Fatal("no scan")
	return nil
}

func colour(w, h int) image.Image {
	m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = byte(i * 7)
	}
	for i := range m.Cb {
		m.Cb[i], m.Cr[i] = byte(i), byte(255-i)
	}
	return m
}

// The standard library's encoder writes the tables of annex K: without them a
// picture is not readable, with ours it is what it was, byte for byte.
func TestStandardTablesAreThoseOfAnnexK(t *testing.T) {
	var d jpegDecoder
	for name, m := range map[string]image.Image{"grey": noisy(64, 48, 3), "colour": colour(128, 96)} {
		p := jpegOf(t, m)
		bare := withoutTables(t, p)
		if _, err := d.decode(bare); err == nil || !strings.Contains(err.Error(), "Huffman") {
			t.Errorf("%s: without tables: %v", name, err)
		}
		if name == "colour" && !bytes.Contains(p, []byte(standardTables)) {
			t.Errorf("%s: the encoder's tables are others", name)
		}
		got, h, err := appendJPEG(nil, bare)
		if err != nil || h.tables || h.w != m.Bounds().Dx() || h.h != m.Bounds().Dy() {
			t.Fatalf("%s: %+v, %v", name, h, err)
		}
		sameFrame(t, &d, got, p)
		if again, h, err := appendJPEG(nil, p); err != nil || !h.tables || !bytes.Equal(again, p) {
			t.Errorf("%s: a whole picture changed: %v", name, err)
		}
	}
}

func sameFrame(t *testing.T, d *jpegDecoder, got, want []byte) {
	t.Helper()
	a, err := d.decode(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.decode(got)
	if err != nil || a.W != b.W || a.H != b.H || !bytes.Equal(a.Pix, b.Pix) {
		t.Errorf("another picture: %v", err)
	}
}

func TestMissingEndIsPutThere(t *testing.T) {
	p := jpegOf(t, noisy(64, 48, 3))
	var d jpegDecoder
	for name, src := range map[string][]byte{
		"no end": p[:len(p)-2], "half an end": p[:len(p)-1], "zeros after it": append(slices.Clone(p), 0, 0, 0),
	} {
		got, _, err := appendJPEG(nil, src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sameFrame(t, &d, got, p)
	}
	got, _, err := appendJPEG(nil, p[:len(p)/2])
	if err != nil {
		t.Fatal(err)
	}
	if f, err := d.decode(got); err == nil {
		t.Errorf("half a picture gives %d x %d", f.W, f.H)
	}
}

func TestJPEGHeaderRefuses(t *testing.T) {
	p := jpegOf(t, colour(64, 48))
	sof := bytes.Index(p, []byte{0xFF, markSOF0})
	change := func(at int, b ...byte) []byte {
		q := slices.Clone(p)
		copy(q[at:], b)
		return q
	}
	for name, c := range map[string]struct {
		p    []byte
		want error
	}{
		"nothing":          {nil, errNotJPEG},
		"zeros":            {make([]byte, 100), errNotJPEG},
		"text":             {[]byte("no picture"), errNotJPEG},
		"beginning only":   {p[:4], errCutJPEG},
		"half a header":    {p[:sof+5], errCutJPEG},
		"progressive":      {change(sof+1, 0xC2), errProgressive},
		"arithmetic":       {change(sof+1, 0xC9), errProgressive},
		"65535 x 65535":    {change(sof+5, 0xFF, 0xFF, 0xFF, 0xFF), errJPEGSize},
		"16,1 megapixels":  {change(sof+5, 0x0F, 0xA1, 0x0F, 0xA0), errJPEGSize},
		"no height":        {change(sof+5, 0, 0), errJPEGSize},
		"no width":         {change(sof+7, 0, 0), errJPEGSize},
		"two components":   {change(sof+9, 2), errJPEGSize},
		"four components":  {change(sof+9, 4), errJPEGSize},
		"no frame header":  {slices.Concat(p[:sof], p[sof+19:]), errJPEGSize},
		"two of them":      {slices.Concat(p[:sof], p[sof:sof+19], p[sof:]), errJPEGSize},
		"noise after it":   {change(sof+19, 0), errNotJPEG},
		"end in its place": {change(sof+1, markEOI), errNotJPEG},
		"too long":         {append(slices.Clone(p), make([]byte, maxJPEG)...), errLongJPEG},
	} {
		if _, _, err := appendJPEG(nil, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, h, err := appendJPEG(nil, change(sof+5, 0x0F, 0xA0, 0x0F, 0xA0)); err != nil || h.w != 4000 {
		t.Errorf("16 megapixels: %v", err)
	}
}

func FuzzAppendJPEG(f *testing.F) {
	p := jpegOf(f, colour(16, 16))
	f.Add(p)
	f.Add(withoutTables(f, p))
	f.Add(p[:len(p)-20])
	f.Fuzz(func(t *testing.T, src []byte) {
		pre := []byte("before")
		out, h, err := appendJPEG(pre, src)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(out, pre) || len(out) > len(pre)+len(src)+len(standardTables)+2 {
			t.Fatalf("%d bytes of %d", len(out), len(src))
		}
		again, h2, err := appendJPEG(nil, out[len(pre):])
		if err != nil || !h2.tables || h2.w != h.w || h2.h != h.h || !bytes.Equal(again, out[len(pre):]) {
			t.Fatalf("twice is not once: %v", err)
		}
		if h.w*h.h > 1<<16 {
			return
		}
		var d jpegDecoder
		if f, err := d.decode(again); err == nil && (f.W != h.w || f.H != h.h || len(f.Pix) < (f.H-1)*f.Stride+f.W) {
			t.Fatalf("%d x %d of %d x %d", f.W, f.H, h.w, h.h)
		}
	})
}
