//go:build hil && linux

package reader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKernelScannerIsReadAndGrabbed(t *testing.T) {
	us := layouts()["us"]
	p := plugScanner(t)
	defer p.unplug()
	bystander, err := os.OpenFile(p.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer bystander.Close()
	r := p.run()
	until(t, "the scanner", func() bool { return r.State() == nil })
	for i := range 10 {
		p.reads(r, fmt.Sprintf("A1:%04d $%%*+-./:xyz", i))
	}
	if err := bystander.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := bystander.Read(make([]byte, 4096)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("another program read %d bytes of it: %v", n, err)
	}
	if _, err := openEvdev(p.path, us); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), `"Test Scanner"`) {
		t.Errorf("a second reader: %v", err)
	}
}

func TestKernelScannerUnpluggedAndBack(t *testing.T) {
	us := layouts()["us"]
	path := filepath.Join(t.TempDir(), "scanner-event-kbd") // as a link in /dev/input/by-id
	r := start(t, func(o LineOptions) (*Line, error) { return NewEvdev(EvdevOptions{Path: o.Path, Log: o.Log}) }, path)
	for range 5 {
		until(t, "the loss", func() bool { return r.State() != nil })
		p := plugScanner(t)
		if err := os.Symlink(p.path, path); err != nil {
			t.Fatal(err)
		}
		until(t, "the scanner", func() bool { return r.State() == nil })
		p.play(newHands().typed(t, us, "code").tap(keyEnter).set(42, 1).tap(35)) // unplugged with shift down
		if got := r.next(); got != "code" {
			t.Errorf("look %q", got)
		}
		p.unplug()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKernelMouseIsRefused(t *testing.T) {
	p := plug(t, "Test Mouse", true, row(0x110, 0x112))
	defer p.unplug()
	_, err := openEvdev(p.path, layouts()["us"])
	if want := `"Test Mouse" is no scanner that types: it has no letters, no digits, no Enter or Tab; it offers 3 buttons, movements, as a mouse, lights`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestKernelOverrun: nobody reads while codes come; the kernel says that it lost
// some. None that comes out is other than one that was typed, and after it all is
// well.
func TestKernelOverrun(t *testing.T) {
	us := layouts()["us"]
	p := plugScanner(t)
	defer p.unplug()
	src, err := openEvdev(p.path, us)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h := newHands()
	for range 200 {
		p.play(h.typed(t, us, "LongEnoughToBeCut").tap(keyEnter))
	}
	p.play(h.set(42, 1)) // shift stays down, and its press may be lost
	looks := drain(t, src)
	for _, l := range looks {
		if l != "LongEnoughToBeCut" && !strings.HasSuffix(l, "<cut>") {
			t.Errorf("look %q", l)
		}
	}
	if len(looks) >= 200 {
		t.Error("the queue did not overrun")
	}
	src.decoder.flush(time.Time{}, true, func(Look) {}) // a silence
	p.play(h.tap(30).set(42, 0).tap(30, keyEnter))
	if looks := drain(t, src); !slices.Equal(looks, []string{"Aa"}) {
		t.Errorf("after it %q", looks)
	}
}

// TestKernelKeepsScanCodes: only keys and reports take room in the queue.
func TestKernelKeepsScanCodes(t *testing.T) {
	p := plugScanner(t)
	defer p.unplug()
	src, err := openEvdev(p.path, layouts()["us"])
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	p.play(newHands().tap(30))
	if err := src.deadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, err := src.Read(make([]byte, 4096))
	if want := 4 * (2*wordBytes + 8); n != want || err != nil {
		t.Errorf("a key is %d bytes of events, want %d: %v", n, want, err)
	}
}

// drain reads what there is.
func drain(t *testing.T, src source) (looks []string) {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		if err := src.deadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := src.Read(buf)
		src.decoder.take(buf[:n], time.Now(), collect(&looks))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return looks
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestKernelCapitalsLightIsPutOut: a console lit it before the grab.
func TestKernelCapitalsLightIsPutOut(t *testing.T) {
	p := plugScanner(t)
	defer p.unplug()
	console, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	lit := func() bool {
		var leds []byte
		if err := control(console, func(fd int) (err error) { leds, err = fill(fd, eviocGLED, 4); return err }); err != nil {
			t.Fatal(err)
		}
		return hasBit(leds, ledCaps)
	}
	if _, err := console.Write(newHands().event(evLED, ledCaps, 1).event(evSyn, synReport, 0).b); err != nil {
		t.Fatal(err)
	}
	if !lit() {
		t.Fatal("the light cannot be lit")
	}
	src, err := openEvdev(p.path, layouts()["us"])
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if lit() {
		t.Error("the light is still on")
	}
}

// TestKernelScannerWithoutAnEnd: keys faster than they can be read, more than a
// code has. What there is of them is cut; after a silence a code is read.
func TestKernelScannerWithoutAnEnd(t *testing.T) {
	p := plugScanner(t)
	defer p.unplug()
	r := p.run()
	until(t, "the scanner", func() bool { return r.State() == nil })
	tick := time.NewTicker(scannerPace)
	defer tick.Stop()
	// Where the board stood still at the beginning, the kernel has lost that, and the
	// rest is passed over: then once more.
	for tries := 0; len(r.looks) == 0; tries++ {
		if tries == maxTries {
			t.Fatal("no look came")
		}
		for range MaxLine / 8 * 2 {
			p.play(newHands().tap(45, 45, 45, 45, 45, 45, 45, 45))
			<-tick.C
		}
		p.play(newHands().tap(keyEnter))
		<-time.After(2 * silence)
	}
	for len(r.looks) > 0 { // several parts, where it stood still in the middle
		if got := r.next(); !strings.HasSuffix(got, "x<cut>") {
			t.Errorf("a look of %d bytes that is not cut", len(got))
		}
	}
	p.reads(r, "code")
}

func TestKernelManyOpensLeaveNothing(t *testing.T) {
	us := layouts()["us"]
	p, mouse := plugScanner(t), plug(t, "Test Mouse", true, row(0x110, 0x112))
	defer p.unplug()
	defer mouse.unplug()
	before := openFiles(t)
	for range 50 { // the kernel takes its time over each grab
		src, err := openEvdev(p.path, us)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openEvdev(mouse.path, us); err == nil {
			t.Fatal("a mouse was opened")
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}
