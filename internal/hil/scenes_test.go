//go:build hil

package hil

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/hil/talk"
	"admitone/internal/ticket"
)

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
	defer press(s.pins.emergency, false) // also where the test fails: the next begins without
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
	r.signal(t, syscall.SIGKILL, pid)
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
	r.signal(t, syscall.SIGSTOP, pid)
	off := r.edge(t, alive, s, false)
	t.Logf("inactive %v after SIGSTOP", off.At.Sub(at).Round(time.Millisecond))
	if off.At.Sub(at) > deathLimit {
		t.Errorf("the relay was active for %v after SIGSTOP", off.At.Sub(at))
	}
	r.show(t, s.pixels, hall)
	r.signal(t, syscall.SIGCONT, pid)
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
	r.signal(t, syscall.SIGKILL, keepers[0].PID, pid) // at once: the gate would start another
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

// inUse has another process ask for the lines of a gate: it is told who has them,
// and the gate does not notice.
func (r *rig) inUse(t *testing.T, s setup) {
	then := r.now(t, s)
	pid := r.start(t, s)
	r.await(t, gateLog, "lines are open")
	p := r.ask(t, talk.Request{Op: talk.Run, Argv: []string{"/gated", "relay-off", "-config", gateConfig}, Number: s.user, Wait: patience})
	if want := `pin 0 (relay) is in use by "gated relay": end that, or name another pin`; !strings.Contains(string(p.Data), want) {
		t.Errorf("it says %q, want %q", p.Data, want)
	}
	r.play(t, s.pixels)
	tk := r.admission(t, s)
	r.await(t, results, tk.ID.String(), `"admitted"`)
	r.stop(t, pid)
	r.hide(t, s.pixels)
	r.history(t, then, s, true, false)
}
