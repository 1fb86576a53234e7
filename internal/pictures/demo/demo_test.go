package demo

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"admitone/hardware/camera"
	"admitone/internal/scan"
	"admitone/internal/ticket"
)

const (
	testdata = "../../../testdata"
	again    = "; go run ./internal/pictures/gen draws them anew"
)

func frames(t *testing.T) []Frame {
	t.Helper()
	fs, err := Frames()
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// The committed index and key are what the generator writes, and there is no
// picture too many.
func TestCommittedFilesAreTheGenerators(t *testing.T) {
	fs := frames(t)
	want, err := Index(fs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(testdata, "frames", "frames.json")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("frames.json is not the generator's: %v%s", err, again)
	}
	key, err := os.ReadFile(filepath.Join(testdata, "demo-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if priv, err := ticket.ParsePrivateKey(key); err != nil || !priv.Equal(Key()) {
		t.Errorf("demo-key.pem is not the demo key: %v%s", err, again)
	}
	names, err := filepath.Glob(filepath.Join(testdata, "frames", "*.jpg"))
	if err != nil || len(names) != len(fs) {
		t.Errorf("%d pictures for %d entries, %v%s", len(names), len(fs), err, again)
	}
}

// The committed pictures are what the generator draws: one for each way of drawing,
// as drawing all of them takes too long here. A changed spec shows in frames.json.
// Other processors and other versions of the JPEG encoder may be a little off.
func TestCommittedPicturesAreTheGenerators(t *testing.T) {
	drawn := 0
	for _, f := range frames(t) {
		switch f.File {
		case "02-new-paper.jpg", "03-new-dark-mode.jpg", "05-nothing-hall.jpg", "10-new-low-light.jpg",
			"21-new-glare.jpg", "22-new-motion.jpg":
		default:
			continue
		}
		drawn++
		file, err := os.ReadFile(filepath.Join(testdata, "frames", f.File))
		if err != nil {
			t.Fatal(err)
		}
		now, err := f.JPEG()
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(t, file, now); d > 1 {
			t.Errorf("%s differs by %.2f grey levels on average%s", f.File, d, again)
		}
	}
	if drawn != 6 {
		t.Errorf("compared %d pictures", drawn)
	}
}

// difference is the mean difference of two grey pictures' pixels, in grey levels.
func difference(t *testing.T, a, b []byte) float64 {
	t.Helper()
	p, q := grey(t, a), grey(t, b)
	if p.Rect != q.Rect {
		t.Fatalf("sizes %v and %v%s", p.Rect, q.Rect, again)
	}
	sum := 0
	for i := range p.Pix {
		d := int(p.Pix[i]) - int(q.Pix[i])
		sum += max(d, -d)
	}
	return float64(sum) / float64(len(p.Pix))
}

func grey(t *testing.T, b []byte) *image.Gray {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	g, ok := m.(*image.Gray)
	if !ok {
		t.Fatalf("a %T, want grey", m)
	}
	return g
}

// The reader finds in each committed picture exactly the texts of frames.json.
func TestReaderReadsWhatFramesSay(t *testing.T) {
	var index []Frame
	data, err := os.ReadFile(filepath.Join(testdata, "frames", "frames.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	reader := scan.New(scan.Options{})
	for _, f := range index {
		p, err := camera.ReadFile(filepath.Join(testdata, "frames", f.File))
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := reader.Read(scan.Frame{Pix: p.Pix, Stride: p.Stride, W: p.W, H: p.H})
		if err != nil {
			t.Errorf("%s: %v", f.File, err)
		}
		slices.Sort(got)
		slices.Sort(f.Texts)
		if !slices.Equal(got, f.Texts) {
			t.Errorf("%s: read %q, want %q", f.File, got, f.Texts)
		}
	}
}

// A verifier with the demo programme, and tickets used up in order, give the
// reasons of frames.json.
func TestReasonsAreTheVerifiers(t *testing.T) {
	p := Programme()
	v, err := ticket.NewVerifier(p, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := ticket.NewVerifier(p, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	at := ticket.Where{Place: "1", Now: time.Date(2030, 6, 1, 20, 0, 0, 0, time.UTC), Clock: ticket.Trusted}
	used := map[ticket.ID]bool{}
	for _, f := range frames(t) {
		for i, text := range f.Texts {
			tk, reason := v.Read(text)
			if reason == ticket.OK {
				reason = p.Judge(tk, at)
			}
			if reason == ticket.OK && used[tk.ID] {
				reason = ticket.AlreadyUsed
			}
			used[tk.ID] = true
			if reason != f.Reasons[i] {
				t.Errorf("%s: %s, want %s", f.File, reason, f.Reasons[i])
			}
			if _, reason := strict.Read(text); reason == ticket.OK {
				t.Errorf("%s: a verifier that takes no demo keys accepts it", f.File)
			}
		}
	}
}

// The set has what the demonstration is to show.
func TestEveryKindIsThere(t *testing.T) {
	count := map[Kind]int{}
	for _, f := range frames(t) {
		count[f.Kind]++
		if want := len(f.Texts); len(f.Reasons) != want || (f.Kind == Nothing) != (want == 0) || (f.Kind == BothGates) != (len(f.Gates) == 2) {
			t.Errorf("%s: %d texts, %d reasons, gates %v", f.File, want, len(f.Reasons), f.Gates)
		}
	}
	want := map[Kind]int{
		New: 6, Repeat: 3, Family: 4, BothGates: 2, TwoPhones: 1, Expired: 2, Other: 1, Junk: 3, Nothing: 2,
	}
	if !reflect.DeepEqual(count, want) {
		t.Errorf("kinds %v, want %v", count, want)
	}
}
