package camera

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// scribble is what the fake driver writes into a buffer as soon as it is its own
// again.
const scribble = 0xEE

// fake is a video device that can be told to misbehave. It makes frames by the
// clock, into as many buffers as were asked for, and loses those that it has no
// buffer for. A hook that is nil misbehaves in nothing.
type fake struct {
	formats  []Format
	sizes    map[Format][]sizes
	rates    map[string]float64 // by "YUYV 640x480"
	period   time.Duration      // between two frames
	controls []control
	busy     time.Duration // the receiver is, with each frame

	path    func() error                     // opening it
	set     func(asked layout) layout        // what the driver makes of a format
	start   func(l layout) error             //
	wait    func(n int) error                // the n-th wait since the device was made
	frame   func(n int) error                // the n-th frame
	content func(n int, l layout) []byte     // of the n-th frame
	ticks   func(l layout, n int) bool       // false: the n-th frame does not come
	release func() error                     //
	close   func() error                     //
	changed func(id uint32, value int) error // a control is set
	opened  func()                           // something that Close is to undo
	closed  func()

	mu sync.Mutex
	tally
}

// tally is what happened to a fake.
type tally struct {
	opens, closes, waits int
	n, lost              int      // frames: made, and those that had no buffer
	layouts              []layout // that were started
	values               []string // of controls, as they were set
}

// got is for tests; hooks look at the fake itself.
func (f *fake) got() tally {
	defer f.lock()()
	t := f.tally
	t.layouts, t.values = slices.Clone(t.layouts), slices.Clone(t.values)
	return t
}

func newFake() *fake {
	return &fake{
		formats: []Format{FormatYUYV, FormatMJPEG, 0x32314D4E},
		sizes:   map[Format][]sizes{},
		rates:   map[string]float64{},
		period:  time.Second / 15,
	}
}

func (f *fake) lock() func() {
	f.mu.Lock()
	return f.mu.Unlock
}

func (f *fake) open(string) (device, error) {
	defer f.lock()()
	f.opens++
	if f.path != nil {
		if err := f.path(); err != nil {
			f.closes++
			return nil, err
		}
	}
	if f.opened != nil {
		f.opened()
	}
	return &fakeDevice{f: f}, nil
}

// fakeDevice is one opening of a fake.
type fakeDevice struct {
	f       *fake
	l       layout
	buffers [][]byte
	sent    []int // bytes in each
	driver  []int // buffers that are the driver's
	ready   []int
	next    time.Time
	shut    bool
}

func (d *fakeDevice) Name() string              { return "Fake (fake, bus 1)" }
func (d *fakeDevice) Formats() []Format         { return d.f.formats }
func (d *fakeDevice) Sizes(f Format) []sizes    { return d.f.sizes[f] }
func (d *fakeDevice) SetRate(r float64) float64 { return r }
func (d *fakeDevice) Controls() []control       { return d.f.controls }

func (d *fakeDevice) Rate(f Format, w, h int) float64 {
	return d.f.rates[Mode{Format: f, Width: w, Height: h}.String()]
}

func (d *fakeDevice) SetFormat(f Format, w, h int) (layout, error) {
	d.l = layout{format: f, w: w, h: h, stride: w * f.bytes(), size: w * h * f.bytes()}
	if d.f.set != nil {
		d.l = d.f.set(d.l)
	}
	return d.l, nil
}

func (d *fakeDevice) SetControl(id uint32, value int) error {
	defer d.f.lock()()
	d.f.values = append(d.f.values, fmt.Sprintf("%#x=%d", id, value))
	if d.f.changed != nil {
		return d.f.changed(id, value)
	}
	return nil
}

func (d *fakeDevice) Start(buffers int) error {
	defer d.f.lock()()
	if buffers < 2 || buffers > 4 {
		return fmt.Errorf("%d buffers", buffers)
	}
	d.f.layouts = append(d.f.layouts, d.l)
	if d.f.start != nil {
		if err := d.f.start(d.l); err != nil {
			return err
		}
	}
	d.buffers, d.sent = make([][]byte, buffers), make([]int, buffers)
	for i := range d.buffers {
		d.driver = append(d.driver, i)
	}
	d.next = time.Now().Add(d.f.period)
	return nil
}

// run makes the frames that are due.
func (d *fakeDevice) run() {
	for now := time.Now(); !d.next.After(now); d.next = d.next.Add(d.f.period) {
		d.f.n++
		if d.f.ticks != nil && !d.f.ticks(d.l, d.f.n) {
			continue
		}
		if len(d.driver) == 0 {
			d.f.lost++
			continue
		}
		i := d.driver[0]
		d.driver = d.driver[1:]
		p := d.picture(d.f.n)
		d.buffers[i] = append(d.buffers[i][:0], p...)
		d.sent[i] = len(p)
		d.ready = append(d.ready, i)
	}
}

func (d *fakeDevice) picture(n int) []byte {
	if d.f.content != nil {
		return d.f.content(n, d.l)
	}
	return plainPicture(n, d.l)
}

