package camera

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestFramesComeInEveryFormat(t *testing.T) {
	for _, c := range []struct {
		format Format
		w, h   int
	}{{FormatGrey, 64, 48}, {FormatYUYV, 66, 48}, {FormatYUYV, 320, 240}, {FormatMJPEG, 64, 48}, {FormatJPEG, 64, 48}} {
		f := newFake()
		f.formats = []Format{c.format}
		f.content = func(n int, l layout) []byte {
			p := plainPicture(n, l)
			if l.format.jpeg() && n%2 == 0 {
				p = withoutTables(t, p)
			}
			return p
		}
		inBubble(t, f, V4L2Options{Width: c.w, Height: c.h}, func(r *rig) {
			r.state("no frame yet")
			time.Sleep(3 * time.Second)
			r.state("")
			got := r.sights()
			if len(got) < 40 || len(got) > 46 {
				t.Fatalf("%v: %d frames in 3 s at 15 a second", c.format, len(got))
			}
			for i, s := range got {
				if s.w != c.w || s.h != c.h || s.age != 0 || math.Abs(float64(s.level)-float64(i+1)) > 1 {
					t.Fatalf("%v: frame %d: %+v", c.format, i, s)
				}
			}
			if st := r.cam.Stats(); st.Frames < 44 || st.Skipped+st.Replaced+st.Lost > 0 {
				t.Errorf("%v: %+v", c.format, st)
			}
			r.told(1, "camera works")
		})
	}
}

func TestPaddedRowsAndFrames(t *testing.T) {
	for _, format := range []Format{FormatGrey, FormatYUYV} {
		f := newFake()
		f.formats = []Format{format}
		f.set = func(l layout) layout {
			l.stride = l.w*l.format.bytes() + 14
			l.size = l.stride*l.h + 100
			return l
		}
		f.content = func(n int, l layout) []byte {
			p := plainPicture(n, l)
			for i := range p {
				if i%l.stride >= l.w*l.format.bytes() {
					p[i] = scribble
				}
			}
			if n%2 == 0 {
				p = append(p, slices.Repeat([]byte{scribble}, 100)...)
			}
			return p
		}
		inBubble(t, f, V4L2Options{Width: 62, Height: 48}, func(r *rig) {
			time.Sleep(2 * time.Second)
			if n := len(r.sights()); n < 28 {
				t.Errorf("%v: %d frames", format, n)
			}
		})
	}
}

// The receiver is busy for half a second at a time, while the device makes 60
// frames a second: what it gets then is of this moment, not what filled the
// driver's buffers first.
func TestBusyReceiverGetsTheNewestFrame(t *testing.T) {
	f := newFake()
	f.period = time.Second / 60
	f.busy = 500 * time.Millisecond
	inBubble(t, f, V4L2Options{Width: 64, Height: 48, Rate: 60}, func(r *rig) {
		time.Sleep(20 * time.Second)
		got := r.sights()
		if len(got) < 38 {
			t.Errorf("%d frames in 20 s", len(got))
		}
		for i, s := range got {
			made := int(s.at.Sub(got[0].at)/f.period) + int(got[0].level)
			if d := made%200 - int(s.level); i > 0 && (s.age > f.period || d > 1 && d < 198) {
				t.Errorf("frame %d is %v old and shows %d of %d", i, s.age, s.level, made%200)
			}
		}
		if st := r.cam.Stats(); st.Replaced < 1000 || f.got().lost > 0 {
			t.Errorf("replaced %d, lost %d", st.Replaced, f.got().lost)
		}
	})
}

