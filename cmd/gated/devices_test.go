package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"admitone/hardware/reader"
	"admitone/internal/config"
)

// with adds readers to the box's configuration.
func (b box) with(t *testing.T, readers []config.Reader) box {
	t.Helper()
	text, err := os.ReadFile(b.config)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range readers {
		s := fmt.Sprintf("{ driver = %q, path = %q", r.Driver, r.Path)
		if r.Baud != 0 {
			s += fmt.Sprintf(", baud = %d", r.Baud)
		}
		if r.Layout != "" {
			s += fmt.Sprintf(", layout = %q", r.Layout)
		}
		list = append(list, s+" }")
	}
	all := strings.Replace(string(text), `{ path = "line" }`, `{ path = "line" }, `+strings.Join(list, ", "), 1)
	if err := os.WriteFile(b.config, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// What the configuration takes the drivers take, and each of theirs can be
// configured.
func TestEveryReaderThatIsConfiguredIsMade(t *testing.T) {
	var readers []config.Reader
	for i, l := range append(reader.Layouts(), "") {
		readers = append(readers, config.Reader{Driver: "evdev", Path: fmt.Sprintf("/dev/input/by-id/none-%d-event-kbd", i), Layout: l})
	}
	for i, b := range append(reader.Bauds(), 0) {
		readers = append(readers, config.Reader{Driver: "serial", Path: fmt.Sprintf("/dev/serial/by-id/none-%d", i), Baud: b})
	}
	c, err := config.LoadGate(newBox(t).with(t, readers).config)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Lanes[0].Readers); n != len(readers)+1 {
		t.Fatalf("%d readers of %d", n, len(readers)+1)
	}
	for _, r := range c.Lanes[0].Readers {
		if _, err := openReader(r, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if c.Lanes[0].Readers[len(reader.Layouts())+1].Layout != reader.DefaultLayout || c.Lanes[0].Readers[len(readers)].Baud != reader.DefaultBaud {
		t.Error("the configuration's defaults are not the drivers'")
	}
	if _, err := openReader(config.Reader{Driver: "nfc", Path: "x"}, nil); err == nil {
		t.Error("an unknown driver was taken")
	}
}

// stated is a device whose state the test sets; mute is one that knows none.
type stated struct{ err error }

func (s stated) State() error { return s.err }

type mute struct{}

func TestOnlyDevicesThatKnowTellTheirState(t *testing.T) {
	var l laneDevices
	l.tell("reader 1 (line)", stated{})
	l.tell("camera", mute{})
	l.tell("reader 2 (evdev)", stated{errors.New("unplugged")})
	if len(l.devices) != 2 || l.devices[0].state() != nil || l.devices[1].state() == nil || l.devices[1].name != "reader 2 (evdev)" {
		t.Errorf("%+v", l.devices)
	}
}
