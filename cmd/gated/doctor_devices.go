package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"admitone/internal/config"
)

// lanes looks at the devices of each lane.
func (x *examination) lanes(ctx context.Context) {
	for _, l := range x.c.Lanes {
		x.turnstile("turnstile of lane "+l.Name, l.Turnstile)
		for i, r := range l.Readers {
			x.reader(fmt.Sprintf("reader %d of lane %s", i+1, l.Name), r)
		}
		if l.Camera != nil {
			x.camera(ctx, "camera of lane "+l.Name, *l.Camera)
		}
	}
}

// reader looks at one reader's device.
func (x *examination) reader(about string, r config.Reader) {
	if r.Path == "-" {
		x.ok(about, "standard input")
		return
	}
	if r.Path == "" {
		return // the configuration's problem
	}
	absent := "plug it in; `ls /dev/serial/by-id` has the names of those that are"
	if r.Driver == config.DriverEvdev {
		absent = "plug it in; `ls /dev/input/by-id` has the names of those that are"
	}
	if r.Driver == config.DriverLine && !x.there(r.Path) && !strings.HasPrefix(r.Path, "/dev/") {
		x.ok(about, "%s, which the gate makes", r.Path)
		return
	}
	if !x.device(about, r.Path, absent) {
		return
	}
	switch console, onIt := x.console(r.Path); {
	case onIt:
		x.bad(about, "remove console="+console+" from cmdline.txt, and systemctl disable serial-getty@"+console, "the kernel's console is on %s: it writes to the scanner", r.Path)
	case strings.HasPrefix(r.Path, "/dev/ttyACM") || strings.HasPrefix(r.Path, "/dev/ttyUSB"):
		x.warn(about, "name it by /dev/serial/by-id", "%s may be another device after a restart", r.Path)
	case strings.HasPrefix(r.Path, "/dev/input/event"):
		x.warn(about, "name it by /dev/input/by-id", "%s may be another device after a restart", r.Path)
	default:
		x.ok(about, "%s", r.Path)
	}
}

// console tells whether the kernel's console is on a serial port. Raspberry Pi's
// firmware writes serial0 for what /dev/serial0 names.
func (h host) console(path string) (name string, ok bool) {
	port := h.resolved(path)
	for option := range strings.FieldsSeq(h.text("/proc/cmdline")) {
		name, is := strings.CutPrefix(option, "console=")
		if !is {
			continue
		}
		name, _, _ = strings.Cut(name, ",")
		if port == h.resolved("/dev/"+name) {
			return name, true
		}
	}
	return "", false
}

// resolved follows links, so that two names of one device are the same.
func (h host) resolved(path string) string {
	if to, err := filepath.EvalSymlinks(h.at(path)); err == nil {
		return to
	}
	return h.at(path)
}
