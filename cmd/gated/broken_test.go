package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/internal/alive/alivetest"
	"admitone/internal/config"
	"admitone/internal/control"
)

// The real daemon with nothing but broken hardware, and one scanner that works: it
// says of each what it is and what to do, and reads on. A megabyte without an end
// costs no more than itself.
func TestBrokenHardwareIsToldAndTheRestWorks(t *testing.T) {
	b := newBox(t)
	turnstile := `{ driver = "gpiochip", chip = "pinctrl-none", pins = { relay = 17 } }`
	b = b.replacing(t, `{ driver = "sim", file = "turnstile.jsonl" }`, turnstile)
	b = b.with(t, []config.Reader{
		{Driver: "evdev", Path: "/dev/input/by-id/none-event-kbd"},
		{Driver: "evdev", Path: "/dev/zero"},
		{Driver: "serial", Path: "/dev/full"},
	}).seeing(t, `camera = { driver = "v4l2", device = "/dev/v4l/by-id/none-video-index0" }`)
	m := alivetest.Listen(t)
	b.start(t, build(t), m)
	m.Await(t, "READY=1")
	want := map[string]string{
		"lane 1: turnstile":         `find GPIO chip "pinctrl-none": `,
		"lane 1: reader 1 (line)":   "ok",
		"lane 1: reader 2 (evdev)":  "file does not exist: plug the device in, or correct the path",
		"lane 1: reader 3 (evdev)":  "it is no input device",
		"lane 1: reader 4 (serial)": `it is no serial line`,
		"lane 1: camera":            "no such file or directory: is it plugged in?",
	}
	var got map[string]string
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 600 {
		if got = b.devices(t); told(got, want) {
			break
		}
		<-tick.C
	}
	if !told(got, want) {
		t.Errorf("the status has %q, want %q", got, want)
	}
	if _, err := fmt.Fprint(openPipe(t, filepath.Join(b.dir, "line")), strings.Repeat("x", 1<<20), "\nno ticket\n"); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if text, err := os.ReadFile(filepath.Join(b.dir, "verdicts.jsonl")); err == nil && strings.Count(string(text), "\n") == 2 {
			return
		}
		<-tick.C
	}
	t.Error("not two verdicts, of what was cut and of what was read")
}

// told tells whether each device is there, with its words.
func told(got, want map[string]string) bool {
	for name, words := range want {
		if !strings.Contains(got[name], words) {
			return false
		}
	}
	return len(got) == len(want)
}

// replacing changes a part of the box's configuration.
func (b box) replacing(t *testing.T, old, text string) box {
	t.Helper()
	all, err := os.ReadFile(b.config)
	if err == nil {
		err = os.WriteFile(b.config, []byte(strings.Replace(string(all), old, text, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// devices gives the states of the box's hardware by the gate's status.
func (b box) devices(t *testing.T) map[string]string {
	t.Helper()
	raw, err := control.NewClient(b.socket).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Devices []struct{ Name, State string } `json:"devices"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, d := range s.Devices {
		states[d.Name] = d.State
	}
	return states
}
