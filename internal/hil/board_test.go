//go:build hil

package hil

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"admitone/internal/hil/talk"
)

// virtPins leaves line 3 alone, which is the machine's power button.
func virtPins() pins { return pins{relay: 0, light: 2, passage: 1, emergency: 4, staff: 5} }

// TestVirt: the kernel's GPIO character device on a chip with interrupts.
func TestVirt(t *testing.T) {
	r := boot(t, Virt(), readers, cameras)
	s := setup{turnstile: `driver = "gpiochip"` + "\n" + `chip = "` + r.Board.Chip + `"`, user: gateUser, pins: virtPins(), pixels: "GREY", pulse: time.Second}
	t.Run("YUYV", func(t *testing.T) {
		s := s
		s.pixels = "YUYV"
		r.admits(t, s)
	})
	t.Run("GREY", func(t *testing.T) { r.admits(t, s) })
	t.Run("motion JPEG of a child", func(t *testing.T) {
		if offers := r.ask(t, talk.Request{Op: talk.Formats, Path: camera}).Words; slices.Contains(offers, "MJPG") || !slices.Contains(offers, "YUYV") {
			t.Errorf("the virtual camera offers %q: with motion JPEG among it, that is to be tried, too", offers)
		}
		s := s
		s.pixels = "MJPG"
		r.admits(t, s)
	})
	t.Run("active low", func(t *testing.T) {
		s := s
		s.activeLow = true
		r.admits(t, s)
	})
	t.Run("light in the dark", func(t *testing.T) { r.lights(t, s) })
	t.Run("staff and emergency", func(t *testing.T) { r.staffAndEmergency(t, s) })
	t.Run("camera back", func(t *testing.T) { r.cameraBack(t, s) })
	t.Run("killed", func(t *testing.T) {
		r.killed(t, s)
		s := s
		s.activeLow = true
		r.killed(t, s)
	})
	t.Run("stopped", func(t *testing.T) { r.stopped(t, s) })
	t.Run("both killed", func(t *testing.T) { r.bothKilled(t, s) })
	t.Run("typing scanners", func(t *testing.T) { r.kernelTests(t, readers) })
	t.Run("cameras", func(t *testing.T) { r.kernelTests(t, cameras) })
	t.Run("doctor", func(t *testing.T) {
		r.doctor(t, s, "turnstile of lane 1", "driver gpiochip, "+r.Board.Chip)
		r.doctor(t, s, "camera of lane 1", "vivid (vivid, platform:vivid-000): GREY 1280x720 at 24/s")
	})
	t.Run("wrong pin", func(t *testing.T) {
		s := s
		s.pins.light = 8
		r.refuses(t, s, "pin 8 (light) is not on chip "+r.Board.Chip+": it has 0 to 7")
	})
	t.Run("wrong chip", func(t *testing.T) {
		s := s
		s.turnstile = `driver = "gpiochip"` + "\n" + `chip = "pinctrl-bcm2711"`
		r.refuses(t, s, `find GPIO chip \"pinctrl-bcm2711\": the chips here are `+r.Board.Chip)
	})
	t.Run("pin in use", func(t *testing.T) { r.inUse(t, s) })
	t.Run("rpio refuses", func(t *testing.T) {
		s := s
		s.turnstile = `driver = "rpio"` + "\nallow_dev_mem = true"
		r.refuses(t, s, "driver rpio is for Raspberry Pi 0 to 4", "this board is linux,dummy-virt", `use driver \"gpiochip\"`)
	})
}

