package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// Modes, and processes that are started wrongly.
func TestModesAndStarts(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 2}).play([]scene{
		{"closed", modeClosed},
		{"free", modeFree},
		{"test", modeTest},
		{"a second process", secondProcess},
		{"wrong configuration", wrongConfiguration},
		{"signals", signals},
	})
}

func (s *stage) mode(k int, m ticket.GateMode) {
	s.t.Helper()
	s.must(s.Mode(s.t.Context(), strconv.Itoa(k), string(m)))
}

// restart kills gate k and has it back online.
func (s *stage) restart(k int) {
	s.t.Helper()
	name := strconv.Itoa(k)
	s.must(s.Kill(name))
	s.must(s.Start(s.t.Context(), name))
	s.must(s.AwaitOnline(s.t.Context(), k))
}

func modeClosed(s *stage) {
	p := s.one()
	s.mode(1, ticket.ModeClosed)
	for range 2 {
		if v := s.show(1, p); v.Reason != ticket.Closed || v.GateMode != ticket.ModeClosed || v.Claim != "" {
			s.t.Errorf("a closed gate: %+v", v)
		}
		s.restart(1)
	}
	s.mode(1, ticket.ModeNormal)
	s.admit(1, p)
}

// modeFree: everybody passes, what passes is spent, and nothing conflicts.
func modeFree(s *stage) {
	used, fresh, elsewhere := s.one(), s.one(), s.one()
	s.admit(1, used)
	s.pause(rearm)
	s.mode(1, ticket.ModeFree)
	on := func() bool { return s.open(1) }
	s.eventually("an open turnstile", on)
	for _, p := range []pass{used, fresh} {
		if v := s.show(1, p); v.Verdict != ticket.Admit || v.GateMode != ticket.ModeFree {
			s.t.Errorf("mode free: %+v", v)
		}
	}
	before := len(s.verdicts(1))
	s.look(1, "no ticket at all")
	s.restart(1)
	if m := s.status(1).Mode; m != ticket.ModeFree {
		s.t.Errorf("after a restart the mode is %s", m)
	}
	s.eventually("an open turnstile after the restart", on)
	s.show(1, elsewhere)
	s.admit(2, s.one())
	s.mode(1, ticket.ModeNormal)
	s.eventually("a shut turnstile", func() bool { return !on() })
	s.refuse(2, fresh, "1")
	s.refuse(2, elsewhere, "1")
	s.refuse(1, used, "1")
	for _, v := range s.verdicts(1)[before:] {
		if v.Verdict == ticket.Refuse && v.GateMode == ticket.ModeFree {
			s.t.Errorf("refused in mode free: %+v", v)
		}
	}
	for _, p := range []pass{used, fresh, elsewhere} {
		if c := s.conflictsOf(p); len(c) != 0 {
			s.t.Errorf("a conflict from mode free: %+v", c)
		}
	}
}

// modeTest: a test ticket works the turnstile, a sold one shows what it would get.
func modeTest(s *stage) {
	trial, sold := s.mint(1, func(t *ticket.Ticket) { t.Test = true })[0], s.one()
	s.mode(1, ticket.ModeTest)
	pulses := s.pulses(1)
	if v := s.show(1, trial); v.Verdict != ticket.Admit || v.Claim != "" {
		s.t.Errorf("a test ticket in mode test: %+v", v)
	}
	s.eventually("its pulse", func() bool { return s.pulses(1) == pulses+1 })
	if v := s.show(1, sold); v.Verdict != ticket.Admit || v.Claim != "" || v.GateMode != ticket.ModeTest {
		s.t.Errorf("a sold ticket in mode test: %+v", v)
	}
	s.restart(1)
	if m := s.status(1).Mode; m != ticket.ModeNormal {
		s.t.Errorf("mode test survived a restart: %s", m)
	}
	if n := s.pulses(1) - pulses; n != 1 {
		s.t.Errorf("%d pulses, want the test ticket's", n)
	}
	if v := s.show(1, trial); v.Reason != ticket.TestTicket {
		s.t.Errorf("a test ticket outside mode test: %+v", v)
	}
	s.admit(1, sold)
}

