package camera

import (
	"bytes"
	"image"
	"math/rand/v2"
	"slices"
	"testing"
)

// noisy is a picture whose data have every kind of byte.
func noisy(w, h int, seed uint64) *image.Gray {
	r := rand.New(rand.NewPCG(seed, 1))
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(r.Uint32())
	}
	return m
}

// cut splits a stream that arrives in pieces of n bytes.
func cut(s *splitter, stream []byte, n int) (pictures [][]byte) {
	for piece := range slices.Chunk(stream, n) {
		s.take(piece, func(p []byte) { pictures = append(pictures, bytes.Clone(p)) })
	}
	return pictures
}

func same(t *testing.T, got [][]byte, want ...[]byte) {
	t.Helper()
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %d pictures, want %d", len(got), len(want))
	}
}

func TestSplitsAStreamHoweverItArrives(t *testing.T) {
	a, b := jpegOf(t, noisy(64, 48, 1)), jpegOf(t, noisy(80, 40, 2))
	thumb := slices.Concat(a[:2], []byte{0xFF, 0xE1, byte((len(b) + 2) >> 8), byte(len(b) + 2)}, b, a[2:])
	restart := slices.Concat(a[:len(a)-2], []byte{0xFF, 0xD3, 1, 2, 0xFF, 0x00, 0xFF, 0xFF, 0xD7, 3}, a[len(a)-2:])
	fill := slices.Concat(a[:2], []byte{0xFF, 0xFF}, a[2:])
	stream := slices.Concat(a, b, []byte("\r\n--frame\r\nContent-Length: 12\r\n\r\n"), thumb, make([]byte, 100),
		restart, []byte{0xFF, 0xFF, 0xFF}, fill, []byte{0xFF, 0, 0xFF, 0xD9}, a)
	for _, n := range []int{1, 2, 3, 7, 100, 4096, len(stream)} {
		var s splitter
		same(t, cut(&s, stream, n), a, b, thumb, restart, fill, a)
		if s.dropped != 0 {
			t.Errorf("in pieces of %d: dropped %d", n, s.dropped)
		}
	}
}

func TestSplitterDropsWhatIsCutAndGoesOn(t *testing.T) {
	a := jpegOf(t, noisy(64, 48, 1))
	header, err := readJPEGHeader(a)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut in its data":     a[:len(a)-200],
		"cut before its data": a[:header.scan],
		"cut in a marker":     a[:header.scan+1],
		"begins twice":        a[:2],
		"ends in its header":  slices.Concat(a[:header.scan], []byte{0xFF, 0xD9}),
		"no segment":          {0xFF, 0xD8, 0x00},
		"marker of no kind":   {0xFF, 0xD8, 0xFF, 0x00},
		"length of nothing":   {0xFF, 0xD8, 0xFF, 0xE0, 0, 1},
		"no marker next":      {0xFF, 0xD8, 0xFF, 0xE0, 0, 2, 0},
		"restart in a header": {0xFF, 0xD8, 0xFF, 0xD0},
	} {
		var s splitter
		same(t, cut(&s, slices.Concat(a, bad, a, a), 64), a, a, a)
		if s.dropped != 1 {
			t.Errorf("%s: dropped %d", name, s.dropped)
		}
	}
	// A length that swallows what follows costs that, and no more.
	var s splitter
	long := []byte{0xFF, 0xD8, 0xFF, 0xE0, 0xFF, 0xFF}
	if got := cut(&s, slices.Concat(long, bytes.Repeat(a, 100)), 4096); len(got) < 100-65536/len(a)-2 {
		t.Errorf("%d of 100 pictures came through", len(got))
	}
}

func TestSplitterKeepsItsLimit(t *testing.T) {
	a := jpegOf(t, noisy(64, 48, 1))
	endless := slices.Concat(a[:len(a)-2], make([]byte, maxJPEG))
	var s splitter
	same(t, cut(&s, slices.Concat(endless, a), 4096), a)
	if s.dropped != 1 || cap(s.buf) > 2*maxJPEG {
		t.Errorf("dropped %d, holds %d bytes", s.dropped, cap(s.buf))
	}
	stuffed := slices.Concat(a[:len(a)-2], bytes.Repeat([]byte{0xFF, 0}, maxJPEG))
	same(t, cut(&s, slices.Concat(stuffed, a), 4096), a)
	largest := slices.Concat(a[:len(a)-2], make([]byte, maxJPEG-len(a)), a[len(a)-2:])
	same(t, cut(&s, slices.Concat(largest, a), 4096), largest, a)
}

func TestSplitterMakesNoGarbage(t *testing.T) {
	a := jpegOf(t, noisy(64, 48, 1))
	var s splitter
	n := 0
	if got := testing.AllocsPerRun(100, func() { s.take(a, func([]byte) { n++ }) }); got != 0 || n < 100 {
		t.Errorf("%v allocations a picture, %d pictures", got, n)
	}
}

func FuzzSplitter(f *testing.F) {
	a := jpegOf(f, noisy(16, 16, 1))
	f.Add(a, 3)
	f.Add(slices.Concat(a[:50], a, a[:100], []byte{0xFF}, a), 1)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		if n < 1 || len(stream) > 1<<16 {
			return
		}
		var s, whole splitter
		got := cut(&s, stream, n)
		same(t, cut(&whole, stream, max(1, len(stream))), got...)
		total := 0
		for _, p := range got {
			total += len(p)
			if !bytes.HasPrefix(p, []byte{0xFF, 0xD8, 0xFF}) || !bytes.HasSuffix(p, []byte{0xFF, 0xD9}) || !bytes.Contains(stream, p) {
				t.Errorf("no picture of the stream: %x", p)
			}
			if _, _, err := appendJPEG(nil, p); err != nil && len(p) < 4 {
				t.Error(err)
			}
		}
		if total > len(stream) {
			t.Errorf("%d bytes of pictures in %d", total, len(stream))
		}
		// Whatever came before, the second of two pictures after it is found.
		tail := cut(&s, slices.Concat(make([]byte, 1<<17), a, a), 4096)
		if len(tail) == 0 || !bytes.Equal(tail[len(tail)-1], a) {
			t.Error("it does not find its way back")
		}
	})
}
