package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/alive/alivetest"
	"admitone/internal/config"
	"admitone/internal/wire"
)

// The real process in both roles that bring a broker: ready, fed, and silent of it
// in its log, with a connection to the broker and a request made for each proof.
func TestWatchdogIsFed(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "ledgerd")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seed, _, err := wire.NewDeviceKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ role, text, status string }{
		{"all", "", "STATUS=serves 127.0.0.1:"},
		{"broker", "enrolment = \"enrolment.toml\"", "STATUS=no uplink; gate list 0"},
	} {
		t.Run(c.role, func(t *testing.T) {
			dir, m := t.TempDir(), alivetest.Listen(t)
			err := config.WriteEnrolment(filepath.Join(dir, "enrolment.toml"), config.Enrolment{
				Seed: seed, Place: "Venue", Brokers: []string{"nats://127.0.0.1:1"},
				ProgrammeKey: hex.EncodeToString(make([]byte, 32)), Issued: time.Now().UTC(),
			})
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("role = %q\ndata_dir = \"data\"\n%s\n[http]\nlisten = \"127.0.0.1:0\"\n[nats]\nlisten = \"127.0.0.1:0\"\nplain_loopback = true\n", c.role, c.text)
			file := filepath.Join(dir, "ledgerd.toml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd, log := exec.Command(exe, "-config", file), &strings.Builder{}
			cmd.Env, cmd.Stderr = m.Env(2*time.Second), log
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
			m.Await(t, "READY=1")
			if !strings.HasPrefix("STATUS="+m.Status, c.status) {
				m.Await(t, c.status)
			}
			for range 10 {
				m.Await(t, "WATCHDOG=1")
			}
			cmd.Process.Signal(syscall.SIGTERM)
			m.Await(t, "STOPPING=1")
			if err := cmd.Wait(); err != nil {
				t.Errorf("a clean stop: %v", err)
			}
			if n := strings.Count(log.String(), "\n"); n > 8 {
				t.Errorf("%d lines in the log:\n%s", n, log.String())
			}
		})
	}
}
