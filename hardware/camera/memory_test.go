package camera

import (
	"runtime"
	"testing"
)

// loop is a device that always has a frame.
type loop struct {
	fakeDevice
	p []byte
}

func (l *loop) Frame() ([]byte, uint32, error) { return l.p, 0, nil }
func (l *loop) Release(uint32) error           { return nil }

func TestBoxMakesNoGarbage(t *testing.T) {
	b := newBox()
	held := b.empty() // as the reader does
	for _, again := range []int{1, 2, 5} {
		got := testing.AllocsPerRun(100, func() {
			for range again {
				b.put(b.empty())
			}
			b.give(held)
			held = b.take()
		})
		if got != 0 {
			t.Errorf("%v allocations for %d frames", got, again)
		}
	}
	if len(b.free)+1 != 3 {
		t.Errorf("%d shots are left of 3", len(b.free)+1)
	}
}

func TestFramesMakeNoGarbage(t *testing.T) {
	for _, format := range []Format{FormatGrey, FormatYUYV} {
		for _, size := range [][2]int{{1280, 720}, {1296, 729}} { // the second is averaged down
			set := layout{format: format, w: size[0], h: size[1], stride: size[0] * format.bytes()}
			if format == FormatYUYV && size[0] > MaxWidth {
				continue // the averaging is the same
			}
			d := &loop{p: plainPicture(1, set)}
			cam, err := newV4L2(V4L2Options{Device: "x", Rate: maxRate}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var g greyer
			n := 0
			frame := func() {
				cam.health.begin(nil)
				cam.late = true // as after a pile: the loop always has one more
				if err := cam.take(t.Context(), d, set); err != nil {
					t.Fatal(err)
				}
				s := cam.box.take()
				f, err := g.frame(s)
				cam.health.read(err)
				if n++; err != nil || f.W != 1280 || f.Pix[f.Stride*f.H-1] != 1 {
					t.Fatalf("frame of %d x %d, %v", f.W, f.H, err)
				}
				cam.box.give(s)
			}
			for range 3 {
				frame()
			}
			var m1, m2 runtime.MemStats
			runtime.ReadMemStats(&m1)
			for range 5 {
				frame()
			}
			runtime.ReadMemStats(&m2)
			if got := testing.AllocsPerRun(3, frame); got != 0 || m2.TotalAlloc-m1.TotalAlloc > 1<<16 {
				t.Errorf("%v of %v: %v allocations a frame, %d bytes in 5", format, size, got, m2.TotalAlloc-m1.TotalAlloc)
			}
		}
	}
}

func BenchmarkYUYV720p(b *testing.B) {
	set := layout{format: FormatYUYV, w: 1280, h: 720, stride: 2560}
	p, s := plainPicture(1, set), &shot{}
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if err := set.copy(s, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMJPEG720p(b *testing.B) {
	set := layout{format: FormatMJPEG, w: 1280, h: 720}
	p, s := jpegOf(b, colour(1280, 720)), &shot{}
	var g greyer
	b.ReportAllocs()
	for b.Loop() {
		if err := set.copy(s, p); err != nil {
			b.Fatal(err)
		}
		if _, err := g.frame(s); err != nil {
			b.Fatal(err)
		}
	}
}
