package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ticket"
)

// longPulse is so long that its own end explains nothing here.
const longPulse = 50 * time.Second

// The relay line of the real daemon, seen from outside: it is inactive at once when
// the daemon is killed, in time when it is stopped, and when its keeper is killed;
// each time the gate works afterwards. At the end the audit finds no activation
// without its cause.
func TestRelayOutlivesNobody(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 1, Lane: func(l *config.Lane) {
		l.Turnstile.Pulse, l.Turnstile.MaxOn = config.Duration(longPulse), config.Duration(longPulse)
		l.PassageTimeout = config.Duration(longPulse)
	}})
	s.must(s.Passage(t.Context(), "1", "never"))

	s.opened(func(pid int) { s.must(s.Kill("1")) })
	s.must(s.Start(t.Context(), "1"))
	s.must(s.AwaitOnline(t.Context(), 1))

	s.must(s.Passage(t.Context(), "1", "never"))
	s.opened(func(pid int) { s.must(syscall.Kill(pid, syscall.SIGSTOP)) })
	pid, err := s.PID("1")
	s.must(err)
	s.must(syscall.Kill(pid, syscall.SIGCONT))
	s.eventually("the gate to hear of it", func() bool { return strings.Contains(s.log("gate-1"), "the daemon was silent") })
	s.must(s.Passage(t.Context(), "1", "now"))
	s.idle(1)

	s.opened(func(pid int) { s.must(syscall.Kill(s.child(pid), syscall.SIGKILL)) })
	s.eventually("the lines to come back", func() bool { return strings.Contains(s.log("gate-1"), "in reach again") })
}

// opened has a ticket open the turnstile, does something to the daemon, and waits
// for the relay to become inactive, which must not take as long as the pulse.
func (s *stage) opened(then func(pid int)) {
	s.t.Helper()
	if v := s.show(1, s.one()); v.Verdict != ticket.Admit {
		s.t.Fatalf("%+v", v)
	}
	s.eventually("the relay to become active", func() bool { return s.open(1) }) // after the gap
	pid, err := s.PID("1")
	s.must(err)
	then(pid)
	s.eventually("the relay to become inactive", func() bool { return !s.open(1) })
	edges := s.relay(1)
	on, off := edges[len(edges)-2], edges[len(edges)-1]
	if d := time.Duration(off.MonoNS - on.MonoNS); d > longPulse/2 {
		s.t.Errorf("the relay was active for %v", d)
	}
}

// The emergency input holds the turnstile open until it is released, with a record
// of both, and the staff's button lets one person through, recorded before.
func TestEmergencyAndStaff(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 1})
	press := func(input string, active bool) {
		s.must(s.Gate(1).Sim(t.Context(), control.Sim{Input: input, Active: active}))
	}
	press(config.Emergency, true)
	s.eventually("the emergency to open", func() bool { return s.open(1) })
	if v := s.show(1, s.one()); v.Verdict != ticket.Admit { // it makes no difference to the relay
		t.Fatalf("%+v", v)
	}
	s.must(s.Passage(t.Context(), "1", "now"))
	s.idle(1)
	press(config.Emergency, false)
	s.eventually("the emergency's end to close", func() bool { return !s.open(1) })
	before := s.pulses(1)
	press(config.Staff, true)
	s.eventually("the staff's pulse", func() bool { return s.pulses(1) == before+1 && !s.open(1) })
	press(config.Staff, false)
	if s.pulses(1) != before+1 {
		t.Errorf("%d pulses for one press", s.pulses(1)-before)
	}
}

// child gives a process's only child: a gate's keeper.
func (s *stage) child(pid int) (child int) {
	s.t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	s.must(err)
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err == nil && len(text) > 0 {
			_, err = fmt.Sscan(string(text), &child)
			s.must(err)
		}
	}
	if child == 0 {
		s.t.Fatalf("process %d has no child", pid)
	}
	return child
}
