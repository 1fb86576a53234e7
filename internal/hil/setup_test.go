//go:build hil

package hil

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"admitone/internal/hil/talk"
)

// gateUser is who the gate runs as, where it need not be root.
const gateUser = 990

// setup is what differs from one start of the gate to another.
type setup struct {
	turnstile string // its driver, as the configuration has it
	user      int
	pins      pins
	activeLow bool // of the relay
	pixels    string
	pulse     time.Duration
}

type pins struct{ relay, light, passage, emergency, staff int }

func (s setup) config() string {
	low := ""
	if s.activeLow {
		low = `"relay"`
	}
	return fmt.Sprintf(`enrolment = "/etc/gated/enrolment.toml"
data_dir = "/data"
run_dir = "/run/gated"
verdicts = %q
results = %q
max_size = "64MB"
rearm = "6s"

[[lane]]
passage_timeout = "60s"

[lane.turnstile]
%s
pulse = "%v"
max_on = "%v"
active_low = [%s]
pins = { relay = %d, light = %d, passage_in = %d, emergency = %d, staff = %d }

[lane.camera]
%s
dark_level = 30
`, verdicts, results, s.turnstile, s.pulse, maxOn, low,
		s.pins.relay, s.pins.light, s.pins.passage, s.pins.emergency, s.pins.staff, s.camera())
}

// camera is a child that shows a ticket twice only, or the virtual device.
func (s setup) camera() string {
	if s.pixels == "MJPG" {
		return fmt.Sprintf("driver = \"child\"\ncommand = [\"/init\", \"stream\", %q, \"2\"]", streamed)
	}
	return fmt.Sprintf("driver = \"v4l2\"\ndevice = %q\nformat = %q\nwidth = %d\nheight = %d", camera, s.pixels, width, height)
}

// maxOn is the longest time that the relay may be active.
const maxOn = 30 * time.Second

// level gives the level at which the relay is active, or is not.
func (s setup) level(active bool) (high bool) { return active != s.activeLow }

func (r *rig) configure(t *testing.T, s setup) {
	t.Helper()
	r.ask(t, talk.Request{Op: talk.Write, Path: gateConfig, Data: []byte(s.config()), Number: 0o644})
}

// start starts the gate and waits until it is at work.
func (r *rig) start(t *testing.T, s setup) (pid int) {
	t.Helper()
	r.configure(t, s)
	pid = r.ask(t, talk.Request{Op: talk.Start, Argv: []string{"/gated", "-config", gateConfig}, Path: gateLog, Number: s.user}).PID
	t.Cleanup(func() { // what a test that failed leaves behind
		ctx := context.WithoutCancel(t.Context())
		if _, err := r.Ask(ctx, talk.Request{Op: talk.Exit, PID: pid}); err != nil {
			_, _ = r.Ask(ctx, talk.Request{Op: talk.Signal, PIDs: []int{pid}, Number: int(syscall.SIGKILL)})
		}
		if t.Failed() {
			_, _ = r.Ask(ctx, talk.Request{Op: talk.Hide})
		}
	})
	r.await(t, gateLog, "gate starts")
	return pid
}

func (r *rig) signal(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	r.ask(t, talk.Request{Op: talk.Signal, PIDs: pids, Number: int(s)})
}

// stop ends the gate as a service manager does.
func (r *rig) stop(t *testing.T, pid int) {
	t.Helper()
	r.signal(t, syscall.SIGTERM, pid)
	if p := r.ask(t, talk.Request{Op: talk.Exit, PID: pid, Wait: patience}); p.Code != 0 {
		t.Errorf("the gate ends with %d", p.Code)
	}
}
