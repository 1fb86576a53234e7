package camera

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// files counts this process's open files.
func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Each way to fail keeps no file, in ten thousand tries.
func TestFailuresKeepNoFile(t *testing.T) {
	before := files(t)
	f := newFake()
	var open []*os.File
	f.opened = func() {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, file)
	}
	f.closed = func() { _ = open[len(open)-1].Close(); open = open[:len(open)-1] }
	most := 0
	f.start = func(layout) error {
		if f.opens%100 == 0 {
			most = max(most, files(t))
		}
		if f.opens%3 == 0 {
			return errIO
		}
		return nil
	}
	f.wait = func(int) error {
		if f.opens%3 == 1 {
			return gone()
		}
		panic("index out of range")
	}
	inBubble(t, f, V4L2Options{}, func(r *rig) {
		for f.got().opens < 10_000 {
			time.Sleep(time.Hour)
		}
		r.told(1, "camera lost")
	})
	if after := files(t); after > before+1 || most > before+2 {
		t.Errorf("%d files before, %d at most, %d after %d openings", before, most, after, f.opens)
	}
}

// A camera works through a season: after its first frames it needs no more memory
// and no more files for the others, good or bad.
func TestHundredThousandFrames(t *testing.T) {
	const first, all = 10_000, 100_000
	for _, format := range []Format{FormatYUYV, FormatMJPEG} {
		f := newFake()
		f.formats = []Format{format}
		good := plainPicture(1, layout{format: format, w: 16, h: 12, stride: 16 * format.bytes()})
		f.content = func(n int, _ layout) []byte { return good[:len(good)/(1+n%100/99)] } // each hundredth is half a frame
		inBubble(t, f, V4L2Options{Width: 16, Height: 12}, func(r *rig) {
			memory, open := f.after(r, first), files(t)
			more, still := f.after(r, all)-memory, files(t)
			if still != open || more > 64<<10 {
				t.Errorf("%v: %d files at first, %d in the end; %d bytes more", format, open, still, more)
			}
			if st := r.cam.Stats(); st.Frames < all*98/100 || st.Skipped < all/100 || st.Lost > 0 {
				t.Errorf("%v: %+v", format, st)
			}
		})
	}
}

// after gives the bytes in use once a fake has made so many frames.
func (f *fake) after(r *rig, frames int) int64 {
	for f.got().n < frames {
		time.Sleep(time.Minute)
		r.sights()
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
