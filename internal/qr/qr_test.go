package qr

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"pgregory.net/rapid"
)

// read decodes a clean picture of one symbol.
func read(t interface{ Fatal(...any) }, img image.Image) (text string, version map[gozxing.ResultMetadataType]any) {
	bits, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	got, err := qrcode.NewQRCodeReader().Decode(bits, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	if err != nil {
		t.Fatal(err)
	}
	meta := map[gozxing.ResultMetadataType]any{}
	for k, v := range got.GetResultMetadata() {
		meta[k] = v
	}
	return got.GetText(), meta
}

func TestPictureReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(
			rapid.StringMatching(`A1:[0-9A-Z $%*+\-./:]{1,218}`), rapid.StringMatching(`[0-9]{1,60}`), rapid.StringMatching(`[ -~]{1,80}`),
		).Draw(t, "text")
		img, err := Image(want, rapid.IntRange(1, 4).Draw(t, "scale"))
		if err != nil {
			t.Fatal(err)
		}
		got, meta := read(t, img)
		if got != want || meta[gozxing.ResultMetadataType_ERROR_CORRECTION_LEVEL] != "M" {
			t.Fatalf("%q reads as %q at level %v", want, got, meta[gozxing.ResultMetadataType_ERROR_CORRECTION_LEVEL])
		}
	})
}

// Every ticket of the vectors, the largest among them, is a symbol of version 8
// at most; one character more would not be.
func TestTicketsFitVersion8(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "tickets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tickets []struct{ Name, Text string }
	if err := json.Unmarshal(b, &tickets); err != nil {
		t.Fatal(err)
	}
	longest := ""
	for _, tk := range tickets {
		modules, version, err := Encode(tk.Text)
		if err != nil || version > 8 || len(modules) != 17+4*version {
			t.Errorf("%s: version %d with %d modules, %v", tk.Name, version, len(modules), err)
		}
		if len(tk.Text) > len(longest) {
			longest = tk.Text
		}
	}
	if _, version, err := Encode(longest); len(longest) != 221 || version != 8 || err != nil {
		t.Errorf("the longest ticket has %d characters and version %d, want 221 and 8", len(longest), version)
	}
	if _, version, err := Encode(longest + "0"); version != 9 || err != nil {
		t.Errorf("one character more has version %d, %v, want 9", version, err)
	}
}

func TestQuietZone(t *testing.T) {
	const scale = 3
	img, err := Image("A1:TEST", scale)
	if err != nil {
		t.Fatal(err)
	}
	modules, _, err := Encode("A1:TEST")
	if err != nil {
		t.Fatal(err)
	}
	side := img.Rect.Dx()
	if side != (len(modules)+2*QuietZone)*scale || img.Rect.Dy() != side {
		t.Fatalf("%v for %d modules", img.Rect, len(modules))
	}
	for y := range side {
		for x := range side {
			mx, my := x/scale-QuietZone, y/scale-QuietZone
			dark := mx >= 0 && my >= 0 && mx < len(modules) && my < len(modules) && modules[my][mx]
			if got := img.GrayAt(x, y).Y; dark && got != 0 || !dark && got != 0xff {
				t.Fatalf("pixel %d,%d is %d, its module dark: %v", x, y, got, dark)
			}
		}
	}
	if !modules[0][0] || !modules[6][6] || modules[1][1] {
		t.Error("no finder pattern in the corner")
	}
}

func TestPNG(t *testing.T) {
	var out bytes.Buffer
	if err := PNG(&out, "A1:TEST", 4); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := img.(*image.Paletted); !ok || len(p.Palette) != 2 {
		t.Errorf("a %T, want one bit a pixel", img)
	}
	if got, _ := read(t, img); got != "A1:TEST" {
		t.Errorf("reads as %q", got)
	}
	if img.At(0, 0) != color.Color(color.RGBA{0xff, 0xff, 0xff, 0xff}) {
		t.Errorf("the corner is %v, want white", img.At(0, 0))
	}
}

func TestRefuses(t *testing.T) {
	for _, scale := range []int{-1, 0, MaxScale + 1} {
		if _, err := Image("x", scale); err == nil {
			t.Errorf("scale %d is accepted", scale)
		}
	}
	for _, text := range []string{"", strings.Repeat("x", MaxText+1)} {
		if _, _, err := Encode(text); err == nil {
			t.Errorf("%d bytes are accepted", len(text))
		}
		if err := PNG(new(bytes.Buffer), text, 1); err == nil {
			t.Errorf("%d bytes are drawn", len(text))
		}
	}
	if _, _, err := Encode(strings.Repeat("\U0001F39F", MaxText/4)); err != nil {
		t.Errorf("the longest text: %v", err)
	}
	if err := PNG(full{}, "x", 1); err == nil {
		t.Error("a full disk is no error")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }
