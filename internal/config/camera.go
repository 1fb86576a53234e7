package config

import (
	"fmt"
	"slices"
	"strings"
)

// The drivers of cameras.
const (
	DriverFolder = "folder" // what it sees is the newest picture of a folder
	DriverV4L2   = "v4l2"   // a video device of Linux, as a USB camera is
	DriverChild  = "child"  // a program that writes motion JPEG, as for a CSI camera
)

// Camera delivers pictures.
type Camera struct {
	Driver string `toml:"driver,omitempty"` // one of the drivers of cameras; default folder
	FPS    int    `toml:"fps,omitempty"`    // pictures a second; default 10 of a folder, 15 of a device

	Dir string `toml:"dir,omitempty"` // folder

	Device   string         `toml:"device,omitempty"`   // v4l2: best its name in /dev/v4l/by-id
	Width    int            `toml:"width,omitempty"`    // v4l2: pixels; default the best that the device offers
	Height   int            `toml:"height,omitempty"`   // v4l2
	Format   string         `toml:"format,omitempty"`   // v4l2: one of the formats; default the best that the device offers
	Controls map[string]int `toml:"controls,omitempty"` // v4l2: exposure, focus, power_line_frequency and what else it has

	Command []string `toml:"command,omitempty"` // child: the program and its arguments
	Socket  string   `toml:"socket,omitempty"`  // child: a Unix socket to connect to, or a FIFO, in the place of a command

	DarkLevel int `toml:"dark_level,omitempty"` // pictures with a mean below it, of 255, put the light on; default 0, never
}

// cameraFormats are what the driver v4l2 reads.
func cameraFormats() []string { return []string{"GREY", "YUYV", "MJPG"} }

// Limits that the camera's drivers have, too.
const (
	largestSide  = 1 << 15 // pixels
	smallestSide = 64      // pixels; no code fits into less
	mostFPS      = 60
)

func (c *Camera) setDefaults() { *c = Camera{Driver: DriverFolder} }

// complete fills in what depends on the driver, and makes paths absolute.
func (c *Camera) complete(dir string) {
	for _, p := range []*string{&c.Dir, &c.Device, &c.Socket} {
		resolve(p, dir)
	}
	if c.Driver == DriverFolder && c.FPS == 0 {
		c.FPS = 10
	}
}

func (c *Camera) check(r *report, at string, t *Turnstile) {
	r.driver(at+".driver", c.Driver, DriverFolder, DriverV4L2, DriverChild)
	c.foreign(r, at)
	switch c.Driver {
	case DriverFolder:
		r.required(at+".dir", c.Dir, "name the folder of pictures")
	case DriverV4L2:
		c.checkDevice(r, at)
	case DriverChild:
		c.checkChild(r, at)
	}
	if c.FPS < 0 || c.FPS > mostFPS {
		r.addf(at+".fps", "set it from 1 to 60", "%d pictures a second cannot be", c.FPS)
	}
	if c.DarkLevel < 0 || c.DarkLevel > 254 {
		r.addf(at+".dark_level", "set it from 1 to 254; 40 is dusk", "%d is no brightness of a dark picture", c.DarkLevel)
	}
	if _, wired := t.Pins[light]; c.DarkLevel > 0 && t.gpio() && !wired {
		r.addf(at+".dark_level", "add light to turnstile.pins, or take it out here", "no light is wired")
	}
}

func (c *Camera) checkDevice(r *report, at string) {
	r.required(at+".device", c.Device, "name a video device, as in \"/dev/v4l/by-id/...-video-index0\"")
	for _, side := range []struct {
		name  string
		n     int
		other int
	}{{"width", c.Width, c.Height}, {"height", c.Height, c.Width}} {
		switch {
		case side.n == 0 && side.other != 0:
			r.add(at+"."+side.name, "missing: a size has both", "write width and height, or neither for the best")
		case side.n != 0 && (side.n < smallestSide || side.n > largestSide):
			r.addf(at+"."+side.name, "set it to a size that the camera offers, as `gated doctor` shows them", "%d pixels are no side of a picture of a ticket", side.n)
		}
	}
	if c.Format != "" {
		r.oneOf(at+".format", c.Format, cameraFormats())
	}
}

func (c *Camera) checkChild(r *report, at string) {
	switch {
	case len(c.Command) == 0 && c.Socket == "":
		r.add(at+".command", "missing: no program delivers pictures", "write command = [\"rpicam-vid\", …] or name a socket")
	case len(c.Command) > 0 && c.Socket != "":
		r.add(at+".socket", "stands beside a command", "take one of the two out")
	case len(c.Command) > 0 && c.Command[0] == "":
		r.add(at+".command[0]", "is no program", "write the program's name or path")
	case len(c.Socket) > maxSocket:
		r.addf(at+".socket", "name a shorter path", "%q is %d bytes long, a socket's path has at most %d", c.Socket, len(c.Socket), maxSocket)
	}
}

// foreign finds keys that belong to another driver: somebody means them to work.
func (c *Camera) foreign(r *report, at string) {
	drivers := []string{DriverFolder, DriverV4L2, DriverChild}
	if !slices.Contains(drivers, c.Driver) {
		return
	}
	for _, k := range []struct {
		name string
		set  bool
		of   []string
	}{
		{"fps", c.FPS != 0, []string{DriverFolder, DriverV4L2}},
		{"dir", c.Dir != "", []string{DriverFolder}},
		{"device", c.Device != "", []string{DriverV4L2}},
		{"width", c.Width != 0, []string{DriverV4L2}},
		{"height", c.Height != 0, []string{DriverV4L2}},
		{"format", c.Format != "", []string{DriverV4L2}},
		{"controls", len(c.Controls) > 0, []string{DriverV4L2}},
		{"command", len(c.Command) > 0, []string{DriverChild}},
		{"socket", c.Socket != "", []string{DriverChild}},
	} {
		if k.set && !slices.Contains(k.of, c.Driver) {
			r.addf(at+"."+k.name, "take it out, or change driver", "is for driver %s", strings.Join(k.of, " and "))
		}
	}
}

// sharedCameras finds a device or socket that two lanes name: one of them would
// find it in use for ever.
func (g *Gate) sharedCameras(r *report) {
	by := map[string]string{}
	for i, l := range g.Lanes {
		if l.Camera == nil || l.Camera.Driver == DriverFolder {
			continue
		}
		for _, k := range []struct{ name, path string }{{"device", l.Camera.Device}, {"socket", l.Camera.Socket}} {
			if k.path == "" {
				continue
			}
			key := fmt.Sprintf("lane[%d].camera.%s", i, k.name)
			if first, taken := by[k.path]; taken {
				r.addf(key, "give each lane its own camera", "%s is already that of %s", show(k.path), first)
				continue
			}
			by[k.path] = key
		}
	}
}