// The goroutine that owns the device gets no processor for a while: of what has
// piled up the newest counts, and nothing where that may be old.
func TestLateTakerSkipsWhatPiledUp(t *testing.T) {
	for _, c := range []struct {
		late  time.Duration // after each tenth frame
		least int           // frames in 20 s
	}{{130 * time.Millisecond, 240}, {600 * time.Millisecond, 150}} {
		f := newFake()
		f.wait = func(n int) error {
			if n%10 == 0 {
				time.Sleep(c.late)
			}
			return nil
		}
		inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
			begin := time.Now()
			time.Sleep(20 * time.Second)
			got := r.sights()
			if len(got) < c.least {
				t.Errorf("late by %v: %d frames", c.late, len(got))
			}
			for i, s := range got {
				made := int(s.at.Sub(begin)/f.period) % 200
				if d := (made - int(s.level) + 200) % 200; d > 0 {
					t.Errorf("late by %v: frame %d shows %d of %d", c.late, i, s.level, made)
				}
			}
		})
	}
	// Late each time, it takes what there is: an old frame is better than none.
	f := newFake()
	f.wait = func(int) error { time.Sleep(time.Second); return nil }
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(21 * time.Second)
		if n := len(r.sights()); n < 9 || n > 11 {
			t.Errorf("%d frames", n)
		}
	})
}

// pile is a device with frames of some lengths ready, or errors of a number below
// zero.
type pile struct {
	fakeDevice
	lengths  []int
	released []uint32
}

func (p *pile) Frame() ([]byte, uint32, error) {
	if len(p.lengths) == 0 {
		return nil, 0, errQuiet
	}
	n := p.lengths[0]
	p.lengths = p.lengths[1:]
	if n < 0 {
		return nil, 0, errIO
	}
	return make([]byte, n), uint32(n), nil
}

func (p *pile) Release(i uint32) error { p.released = append(p.released, i); return nil }

func TestNewestOfAPile(t *testing.T) {
	for _, c := range []struct {
		ready    []int // lengths, which are the buffers' numbers, too
		want     int
		released []uint32
		err      error
	}{
		{nil, 0, nil, errQuiet},
		{[]int{5}, 5, nil, nil},
		{[]int{5, 6, 7}, 7, []uint32{5, 6}, nil},
		{[]int{5, 0}, 5, []uint32{0}, nil}, // an empty frame is no newer one
		{[]int{0, 5, 0, 6}, 6, []uint32{0, 0, 5}, nil},
		{[]int{0, 0}, 0, []uint32{0}, nil},
		{[]int{-1}, 0, nil, errIO},
		{[]int{5, -1}, 0, nil, errIO}, // the device is closed for it
		{slices.Repeat([]int{9}, 100), 9, slices.Repeat([]uint32{9}, maxBuffers-1), nil},
	} {
		d := &pile{lengths: slices.Clone(c.ready)}
		data, i, n, err := newest(d)
		if len(data) != c.want || err != c.err || err == nil && (int(i) != c.want || n != min(len(c.ready), maxBuffers)) || !slices.Equal(d.released, c.released) {
			t.Errorf("%v: %d bytes of buffer %d, %d frames, %v, released %v", c.ready, len(data), i, n, err, d.released)
		}
	}
}

func TestTooManyFramesAreThinnedOut(t *testing.T) {
	f := newFake()
	f.period = time.Millisecond
	inBubble(t, f, V4L2Options{Width: 32, Height: 24, Rate: 10}, func(r *rig) {
		time.Sleep(3 * time.Second)
		r.state("")
		if n := len(r.sights()); n < 30 || n > 52 {
			t.Errorf("%d frames in 3 s", n)
		}
	})
}

