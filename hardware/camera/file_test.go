package camera

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// putCRC makes a PNG's changed header chunk valid again.
func putCRC(b []byte) { binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29])) }

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadFileGivesBrightness(t *testing.T) {
	r := image.Rect(3, 5, 67, 53) // bounds need not begin at zero
	fill := func(m interface {
		image.Image
		Set(x, y int, c color.Color)
	}, c color.Color) image.Image {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				m.Set(x, y, c)
			}
		}
		return m
	}
	clearGround := color.NRGBA{0, 0, 0, 0}
	for name, p := range map[string]struct {
		data []byte
		want byte
	}{
		"grey.png":        {pngOf(t, fill(image.NewGray(r), color.Gray{77})), 77},
		"grey16.png":      {pngOf(t, fill(image.NewGray16(r), color.Gray16{0x8080})), 128},
		"white.png":       {pngOf(t, fill(image.NewRGBA(r), color.White)), 255},
		"green.png":       {pngOf(t, fill(image.NewRGBA(r), color.RGBA{0, 255, 0, 255})), 150},
		"transparent.png": {pngOf(t, fill(image.NewNRGBA(r), clearGround)), 255},
		"palette.png":     {pngOf(t, fill(image.NewPaletted(r, color.Palette{color.Black, color.Gray{200}}), color.Gray{200})), 200},
		"grey.jpg":        {jpegOf(t, fill(image.NewGray(r), color.Gray{77})), 77},
		"colour.jpg":      {jpegOf(t, fill(image.NewRGBA(r), color.RGBA{0, 255, 0, 255})), 150},
	} {
		f, err := ReadFile(write(t, name, p.data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.W != 64 || f.H != 48 || math.Abs(float64(level(f))-float64(p.want)) > 1 || len(f.Pix) < f.Stride*(f.H-1)+f.W {
			t.Errorf("%s: %d x %d showing %d, want %d", name, f.W, f.H, level(f), p.want)
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	good := pngOf(t, greyPicture(64, 48, 50))
	resized := func(w, h uint32) []byte {
		b := append([]byte(nil), good...)
		binary.BigEndian.PutUint32(b[16:], w)
		binary.BigEndian.PutUint32(b[20:], h)
		putCRC(b)
		return b
	}
	for name, p := range map[string]struct {
		data []byte
		want error // nil: any
	}{
		"text":          {[]byte("no picture at all"), ErrNotPicture},
		"empty":         {nil, ErrNotPicture},
		"two bytes":     {[]byte("\xff\xd8"), ErrNotPicture},
		"gif":           {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), ErrNotPicture},
		"100 Mpx":       {resized(10000, 10000), ErrTooLarge},
		"long":          {resized(1<<16, 8), ErrTooLarge},
		"largest":       {resized(math.MaxInt32, math.MaxInt32), nil},
		"half a header": {good[:20], nil},
		"truncated":     {good[:len(good)-16], nil},
		"cut jpeg":      {jpegOf(t, greyPicture(64, 48, 50))[:200], nil},
	} {
		_, err := ReadFile(write(t, "x.png", p.data))
		if err == nil || p.want != nil && !errors.Is(err, p.want) {
			t.Errorf("%s: %v, want %v", name, err, p.want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none.png")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := ReadFile(t.TempDir()); err == nil {
		t.Error("a directory is no error")
	}
}

func TestFitKeepsShapeAndBrightness(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ w, h, maxW, maxH, wantW, wantH int }{
		{100, 50, 100, 50, 100, 50}, {100, 50, 200, 200, 100, 50}, {101, 50, 100, 50, 100, 49},
		{4000, 3000, 1280, 720, 960, 720}, {3000, 4000, 1280, 720, 540, 720}, {1000, 3, 10, 10, 10, 1},
		{2560, 1440, 1280, 720, 1280, 720}, {1281, 720, 1280, 720, 1280, 719},
	} {
		f := Frame{Pix: make([]byte, (c.w+5)*c.h-5), Stride: c.w + 5, W: c.w, H: c.h}
		var sum, outSum float64
		for i := range f.Pix {
			f.Pix[i] = byte(r.Uint32())
			if i%f.Stride < f.W {
				sum += float64(f.Pix[i])
			}
		}
		g := f.Fit(c.maxW, c.maxH)
		if g.W != c.wantW || g.H != c.wantH {
			t.Errorf("%d x %d into %d x %d: %d x %d, want %d x %d", c.w, c.h, c.maxW, c.maxH, g.W, g.H, c.wantW, c.wantH)
		}
		for y := range g.H {
			for x := range g.W {
				outSum += float64(g.Pix[y*g.Stride+x])
			}
		}
		if d := sum/float64(c.w*c.h) - outSum/float64(g.W*g.H); math.Abs(d) > 0.5 {
			t.Errorf("%d x %d into %d x %d: mean brightness off by %.2f", c.w, c.h, c.maxW, c.maxH, d)
		}
	}
}

func TestFitAveragesWhatAPixelCovers(t *testing.T) {
	f := Frame{Pix: []byte{0, 90, 180}, Stride: 3, W: 3, H: 1}
	g := f.Fit(2, 1) // 1.5 pixels each
	if g.W != 2 || g.Pix[0] != 30 || g.Pix[1] != 150 {
		t.Errorf("got %v", g.Pix)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(pngOf(f, greyPicture(16, 16, 9)))
	f.Add(jpegOf(f, greyPicture(16, 16, 9)))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		fr, err := ReadFile(path)
		if err == nil && (fr.W < 1 || fr.H < 1 || fr.Stride < fr.W || len(fr.Pix) < fr.Stride*(fr.H-1)+fr.W) {
			t.Errorf("a frame that is none: %d x %d stride %d with %d bytes", fr.W, fr.H, fr.Stride, len(fr.Pix))
		}
	})
}