// start runs a program and gives its exit code and what it wrote.
func (s *stage) start(within time.Duration, program string, args ...string) (code int, out string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		s.t.Fatalf("%s %v: %v after %v\n%s", program, args, err, within, b.String())
	}
	return cmd.ProcessState.ExitCode(), b.String()
}

// secondProcess: who comes second says who was first, and touches nothing.
func secondProcess(s *stage) {
	for name, file := range map[string]string{"1": s.at.gate(1, "gated.toml"), "ledger": s.at.path("ledger", "ledgerd.toml")} {
		pid, err := s.PID(name)
		s.must(err)
		s.eventually("a shut turnstile", func() bool { return !s.open(1) })
		edges := len(s.relay(1))
		// 1 s for the lock, as the store has it, and some for starting at all.
		code, out := s.start(10*time.Second, strings.TrimSuffix(filepath.Base(file), ".toml"), "-config", file)
		if code != 1 || !strings.Contains(out, strconv.Itoa(pid)) {
			s.t.Errorf("a second process on the store of %s (pid %d): exit %d\n%s", name, pid, code, out)
		}
		if now, err := s.PID(name); err != nil || now != pid || len(s.relay(1)) != edges {
			s.t.Errorf("the second process disturbed the first: pid %d, then %d", pid, now)
		}
	}
	s.admit(1, s.one())
}

// wrongConfiguration: every problem at once, with its key and what would be right.
func wrongConfiguration(s *stage) {
	good, err := os.ReadFile(s.at.gate(1, "gated.toml"))
	s.must(err)
	dir := s.t.TempDir()
	for file, c := range map[string]struct {
		program, text string
		want          []string
	}{
		"gated.toml": {"gated", "ledger_patience = \"soon\"\noffline = \"maybe\"\ncolour = \"red\"\n" + string(good),
			[]string{"ledger_patience", "offline", "admit", "colour"}},
		"ledgerd.toml": {"ledgerd", "role = \"boss\"\n[http]\nlisten = 80\n", []string{"role", "broker", "http.listen"}},
	} {
		path := filepath.Join(dir, file)
		s.must(os.WriteFile(path, []byte(c.text), 0o600))
		for _, args := range [][]string{{"-config", path, "-check-config"}, {"-config", path}} {
			code, out := s.start(10*time.Second, c.program, args...)
			if code != 1 {
				s.t.Errorf("%s %v: exit %d\n%s", c.program, args, code, out)
			}
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					s.t.Errorf("%s %v says nothing of %q:\n%s", c.program, args, w, out)
				}
			}
		}
	}
	if code, out := s.start(10*time.Second, "gated", "-config", s.at.gate(1, "gated.toml"), "-check-config"); code != 0 {
		s.t.Errorf("a good configuration: exit %d\n%s", code, out)
	}
}

// signals: a stop is quick and clean, and what comes after knows everything.
func signals(s *stage) {
	p := s.one()
	s.must(s.Passage(s.t.Context(), "1", "never"))
	if v := s.show(1, p); v.Verdict != ticket.Admit {
		s.t.Fatalf("%+v", v)
	}
	s.must(s.Stop("1")) // with the relay active and nobody through yet
	if s.open(1) {
		s.t.Error("the relay is active after a stop")
	}
	s.must(s.Start(s.t.Context(), "1"))
	s.must(s.AwaitOnline(s.t.Context(), 1))
	if e := s.ended(1, p); len(e) != 1 || e[0] != ticket.Presumed {
		s.t.Errorf("a claim that had fired ended %v", e)
	}
	s.refuse(1, p, "1")
	s.refuse(2, p, "1")
}
