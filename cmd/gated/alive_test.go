package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"admitone/hardware/camera"
	"admitone/internal/alive/alivetest"
	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// Limits as in systemd/gated.service, ten times faster.
const testWatchdog = 2 * time.Second

// box is a configured gate in a folder, whose broker is not there.
type box struct{ dir, config, socket string }

func newBox(t testing.TB) box {
	t.Helper()
	dir := t.TempDir()
	run, err := os.MkdirTemp("", "gated")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	seed, _, err := wire.NewDeviceKey()
	if err != nil {
		t.Fatal(err)
	}
	err = config.WriteEnrolment(filepath.Join(dir, "enrolment.toml"), config.Enrolment{
		Seed: seed, Place: "North 2", Brokers: []string{"nats://127.0.0.1:1"},
		ProgrammeKey: hex.EncodeToString(make([]byte, 32)), Issued: time.Now().UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "line"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := box{dir: dir, config: filepath.Join(dir, "gated.toml"), socket: filepath.Join(run, "control.sock")}
	text := fmt.Sprintf(`
enrolment = "enrolment.toml"
data_dir = "data"
run_dir = %q
[[lane]]
turnstile = { driver = "sim", file = "turnstile.jsonl" }
reader = [{ path = "line" }]
`, run)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// start runs the real binary, under a manager or without one.
func (b box) start(t testing.TB, exe string, m *alivetest.Manager) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(exe, "-config", b.config)
	if m != nil {
		cmd.Env = m.Env(testWatchdog)
	}
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return cmd
}

func build(t testing.TB) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "gated")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// The real daemon: without network, ledger or time it is ready once it can work,
// says how it stands, and is fed. Stopped, or with a card that does not come back
// from a flush, it is not fed; it is again when it goes on.
func TestWatchdogIsFedByWorkOnly(t *testing.T) {
	b, m := newBox(t), alivetest.Listen(t)
	cmd := b.start(t, build(t), m)
	m.Await(t, "READY=1")
	m.Await(t, "STATUS=no programme; North 2, mode normal, link alone")
	for range 3 {
		m.Await(t, "WATCHDOG=1")
	}

	t.Run("a stopped process", func(t *testing.T) {
		cmd.Process.Signal(syscall.SIGSTOP)
		for m.Next(t, 10*time.Millisecond) != nil { // what was under way
		}
		if heard := m.Next(t, testWatchdog); heard != nil {
			t.Errorf("it says %q", heard)
		}
		cmd.Process.Signal(syscall.SIGCONT)
		m.Await(t, "WATCHDOG=1")
	})

	t.Run("a card that hangs", func(t *testing.T) {
		slow := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync",
			"-e", "inject=fdatasync:delay_enter=4000000:when=1", "-p", fmt.Sprint(cmd.Process.Pid))
		if err := slow.Start(); err != nil {
			t.Fatalf("%v: install strace", err)
		}
		defer func() { slow.Process.Signal(os.Interrupt); slow.Wait() }()
		awaitTraced(t, cmd.Process.Pid)
		told := make(chan error, 1)
		go func() {
			told <- control.NewClient(b.socket).SetMode(context.Background(), ticket.ModeClosed, "a test")
		}()
		m.Await(t, "STATUS=the gate's loop stands still")
		fed := len(m.Fed)
		m.Await(t, "STATUS=no programme; North 2, mode closed")
		if gap := m.Fed[fed].Sub(m.Fed[fed-1]); gap < testWatchdog {
			t.Errorf("never silent for longer than %v: the manager would not have ended it", gap)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
	})

	cmd.Process.Signal(syscall.SIGTERM)
	m.Await(t, "STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("a clean stop: %v", err)
	}
}

// awaitTraced returns once a tracer holds every thread of a process.
func awaitTraced(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("no process %d: %v", pid, err)
		}
		free := 0
		for _, task := range tasks {
			if s, err := os.ReadFile(task); err == nil && strings.Contains(string(s), "TracerPid:\t0\n") {
				free++
			}
		}
		if free == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal("strace does not attach")
}

// A camera that is lost ends nothing: the reader of frames stands still only
// where it does not come back from one.
func TestFramesProveTheReaderNotTheCamera(t *testing.T) {
	f := newFrames()
	look := counted(f, func(camera.Frame) {})
	check := func(want bool, when string) {
		t.Helper()
		if err := f.check(t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	check(true, "before the first frame")
	look(camera.Frame{})
	check(true, "after a frame")
	check(true, "no further frame")
	inside, out := make(chan struct{}), make(chan struct{})
	go counted(f, func(camera.Frame) { close(inside); <-out })(camera.Frame{})
	<-inside
	check(false, "a frame that is not given back")
	close(out)
	for range 100 {
		if f.check(t.Context()) == nil {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	check(true, "given back")
	func() {
		defer func() { _ = recover() }()
		counted(f, func(camera.Frame) { panic("broken frame") })(camera.Frame{})
	}()
	check(true, "a frame that panicked")
	check(true, "and nothing after it")
	f.made = f.made.Add(-time.Hour)
	if !f.lost() {
		t.Error("no frame for an hour is no lost camera")
	}
	look(camera.Frame{})
	if f.lost() {
		t.Error("a frame came, and the camera is lost")
	}
}
