package camera

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

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