// plainPicture is of one brightness, n modulo 200.
func plainPicture(n int, l layout) []byte {
	if l.format.jpeg() {
		var b bytes.Buffer
		_ = jpeg.Encode(&b, greyPicture(l.w, l.h, byte(n%200)), nil) // into memory
		return b.Bytes()
	}
	p := bytes.Repeat([]byte{byte(n % 200)}, l.stride*l.h)
	for i := 1; l.format == FormatYUYV && i < len(p); i += 2 {
		p[i] = 0xDD // colour
	}
	return p
}

func (d *fakeDevice) Wait(t time.Duration) error {
	unlock := d.f.lock()
	d.f.waits++
	if d.f.wait != nil {
		wait, n := d.f.wait, d.f.waits
		unlock()
		if err := wait(n); err != nil {
			return err
		}
		unlock = d.f.lock()
	}
	until := time.Now().Add(t)
	for d.run(); len(d.ready) == 0 && time.Now().Before(until); d.run() {
		next := min(time.Until(d.next), time.Until(until))
		unlock()
		time.Sleep(next)
		unlock = d.f.lock()
	}
	defer unlock()
	if len(d.ready) == 0 {
		return errQuiet
	}
	return nil
}

func (d *fakeDevice) Frame() ([]byte, uint32, error) {
	defer d.f.lock()()
	d.run()
	if d.f.frame != nil {
		if err := d.f.frame(d.f.n); err != nil {
			return nil, 0, err
		}
	}
	if len(d.ready) == 0 {
		return nil, 0, errQuiet
	}
	i := d.ready[0]
	d.ready = d.ready[1:]
	return d.buffers[i][:d.sent[i]], uint32(i), nil
}

func (d *fakeDevice) Release(index uint32) error {
	defer d.f.lock()()
	if d.f.release != nil {
		if err := d.f.release(); err != nil {
			return err
		}
	}
	for i := range d.buffers[index] {
		d.buffers[index][i] = scribble
	}
	d.driver = append(d.driver, int(index))
	return nil
}

func (d *fakeDevice) Close() error {
	defer d.f.lock()()
	if d.shut {
		panic("closed twice")
	}
	d.shut = true
	for _, b := range d.buffers { // unmapped
		for i := range b {
			b[i] = scribble
		}
	}
	d.f.closes++
	if d.f.closed != nil {
		d.f.closed()
	}
	if d.f.close != nil {
		return d.f.close()
	}
	return nil
}

// rig runs a V4L2 camera over a fake in a synctest bubble.
type rig struct {
	*fake
	t    *testing.T
	cam  *V4L2
	log  *syncLog
	stop func()
	done chan error
	mu   sync.Mutex
	seen []sight
}

// sight is a frame that was handed out.
type sight struct {
	w, h  int
	level byte
	age   time.Duration // since it was taken
	at    time.Time     // when it was handed out
}

// syncLog is a log that two goroutines may write and read.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines gives the lines that have a text.
func (l *syncLog) lines(with string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, with) {
			out = append(out, line)
		}
	}
	return out
}

func (l *syncLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// inBubble runs a test with a camera that stops at its end, and checks that then
// every device is closed.
func inBubble(t *testing.T, f *fake, o V4L2Options, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{fake: f, t: t, log: &syncLog{}, done: make(chan error, 1)}
		o.Device, o.Log = "/dev/video9", r.log.logger()
		var err error
		if r.cam, err = newV4L2(o, f.open); err != nil {
			t.Fatal(err)
		}
		var ctx context.Context
		ctx, r.stop = context.WithCancel(t.Context())
		go func() { r.done <- r.cam.Run(ctx, r.take) }()
		test(r)
		r.stop()
		if err := <-r.done; err != nil {
			t.Errorf("run: %v", err)
		}
		synctest.Wait()
		func() {
			defer f.lock()()
			if f.opens != f.closes {
				t.Errorf("opened %d times, closed %d times", f.opens, f.closes)
			}
		}()
	})
}

func (r *rig) take(f Frame) {
	for y := range f.H {
		for _, v := range f.Pix[y*f.Stride:][:f.W] {
			if v > f.Pix[0]+1 || v+1 < f.Pix[0] {
				r.t.Fatalf("a frame of %d and %d: the driver wrote into it", f.Pix[0], v)
			}
		}
	}
	r.mu.Lock()
	r.seen = append(r.seen, sight{w: f.W, h: f.H, level: f.Pix[0], age: time.Since(f.Captured), at: time.Now()})
	r.mu.Unlock()
	time.Sleep(r.fake.busy)
}

// sights gives what was seen since the last call.
func (r *rig) sights() []sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen
	r.seen = nil
	return s
}

// state checks the camera's State: nil where want is empty.
func (r *rig) state(want string) {
	r.t.Helper()
	synctest.Wait()
	err := r.cam.State()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		r.t.Errorf("state %v, want %q", err, want)
	}
}

func (r *rig) told(n int, what string) {
	r.t.Helper()
	if got := r.log.lines(what); len(got) != n {
		r.t.Errorf("%q was told %d times, want %d: %q", what, len(got), n, got)
	}
}

func contextOf(t *testing.T) (context.Context, func()) { return context.WithCancel(t.Context()) }

func gone() error { return fmt.Errorf("%w (%w)", errGone, syscall.ENODEV) }

var errIO = errors.New("input/output error")