// A device that says one size and sends another is closed with an error that says
// both; where it has other modes, they are tried in turn.
func TestLiesAboutItsSize(t *testing.T) {
	small := func(n int, l layout) []byte {
		l.w, l.h, l.stride = 16, 16, 16*l.format.bytes()
		return plainPicture(n, l)
	}
	for _, c := range []struct {
		format Format
		want   string
	}{
		{FormatGrey, "it said GREY 1280x720, which is 921600 bytes, and sent 256"},
		{FormatYUYV, "it said YUYV 1280x720, which is 1843200 bytes, and sent 512"},
		{FormatMJPEG, "it said MJPG 1280x720 and sent 16x16"},
	} {
		f := newFake()
		f.formats = []Format{c.format}
		f.content = small
		inBubble(t, f, V4L2Options{Width: 1280, Height: 720}, func(r *rig) {
			time.Sleep(time.Minute)
			r.state(c.want)
			if got := r.sights(); len(got) != 0 {
				t.Errorf("%d frames", len(got))
			}
			r.told(1, "camera lost")
			r.told(0, "camera works")
		})
	}
	f := newFake()
	f.formats = []Format{FormatGrey, FormatMJPEG}
	for _, format := range f.formats {
		f.sizes[format] = []sizes{one(64, 48)}
	}
	f.content = func(n int, l layout) []byte {
		if l.format == FormatGrey {
			return small(n, l)
		}
		return plainPicture(n, l)
	}
	inBubble(t, f, V4L2Options{}, func(r *rig) {
		time.Sleep(4 * time.Second)
		r.state("")
		if all := f.got().layouts; len(all) != 2 || all[1].format != FormatMJPEG {
			t.Errorf("it worked as %v", all)
		}
		r.told(1, "works again")
	})
}

func TestDriverThatSetsSomethingElse(t *testing.T) {
	other := func(w, h int) func(layout) layout {
		return func(l layout) layout {
			return layout{format: l.format, w: w, h: h, stride: w * l.format.bytes(), size: w * h * l.format.bytes()}
		}
	}
	f := newFake() // the driver says what it has set: that is no lie
	f.set = other(320, 240)
	inBubble(t, f, V4L2Options{}, func(r *rig) {
		time.Sleep(3 * time.Second)
		r.state("")
		if s := r.sights(); len(s) == 0 || s[0].w != 320 || s[0].h != 240 {
			t.Errorf("saw %+v", s)
		}
	})
	for want, o := range map[string]struct {
		options V4L2Options
		set     func(layout) layout
	}{
		"asked for YUYV 640x480, it set YUYV 320x240":                              {V4L2Options{Width: 640, Height: 480, Format: FormatYUYV}, other(320, 240)},
		"which is no size of a picture":                                            {V4L2Options{}, other(0, 0)},
		"which is no size of a picture ":                                           {V4L2Options{}, other(1<<15, 1<<15)},
		"asked for YUYV 1280x720, it set NM12 1280x720 which is not read here":     {V4L2Options{}, func(l layout) layout { l.format = 0x32314D4E; return l }},
		"asked for YUYV 1280x720, it set YUYV 1280x720 with rows 1280 bytes apart": {V4L2Options{Format: FormatYUYV}, func(l layout) layout { l.stride = l.w; return l }},
	} {
		f := newFake()
		f.formats = []Format{FormatYUYV, 0x32314D4E}
		f.set = o.set
		inBubble(t, f, o.options, func(r *rig) {
			time.Sleep(50 * time.Millisecond)
			r.state(strings.TrimSpace(want))
		})
	}
}

func TestBadFramesAreSkippedAndCounted(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		spoil  func(p []byte) []byte
	}{
		"empty":          {FormatYUYV, func([]byte) []byte { return nil }},
		"cut":            {FormatYUYV, func(p []byte) []byte { return p[:len(p)-1] }},
		"too long":       {FormatGrey, func(p []byte) []byte { return append(p, 0) }},
		"no JPEG":        {FormatMJPEG, func(p []byte) []byte { clear(p); return p }},
		"cut JPEG":       {FormatMJPEG, func(p []byte) []byte { return p[:len(p)*2/3] }},
		"JPEG of noise":  {FormatMJPEG, func(p []byte) []byte { copy(p[len(p)-60:], slices.Repeat([]byte{0xFF, 0xC0}, 30)); return p }},
		"cut in headers": {FormatMJPEG, func(p []byte) []byte { return p[:100] }},
	} {
		f := newFake()
		f.formats = []Format{c.format}
		f.content = func(n int, l layout) []byte {
			p := plainPicture(n, l)
			if n%10 < 5 { // half of them, at most five in a row
				p = c.spoil(p)
			}
			return p
		}
		inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
			time.Sleep(10 * time.Second)
			r.state("")
			st := r.cam.Stats()
			if n := len(r.sights()); n < 70 || n > 80 || st.Skipped < 70 || st.Skipped > 80 || st.Lost > 0 {
				t.Errorf("%s: saw %d, %+v", name, n, st)
			}
		})
	}
}

