package camera

import (
	"errors"
	"math"
	"slices"
	"strings"
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
