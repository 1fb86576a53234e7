//go:build hil

package hil

import (
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/hil/talk"
	"admitone/internal/ticket"
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

// admits runs a gate from its start to its end, with one admission between: from
// the picture to the relay, and from the passage to the store. Opening gives the
// edges that the relay has when the gate takes its line for the first time.
func (r *rig) admits(t *testing.T, s setup) {
	then := r.now(t, s)
	pid := r.start(t, s)
	r.play(t, s.pixels)
	r.await(t, gateLog, "camera works", map[string]string{
		"GREY": "GREY 1280x720 at 24/s", "YUYV": "YUYV 1280x720 at 24/s", "MJPG": "motion JPEG"}[s.pixels])
	r.idle(t, s)
	tk := r.admission(t, s)
	r.await(t, results, tk.ID.String(), `"admitted"`)
	r.idle(t, s)
	r.stop(t, pid)
	r.hide(t, s.pixels)
	r.idle(t, s)
	// A stop and a start are silent, and so is a start that comes to nothing.
	r.stop(t, r.start(t, s))
	r.history(t, then, s, true, false)
	r.claimed(t, tk, ticket.Admitted)
}

// admission shows a new ticket, sees the relay become active, and lets a person
// through.
func (r *rig) admission(t *testing.T, s setup) card {
	t.Helper()
	then := r.now(t, s)
	tk := r.card(t)
	r.show(t, s.pixels, tk.path)
	v := r.verdict(t, tk)
	if v.Verdict != ticket.Admit || v.Reason != ticket.OK {
		t.Fatalf("verdict %+v", v)
	}
	t.Logf("verdict %v after the frame's capture", v.Took)
	r.edge(t, then, s, true)
	r.pass(t, s)
	return tk
}

// pass gives the passage input what a contact there gives it.
func (r *rig) pass(t *testing.T, s setup) {
	t.Helper()
	for _, high := range []bool{true, false} {
		if err := r.Drive(s.pins.passage, high); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// lights makes it night.
func (r *rig) lights(t *testing.T, s setup) {
	pid := r.start(t, s)
	r.play(t, s.pixels)
	r.idle(t, s)
	lamp := s
	lamp.pins.relay = s.pins.light
	then := r.now(t, lamp)
	r.show(t, s.pixels, night)
	r.edge(t, then, lamp, true)
	r.stop(t, pid)
	r.hide(t, s.pixels)
	r.history(t, then, lamp, true, false)
}

// staffAndEmergency presses the staff's button, and holds the emergency input.
func (r *rig) staffAndEmergency(t *testing.T, s setup) {
	then := r.now(t, s)
	pid := r.start(t, s)
	r.await(t, gateLog, "lines are open")
	press := func(line int, high bool) {
		t.Helper()
		if err := r.Drive(line, high); err != nil {
			t.Fatal(err)
		}
	}
	press(s.pins.staff, true)
	r.edge(t, then, s, true)
	r.idle(t, s)
	press(s.pins.staff, false)
	pressed := r.now(t, s)
	press(s.pins.emergency, true)
	on := r.edge(t, pressed, s, true)
	for held := time.Now(); time.Since(held) < 3*s.pulse; time.Sleep(s.pulse / 10) {
		if high, err := r.Level(s.pins.relay); err != nil || high != s.level(true) {
			t.Fatalf("the relay is not active while the emergency input is: %v", err)
		}
	}
	press(s.pins.emergency, false)
	off := r.edge(t, pressed, s, false)
	t.Logf("active for %v of an emergency", off.At.Sub(on.At).Round(time.Millisecond))
	r.stop(t, pid)
	r.history(t, then, s, true, false, true, false)
}

// cameraBack pulls the camera out and plugs it in again.
func (r *rig) cameraBack(t *testing.T, s setup) {
	then := r.now(t, s)
	pid := r.start(t, s)
	r.play(t, s.pixels)
	tk := r.admission(t, s)
	r.await(t, results, tk.ID.String(), `"admitted"`)
	files := r.process(t, pid).Files
	for range 2 {
		r.ask(t, talk.Request{Op: talk.Control, Path: camera, Words: []string{"Disconnect"}, Number: 1})
		r.await(t, gateLog, "camera lost")
		r.hide(t, s.pixels) // the last to close it: it is plugged in again
		r.play(t, s.pixels)
		tk := r.admission(t, s)
		r.await(t, results, tk.ID.String(), `"admitted"`)
		r.await(t, gateLog, "camera works again")
	}
	if n := r.process(t, pid).Files; n != files {
		t.Errorf("the gate has %d files open, before the camera was lost %d", n, files)
	}
	r.stop(t, pid)
	r.hide(t, s.pixels)
	r.history(t, then, s, true, false, true, false, true, false)
}

// deathLimit is how soon the relay must be inactive when nobody is there any more
// to end the pulse: well before the pulse would have ended.
const (
	deathLimit = 5 * time.Second
	longPulse  = 25 * time.Second
)

// midPulse starts a gate and has it open the turnstile for long.
func (r *rig) midPulse(t *testing.T, s setup) (pid int, then since) {
	t.Helper()
	s.pulse = longPulse
	then = r.now(t, s)
	pid = r.start(t, s)
	r.play(t, s.pixels)
	r.show(t, s.pixels, r.card(t).path)
	r.edge(t, then, s, true)
	return pid, then
}

// killed kills the gate in the middle of a pulse.
func (r *rig) killed(t *testing.T, s setup) {
	pid, then := r.midPulse(t, s)
	at, alive := time.Now(), r.now(t, s)
	r.signal(t, pid, syscall.SIGKILL)
	off := r.edge(t, alive, s, false)
	t.Logf("inactive %v after SIGKILL", off.At.Sub(at).Round(time.Millisecond))
	if off.At.Sub(at) > deathLimit {
		t.Errorf("the relay was active for %v after SIGKILL", off.At.Sub(at))
	}
	r.hide(t, s.pixels)
	r.stop(t, r.start(t, s))
	r.history(t, then, s, true, false)
}

// stopped stops the gate in the middle of a pulse, and lets it go on.
func (r *rig) stopped(t *testing.T, s setup) {
	pid, then := r.midPulse(t, s)
	at, alive := time.Now(), r.now(t, s)
	r.signal(t, pid, syscall.SIGSTOP)
	off := r.edge(t, alive, s, false)
	t.Logf("inactive %v after SIGSTOP", off.At.Sub(at).Round(time.Millisecond))
	if off.At.Sub(at) > deathLimit {
		t.Errorf("the relay was active for %v after SIGSTOP", off.At.Sub(at))
	}
	r.show(t, s.pixels, hall)
	r.signal(t, pid, syscall.SIGCONT)
	r.pass(t, s)
	tk := r.admission(t, s)
	r.await(t, results, tk.ID.String(), `"admitted"`)
	r.stop(t, pid)
	r.hide(t, s.pixels)
	r.history(t, then, s, true, false, true, false)
}

// bothKilled kills the gate and the keeper of its lines in the middle of a pulse.
// Neither registers nor a PL061 let go of a line whose holder is gone: what the
// unit runs then makes the relay inactive.
func (r *rig) bothKilled(t *testing.T, s setup) {
	pid, then := r.midPulse(t, s)
	keepers := r.keepers(t)
	if len(keepers) != 1 {
		t.Fatalf("keepers: %v", keepers)
	}
	alive := r.now(t, s)
	r.signal(t, pid, syscall.SIGSTOP) // it would start another
	r.signal(t, keepers[0].PID, syscall.SIGKILL)
	r.signal(t, pid, syscall.SIGKILL)
	r.ask(t, talk.Request{Op: talk.Exit, PID: pid, Wait: patience})
	if high, err := r.Level(s.pins.relay); err != nil || high != s.level(true) {
		t.Errorf("the relay is not active any more, %v: this board has no need of relay-off", err)
	}
	p := r.ask(t, talk.Request{Op: talk.Run, Argv: []string{"/gated", "relay-off", "-config", gateConfig}, Number: s.user, Wait: patience})
	if p.Code != 0 {
		t.Errorf("relay-off ends with %d: %s", p.Code, p.Data)
	}
	r.edge(t, alive, s, false)
	r.idle(t, s)
	r.hide(t, s.pixels)
	r.history(t, then, s, true, false)
}

// refuses starts a gate whose driver cannot work here: it says why.
func (r *rig) refuses(t *testing.T, s setup, words ...string) {
	then := r.now(t, s)
	pid := r.start(t, s)
	t.Log(r.await(t, gateLog, words...))
	r.stop(t, pid)
	r.history(t, then, s)
}
