package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/hardware/turnstile"
	"admitone/internal/config"
)

// off runs relay-off over a configuration and gives its exit code and words.
func runOff(t *testing.T, toml string) (code int, said string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("gated.toml", []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	code = relayOff([]string{"-config", "gated.toml"}, environment{stdout: &out, stderr: &out})
	return code, out.String()
}

// TestRelayOff: a relay that was left active is inactive after it, although the
// configuration has a problem that keeps the daemon from starting.
func TestRelayOff(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "turnstile.jsonl")
	left := `{"mono_ns":1,"line":"relay","active":true}` + "\n"
	if err := os.WriteFile(trace, []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	lane := "[[lane]]\n[lane.turnstile]\ndriver = \"sim\"\nfile = \"" + trace + "\"\n[[lane.reader]]\npath = \"line\"\n"
	code, said := runOff(t, lane)
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); code != 0 || n != 2 || !strings.HasSuffix(string(text), `"line":"relay","active":false}`+"\n") {
		t.Errorf("exit %d, said %q, trace %s", code, said, text)
	}
	if !strings.Contains(said, "enrolment: missing") || !strings.Contains(said, "lane 1: every output is inactive") {
		t.Errorf("said %q", said)
	}
}

// TestRelayOffFailsNoUnit: whatever cannot be done, it is told with exit code 0.
func TestRelayOffFailsNoUnit(t *testing.T) {
	for toml, want := range map[string]string{
		"this is no configuration": "line 1",
		"[[lane]]\n[lane.turnstile]\ndriver = \"gpiochip\"\nchip = \"none\"\npins = { relay = 17 }\n":       `find GPIO chip "none"`,
		"[[lane]]\n[lane.turnstile]\ndriver = \"gpiochip\"\nchip = \"none\"\npins = { rely = 17 }\n":        `parse line: "rely"`,
		"[[lane]]\n[lane.turnstile]\ndriver = \"sim\"\nfile = \"/nonexistent/turnstile.jsonl\"\n":           "no such file",
		"[[lane]]\n[lane.turnstile]\ndriver = \"steam\"\n[[lane]]\n[lane.turnstile]\ndriver = \"electric\"": `there is no driver "electric"`,
	} {
		if code, said := runOff(t, toml); code != 0 || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, said %q, want %q", toml, code, said, want)
		}
	}
	if code := relayOff([]string{"now"}, environment{stderr: &strings.Builder{}}); code != 2 {
		t.Errorf("exit %d for a wrong command line", code)
	}
}

// TestWiring: everything that the configuration says of lines reaches the driver.
func TestWiring(t *testing.T) {
	c := config.Turnstile{
		Driver: config.DriverRPIO, AllowDevMem: true, ActiveLow: []string{"relay", "staff"}, Debounce: config.Duration(5 * time.Millisecond),
		Pins: map[string]int{"relay": 17, "staff": 26}, Pull: map[string]string{"staff": "up"},
	}
	w, err := wiring(c)
	if err != nil {
		t.Fatal(err)
	}
	if w.Driver != turnstile.DriverRPIO || !w.AllowDevMem || w.Debounce != 5*time.Millisecond || len(w.ActiveLow) != 2 ||
		!maps.Equal(w.Pins, map[turnstile.Line]int{turnstile.LineRelay: 17, turnstile.LineStaff: 26}) ||
		w.Pull[turnstile.LineStaff] != turnstile.PullUp {
		t.Errorf("wired as %+v", w)
	}
	if d := debounce(c); d != 5*time.Millisecond {
		t.Errorf("debounced for %v", d)
	}
	if c.Driver = config.DriverGPIOChip; debounce(c) >= 0 {
		t.Error("debounced twice: by the kernel and again")
	}
	if _, err := wiring(config.Turnstile{Driver: "sim", Inputs: []string{"door"}}); err == nil {
		t.Error("an unknown input")
	}
}

func TestKeeperTakesNoArguments(t *testing.T) {
	if code := keeper([]string{"-h"}, environment{stderr: &strings.Builder{}}); code != 2 {
		t.Errorf("exit %d", code)
	}
}