// TestPi: the registers of a Raspberry Pi 3B.
func TestPi(t *testing.T) {
	r := boot(t, Pi3())
	s := setup{turnstile: `driver = "rpio"` + "\nallow_dev_mem = true", pins: pins{relay: 17, light: 25, passage: 5, emergency: 16, staff: 26}, pixels: "GREY", pulse: time.Second}
	t.Run("admits", func(t *testing.T) { r.admits(t, s) })
	t.Run("active low", func(t *testing.T) {
		s := s
		s.activeLow = true
		r.admits(t, s)
	})
	t.Run("staff and emergency", func(t *testing.T) { r.staffAndEmergency(t, s) })
	t.Run("level before direction", func(t *testing.T) { r.levelFirst(t, s) })
	t.Run("killed", func(t *testing.T) {
		r.killed(t, s)
		s := s
		s.activeLow = true
		r.killed(t, s)
	})
	t.Run("stopped", func(t *testing.T) { r.stopped(t, s) })
	t.Run("both killed", func(t *testing.T) { r.bothKilled(t, s) })
	t.Run("doctor", func(t *testing.T) { r.doctor(t, s, "turnstile of lane 1", "driver rpio on bcm2837, by /dev/mem") })
}

// doctor has the box examined, and looks for what is found well.
func (r *rig) doctor(t *testing.T, s setup, about, found string) {
	t.Helper()
	r.configure(t, s)
	p := r.ask(t, talk.Request{Op: talk.Run, Argv: []string{"/gated", "doctor", "-config", gateConfig}, Number: s.user, Wait: patience})
	for line := range strings.Lines(string(p.Data)) {
		level, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what, ok := strings.CutPrefix(strings.TrimSpace(rest), about+" "); level == "ok" && ok && strings.Contains(what, found) {
			return
		}
	}
	t.Errorf("the doctor does not say that %s is well, %q, but:\n%s", about, found, p.Data)
}

// levelFirst has the gate take pins whose latch holds the active level, but whose
// pull is the idle one: that is what they show, before and after.
func (r *rig) levelFirst(t *testing.T, s setup) {
	for _, s.activeLow = range []bool{false, true} {
		if s.pins.relay = 22; s.activeLow {
			s.pins.relay = 6 // has a pull-up
		}
		if err := r.Drive(s.pins.relay, s.level(true)); err != nil {
			t.Fatal(err)
		}
		then := r.now(t, s)
		then.high = s.level(false)
		pid := r.start(t, s)
		r.idle(t, s)
		r.stop(t, pid)
		r.history(t, then, s)
	}
}

// TestVirt32: the structures of a 32-bit kernel.
func TestVirt32(t *testing.T) {
	r := boot(t, Virt32(), readers, cameras)
	s := setup{turnstile: `driver = "gpiochip"` + "\n" + `chip = "` + r.Board.Chip + `"`, user: gateUser, pins: virtPins(), pixels: "YUYV", pulse: time.Second}
	t.Run("admits", func(t *testing.T) { r.admits(t, s) })
	t.Run("typing scanners", func(t *testing.T) { r.kernelTests(t, readers) })
	t.Run("cameras", func(t *testing.T) { r.kernelTests(t, cameras) })
}

// Packages that have tests for such a kernel: with keyboards that they play to it,
// and with its virtual camera.
const (
	readers = "admitone/hardware/reader"
	cameras = "admitone/hardware/camera"
)

// kernelTests runs those tests of a package that need this kernel: each must pass,
// and none may be skipped.
func (r *rig) kernelTests(t *testing.T, pkg string) {
	test := func(args ...string) string {
		p := r.ask(t, talk.Request{Op: talk.Run, Argv: append([]string{"/" + path.Base(pkg) + ".test"}, args...), Wait: 2 * patience})
		if p.Code != 0 {
			t.Errorf("%v ends with %d:\n%s", args, p.Code, p.Data)
		}
		return string(p.Data)
	}
	names := strings.Fields(test("-test.list", "^TestKernel"))
	if len(names) == 0 {
		t.Error("there are none")
	}
	out := test("-test.v", "-test.run", "^TestKernel")
	for _, n := range names {
		if !strings.Contains(out, "--- PASS: "+n+" ") {
			t.Errorf("%s did not pass:\n%s", n, out)
		}
	}
}
