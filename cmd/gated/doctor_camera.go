package main

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"admitone/hardware/camera"
	"admitone/internal/config"
)

// How long the doctor looks at a camera's pictures, and waits for them.
const (
	measureFor      = 3 * time.Second
	measurePatience = 12 * time.Second
)

// enoughFPS is what a camera should give at least: a code held up for a third of a
// second is then in three pictures.
const enoughFPS = 10

// camera looks at one camera.
func (x *examination) camera(ctx context.Context, about string, c config.Camera) {
	switch {
	case c.Driver == config.DriverV4L2 && c.Device != "":
		x.videoDevice(ctx, about, c)
	case c.Driver == config.DriverChild:
		x.cameraChild(ctx, about, c)
	case c.Driver == config.DriverFolder && c.Dir != "":
		x.cameraFolder(about, c)
	}
}

func (x *examination) cameraFolder(about string, c config.Camera) {
	if !x.there(c.Dir) {
		x.warn(about, "make it: until then the camera sees darkness", "the folder %s is not there", c.Dir)
		return
	}
	x.warn(about, "", "simulated: it sees the newest picture in %s", c.Dir)
}

// videoDevice asks a device what it offers, and looks at its pictures.
func (x *examination) videoDevice(ctx context.Context, about string, c config.Camera) {
	if !x.device(about, c.Device, "plug it in; `ls /dev/v4l/by-id` has the names of those that are") {
		return
	}
	if strings.HasPrefix(c.Device, "/dev/video") {
		x.warn(about, "name it by /dev/v4l/by-id", "%s may be another device after a restart", c.Device)
	}
	o, err := deviceOptions(c)
	if err != nil {
		return // the configuration's problem
	}
	offer, err := x.probe(o)
	if err != nil {
		x.bad(about, "take another device or other keys", "%v", err)
		return
	}
	var modes []string
	for _, m := range offer.Modes {
		modes = append(modes, m.String())
	}
	x.ok(about, "%s: %s", offer.Device, strings.Join(modes, ", "))
	for _, r := range offer.Refused {
		x.warn(about, "change or remove it; there are: "+strings.Join(offer.Controls, ", "), "control %s", r)
	}
	x.pictures(ctx, about, c)
}

func (x *examination) cameraChild(ctx context.Context, about string, c config.Camera) {
	if c.Socket != "" {
		if !x.device(about, c.Socket, "systemctl enable --now gated-camera.socket, or start what makes it") {
			return
		}
	} else if len(c.Command) > 0 {
		if _, err := exec.LookPath(c.Command[0]); err != nil {
			x.bad(about, "install it; for CSI cameras: apt install rpicam-apps", "%v", err)
			return
		}
	}
	x.pictures(ctx, about, c)
}

// pictures measures the rate at which a camera gives pictures.
func (x *examination) pictures(ctx context.Context, about string, c config.Camera) {
	if x.there(x.c.Control) {
		x.ok(about, "the gate works with it, so its pictures were not counted: stop gated for that")
		return
	}
	rate, err := x.measure(ctx, c)
	switch {
	case err != nil:
		x.bad(about, "unplug it and plug it in; on a USB hub, try a port of the board", "no pictures: %v", err)
	case rate < enoughFPS:
		x.warn(about, "give it light, or set controls = { exposure = 100 } (10 ms); or a smaller size, or another port", "%.1f pictures a second", rate)
	default:
		x.ok(about, "%.1f pictures a second", rate)
	}
}

// measure looks at a camera's pictures for some seconds.
func measure(ctx context.Context, c config.Camera) (rate float64, err error) {
	cam, err := openCamera(c, nil)
	if err != nil {
		return 0, err
	}
	return camera.Measure(ctx, cam, measureFor, measurePatience)
}