// Pictures that look right and cannot be decoded are as good as none.
func TestJPEGsThatCannotBeRead(t *testing.T) {
	f := newFake()
	f.formats = []Format{FormatMJPEG}
	p := jpegOf(t, noisy(64, 48, 5))
	f.content = func(int, layout) []byte { return p[:len(p)-200] }
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(10 * time.Second)
		r.state("frames in a row that cannot be read")
		r.told(1, "camera lost")
	})
}

func TestStallIsLeftBehind(t *testing.T) {
	f := newFake()
	stalled := false
	f.ticks = func(layout, int) bool { return !stalled }
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(5 * time.Second)
		unlock := f.lock()
		stalled = true
		unlock()
		time.Sleep(2500 * time.Millisecond)
		r.state("no frame for 2")
		time.Sleep(time.Minute)
		r.told(1, "camera lost")
		if n := f.got().opens; n < 5 || n > 15 {
			t.Errorf("opened %d times in a minute", n)
		}
		unlock = f.lock()
		stalled = false
		unlock()
		time.Sleep(20 * time.Second)
		r.state("")
		r.told(1, "camera works again")
		r.told(2, "camera works")
	})
}

func TestUnpluggedAndBack(t *testing.T) {
	f := newFake()
	in := true
	f.path = func() error {
		if !in {
			return fmt.Errorf("open: %w: is it plugged in?", syscall.ENOENT)
		}
		return nil
	}
	f.frame = func(int) error {
		if !in {
			return gone()
		}
		return nil
	}
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		plug := func(now bool) { defer f.lock()(); in = now }
		for range 3 {
			time.Sleep(5 * time.Second)
			r.state("")
			plug(false)
			time.Sleep(70 * time.Millisecond)
			r.state("it was unplugged")
			time.Sleep(10 * time.Minute)
			r.state("camera /dev/video9: open: no such file or directory: is it plugged in?")
			plug(true)
			time.Sleep(6300 * time.Millisecond) // the longest pause, and a frame
			r.state("")
			if all := f.got().layouts; all[len(all)-1] != all[0] {
				t.Errorf("it works as %v", all[len(all)-1])
			}
		}
		time.Sleep(5 * time.Second)
		r.told(3, "camera lost")
		r.told(3, "works again")
	})
}

// However a device fails at once, over and over, it costs a try every five
// seconds, and one line.
func TestErrorsAreFollowedByGrowingPauses(t *testing.T) {
	for name, spoil := range map[string]func(f *fake){
		"open":        func(f *fake) { f.path = func() error { return errIO } },
		"formats":     func(f *fake) { f.formats = nil },
		"start":       func(f *fake) { f.start = func(layout) error { return errIO } },
		"wait":        func(f *fake) { f.wait = func(int) error { return errIO } },
		"frame":       func(f *fake) { f.frame = func(int) error { return errIO } },
		"release":     func(f *fake) { f.release = func() error { return errIO } },
		"close":       func(f *fake) { f.close = func() error { return errIO }; f.wait = f.closeSoon() },
		"panic":       func(f *fake) { f.wait = func(int) error { panic("index out of range") } },
		"woken":       func(f *fake) { f.frame = func(int) error { return errQuiet } },
		"10,000/s":    func(f *fake) { f.period = time.Second / 10_000; f.content = func(int, layout) []byte { return nil } },
		"one, then":   func(f *fake) { f.wait = f.closeSoon() },
		"slow to say": func(f *fake) { f.path = func() error { return gone() } },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			spoil(f)
			inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
				time.Sleep(10 * time.Minute)
				n := f.got()
				if n.opens < 90 || n.opens > 135 {
					t.Errorf("opened %d times in ten minutes", n.opens)
				}
				if n.waits > 20*n.opens {
					t.Errorf("waited %d times", n.waits)
				}
				r.told(1, "camera lost")
				r.told(0, "works again")
			})
		})
	}
}

// closeSoon lets a few frames of each opening through.
func (f *fake) closeSoon() func(int) error {
	return func(n int) error {
		if n%4 == 3 {
			return errIO
		}
		return nil
	}
}

// A mode that stalls again and again soon after its start, as on a bus without
// the bandwidth, makes room for the next best.
func TestModeThatDoesNotLast(t *testing.T) {
	f := newFake()
	f.formats = []Format{FormatYUYV, FormatMJPEG}
	start := time.Time{}
	f.start = func(layout) error { start = time.Now(); return nil }
	f.ticks = func(l layout, _ int) bool { return l.format == FormatMJPEG || time.Since(start) < 5*time.Second }
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(time.Minute)
		r.state("")
		if all := f.got().layouts; len(all) != 4 || all[2].format != FormatYUYV || all[3].format != FormatMJPEG {
			t.Errorf("it worked as %v", all)
		}
	})
	// One that another program holds is no reason to take a worse one.
	f = newFake()
	busy := true
	f.start = func(layout) error {
		if busy {
			return fmt.Errorf("%w: another program uses it", syscall.EBUSY)
		}
		return nil
	}
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(time.Minute)
		r.state("another program uses it")
		unlock := f.lock()
		busy = false
		unlock()
		time.Sleep(10 * time.Second)
		r.state("")
		for _, l := range f.got().layouts {
			if l.format != FormatYUYV {
				t.Fatalf("it tried %v", l)
			}
		}
	})
}

// What is plugged in anew begins with the best mode, whatever was learnt before.
func TestPluggedInAnewBeginsWithTheBest(t *testing.T) {
	f := newFake()
	f.formats = []Format{FormatYUYV, FormatMJPEG}
	bad, out := true, false
	f.ticks = func(l layout, _ int) bool { return l.format == FormatMJPEG || !bad }
	f.frame = func(int) error {
		if out {
			out = false
			return gone()
		}
		return nil
	}
	inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
		time.Sleep(20 * time.Second)
		r.state("")
		unlock := f.lock()
		bad, out = false, true
		unlock()
		time.Sleep(10 * time.Second)
		r.state("")
		if all := f.got().layouts; len(all) != 3 || all[1].format != FormatMJPEG || all[2].format != FormatYUYV {
			t.Errorf("it worked as %v", all)
		}
	})
}

// A driver that does not come back is told of, and left behind at the stop.
func TestDriverThatHangs(t *testing.T) {
	hang := make(chan struct{})
	f := newFake()
	f.wait = func(n int) error {
		if n == 10 {
			<-hang
		}
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		hang = make(chan struct{})
		inside(t, f, hang)
	})
}

func inside(t *testing.T, f *fake, hang chan struct{}) {
	log := &syncLog{}
	cam, err := newV4L2(V4L2Options{Device: "x", Log: log.logger()}, f.open)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	ctx, stop := contextOf(t)
	frames := 0
	go func() { done <- cam.Run(ctx, func(Frame) { frames++ }) }()
	time.Sleep(time.Second)
	if err := cam.State(); err != nil {
		t.Error(err)
	}
	time.Sleep(6 * time.Second)
	if err := cam.State(); err == nil || !strings.Contains(err.Error(), "has not answered for") {
		t.Errorf("state %v", err)
	}
	begun := time.Now()
	stop()
	if err := <-done; err != nil || time.Since(begun) > 4*time.Second {
		t.Errorf("stopped with %v after %v", err, time.Since(begun))
	}
	if len(log.lines("hangs")) != 1 {
		t.Errorf("log %q", log.lines(""))
	}
	close(hang) // and even then the device is closed
	synctest.Wait()
	if f.opens != 1 || f.closes != 1 || frames < 8 {
		t.Errorf("opened %d, closed %d, %d frames", f.opens, f.closes, frames)
	}
}

func TestStopsSoonAndOnce(t *testing.T) {
	for name, spoil := range map[string]func(*fake){
		"frames":  func(*fake) {},
		"stalled": func(f *fake) { f.ticks = func(layout, int) bool { return false } },
		"lost":    func(f *fake) { f.path = gone },
	} {
		f := newFake()
		spoil(f)
		inBubble(t, f, V4L2Options{Width: 64, Height: 48}, func(r *rig) {
			time.Sleep(30 * time.Second)
			begun := time.Now()
			r.stop()
			if err := <-r.done; err != nil || time.Since(begun) > waitStep {
				t.Errorf("%s: %v after %v", name, err, time.Since(begun))
			}
			n := len(r.sights())
			time.Sleep(time.Minute)
			if len(r.sights()) > 0 || name == "frames" && n == 0 {
				t.Errorf("%s: frames after the end", name)
			}
			ctx, cancel := contextOf(r.t)
			defer cancel()
			r.done <- nil // for inBubble
			if err := r.cam.Run(ctx, r.take); err == nil {
				t.Error("it ran twice")
			}
		})
	}
}

// files counts this process's open files.
func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here") // other systems than Linux
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

func TestNewV4L2Refuses(t *testing.T) {
	for want, o := range map[string]V4L2Options{
		"no device":           {},
		"640 x 0 is no size":  {Device: "x", Width: 640},
		"-2 x -2 is no size":  {Device: "x", Width: -2, Height: -2},
		"101 frames a second": {Device: "x", Rate: 101},
		"-1 frames a second":  {Device: "x", Rate: -1},
	} {
		if _, err := NewV4L2(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestProbe(t *testing.T) {
	f := newFake()
	f.controls = []control{{id: cidExposure, name: "Exposure Time, Absolute", least: 3, most: 2047}}
	cam, err := newV4L2(V4L2Options{Device: "x", Controls: map[string]int{"exposure": 1, "focus": 2}}, f.open)
	if err != nil {
		t.Fatal(err)
	}
	o, err := cam.probe()
	if len(o.Refused) != 2 || o.Refused[0] != "exposure = 1: it takes 3 to 2047" || !strings.HasPrefix(o.Refused[1], "focus = 2: it has none") || len(f.values) > 0 {
		t.Errorf("refused %q, set %q", o.Refused, f.values)
	}
	if err != nil || o.Device != "Fake (fake, bus 1)" || len(o.Modes) != 4 || !slices.Equal(o.Controls, []string{"exposure_time_absolute 3 to 2047"}) {
		t.Errorf("%+v, %v", o, err)
	}
	f.formats = nil
	if _, err := cam.probe(); err == nil || !strings.Contains(err.Error(), "no format") {
		t.Error(err)
	}
	f.path = gone
	if _, err := cam.probe(); !errors.Is(err, errGone) || f.opens != f.closes {
		t.Errorf("%v, %d opened, %d closed", err, f.opens, f.closes)
	}
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		spoil func(f *fake)
		rate  float64
		err   string
	}{
		{func(*fake) {}, 15, ""},
		{func(f *fake) { f.period = time.Second / 7 }, 7, ""},
		{func(f *fake) { f.path = gone }, 0, "unplugged"},
		{func(f *fake) { f.ticks = func(layout, int) bool { return false } }, 0, "no frame"},
		{func(f *fake) { f.ticks = func(_ layout, n int) bool { return n == 1 } }, 0, "no frame for"},
	} {
		f := newFake()
		c.spoil(f)
		synctest.Test(t, func(t *testing.T) {
			cam, err := newV4L2(V4L2Options{Device: "x", Width: 64, Height: 48}, f.open)
			if err != nil {
				t.Fatal(err)
			}
			rate, err := Measure(t.Context(), cam, 3*time.Second, 20*time.Second)
			if math.Abs(rate-c.rate) > 0.1 || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, %v, want %v %q", rate, err, c.rate, c.err)
			}
		})
	}
}
