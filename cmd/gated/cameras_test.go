package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/hardware/camera"
	"admitone/internal/alive/alivetest"
	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ticket"
)

// What the configuration takes the drivers take.
func TestEveryCameraThatIsConfiguredIsMade(t *testing.T) {
	dir := t.TempDir()
	cameras := []config.Camera{
		{Driver: "folder", Dir: dir, FPS: 60},
		{Driver: "v4l2", Device: "/dev/v4l/by-id/none-video-index0"},
		{Driver: "v4l2", Device: "/dev/video9", Width: 64, Height: 64, FPS: 60, Controls: map[string]int{"exposure": 1}},
		{Driver: "child", Command: []string{"true"}},
		{Driver: "child", Socket: "/run/gated-camera.sock"},
	}
	for _, f := range camera.Formats() {
		cameras = append(cameras, config.Camera{Driver: "v4l2", Device: "/dev/video9", Format: f})
	}
	for i, c := range cameras {
		if _, err := openCamera(c, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		text := fmt.Sprintf("camera = { driver = %q", c.Driver)
		for _, k := range []struct{ key, value string }{{"dir", c.Dir}, {"device", c.Device}, {"socket", c.Socket}, {"format", c.Format}} {
			if k.value != "" {
				text += fmt.Sprintf(", %s = %q", k.key, k.value)
			}
		}
		if c.Command != nil {
			text += fmt.Sprintf(", command = [%q]", c.Command[0])
		}
		if got, err := config.LoadGate(newBox(t).seeing(t, text+" }").config); err != nil {
			t.Errorf("camera %d: %v", i, err)
		} else if got.Lanes[0].Camera.Format != c.Format {
			t.Errorf("camera %d: %+v", i, got.Lanes[0].Camera)
		}
	}
	if _, err := openCamera(config.Camera{Driver: "csi"}, nil); err == nil {
		t.Error("an unknown driver was taken")
	}
	if _, err := openCamera(config.Camera{Driver: "v4l2", Device: "x", Format: "H264"}, nil); err == nil {
		t.Error("an unknown format was taken")
	}
}

// seeing gives the box a camera, and a file for its verdicts.
func (b box) seeing(t testing.TB, camera string) box {
	t.Helper()
	text, err := os.ReadFile(b.config)
	if err != nil {
		t.Fatal(err)
	}
	all := "verdicts = \"verdicts.jsonl\"\n" + string(text) + camera + "\n"
	if err := os.WriteFile(b.config, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// await waits for a line with all words in a file of the box.
func (b box) await(t *testing.T, file string, words ...string) (line string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		<-tick.C
		f, err := os.Open(filepath.Join(b.dir, file))
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s.Text(), w) }) {
				line = s.Text()
			}
		}
		if f.Close(); line != "" {
			return line
		}
	}
	t.Fatalf("%s has no line with %q", file, words)
	return ""
}

// camera gives the state of the lane's camera by the gate's status.
func (b box) camera(t *testing.T) string {
	t.Helper()
	raw, err := control.NewClient(b.socket).Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Devices []struct{ Name, State string } `json:"devices"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Devices {
		if d.Name == "lane 1: camera" {
			return d.State
		}
	}
	t.Fatalf("no camera in %s", raw)
	return ""
}

// The real daemon with a child for a camera: it reads a ticket, finds it dark and
// puts its light on, tells of the child when that ends, and takes it with it.
func TestGateSeesThroughAChild(t *testing.T) {
	picture, err := filepath.Abs("../../testdata/frames/02-new-paper.jpg")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`echo $$ > pid.new && mv pid.new pid; while test ! -e end; do cat %q; sleep 0.05; done; echo "no camera" >&2; exit 4`, picture)
	b := newBox(t)
	script = fmt.Sprintf("cd %q && %s", b.dir, script)
	b = b.seeing(t, fmt.Sprintf("camera = { driver = \"child\", command = [\"sh\", \"-c\", %q], dark_level = 254 }", script))
	m := alivetest.Listen(t)
	cmd := b.start(t, build(t), m)
	m.Await(t, "READY=1")

	var v ticket.Verdict
	if err := json.Unmarshal([]byte(b.await(t, "verdicts.jsonl", "verdict")), &v); err != nil || v.Reason != ticket.NotReady {
		t.Errorf("%+v, %v: this gate has no programme", v, err)
	}
	b.await(t, "turnstile.jsonl", `"light"`, "true")
	if s := b.camera(t); s != "ok" {
		t.Errorf("camera %q", s)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		if <-tick.C; b.camera(t) != "ok" {
			break
		}
	}
	if s := b.camera(t); !strings.Contains(s, "its pictures ended (it ended with exit status 4, its last words: no camera)") {
		t.Errorf("camera %q", s)
	}
	if err := os.Remove(filepath.Join(b.dir, "end")); err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if <-tick.C; b.camera(t) == "ok" {
			break
		}
	}
	pid, err := os.ReadFile(filepath.Join(b.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	// Killed, the daemon cannot clean up: the kernel does it.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait() == nil {
		t.Error("killed, and no error")
	}
	for range 1500 {
		<-tick.C
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("the child goes on after the daemon")
}

// The doctor asks the device what it offers, and counts its pictures.
func TestDoctorOnCameras(t *testing.T) {
	const byID = "/dev/v4l/by-id/usb-046d_HD_Webcam-video-index0"
	offer := camera.Offer{
		Device: "HD Webcam (uvcvideo, usb-1.2)", Controls: []string{"exposure_time_absolute 3 to 2047"},
		Modes: []camera.Mode{{Format: camera.FormatYUYV, Width: 1280, Height: 720, Rate: 10}, {Format: camera.FormatMJPEG, Width: 1280, Height: 720, Rate: 30}},
	}
	for _, c := range []struct {
		name  string
		c     config.Camera
		harm  func(p *patient)
		level level
		want  string
	}{
		{"offers", config.Camera{Driver: "v4l2", Device: byID}, nil, levelOK, "HD Webcam (uvcvideo, usb-1.2): YUYV 1280x720 at 10/s, MJPG 1280x720 at 30/s"},
		{"rate", config.Camera{Driver: "v4l2", Device: byID}, nil, levelOK, "14.9 pictures a second"},
		{"slow", config.Camera{Driver: "v4l2", Device: byID}, func(p *patient) {
			p.host.measure = func(context.Context, config.Camera) (float64, error) { return 7.5, nil }
		}, levelWarn, "7.5 pictures a second|exposure"},
		{"none", config.Camera{Driver: "v4l2", Device: byID}, func(p *patient) {
			p.host.measure = func(context.Context, config.Camera) (float64, error) { return 0, errors.New("no frame for 8s") }
		}, levelBad, "no pictures: no frame for 8s|port of the board"},
		{"at work", config.Camera{Driver: "v4l2", Device: byID}, func(p *patient) { p.put("/run/gated/control.sock", "") }, levelOK, "stop gated for that"},
		{"unplugged", config.Camera{Driver: "v4l2", Device: byID + "0"}, nil, levelBad, "is not there|ls /dev/v4l/by-id"},
		{"not allowed", config.Camera{Driver: "v4l2", Device: byID}, func(p *patient) { p.owns(byID, 0, 44, 0o660) }, levelBad, "gated may not open|usermod -aG"},
		{"by number", config.Camera{Driver: "v4l2", Device: "/dev/video0"}, func(p *patient) { p.put("/dev/video0", "") }, levelWarn, "another device|/dev/v4l/by-id"},
		{"offers nothing", config.Camera{Driver: "v4l2", Device: byID}, func(p *patient) {
			p.host.probe = func(camera.V4L2Options) (camera.Offer, error) {
				return camera.Offer{}, errors.New("it does not offer a picture in GREY")
			}
		}, levelBad, "does not offer|other keys"},
		{"control", config.Camera{Driver: "v4l2", Device: byID, Controls: map[string]int{"focus": 1}}, func(p *patient) {
			o := offer
			o.Refused = []string{"focus = 1: it has none"}
			p.host.probe = func(camera.V4L2Options) (camera.Offer, error) { return o, nil }
		}, levelWarn, "control focus = 1|exposure_time_absolute 3 to 2047"},
		{"child", config.Camera{Driver: "child", Command: []string{"sh"}}, nil, levelOK, "14.9 pictures"},
		{"no program", config.Camera{Driver: "child", Command: []string{"/nowhere/rpicam-vid"}}, nil, levelBad, "no such file|rpicam-apps"},
		{"socket", config.Camera{Driver: "child", Socket: "/run/gated-camera.sock"}, func(p *patient) { p.put("/run/gated-camera.sock", "") }, levelOK, "14.9 pictures"},
		{"no socket", config.Camera{Driver: "child", Socket: "/run/gated-camera.sock"}, nil, levelBad, "is not there|gated-camera.socket"},
		{"folder", config.Camera{Driver: "folder", Dir: "/var/lib/gated"}, nil, levelWarn, "simulated"},
		{"no folder", config.Camera{Driver: "folder", Dir: "/nowhere"}, nil, levelWarn, "is not there|darkness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t)
			p.put(byID, "")
			p.host.probe = func(o camera.V4L2Options) (camera.Offer, error) { return offer, nil }
			p.host.measure = func(context.Context, config.Camera) (float64, error) { return 14.9, nil }
			if c.harm != nil {
				c.harm(p)
			}
			x := &examination{host: p.host, c: config.Gate{Control: "/run/gated/control.sock"}}
			x.camera(t.Context(), "camera", c.c)
			found, remedy, _ := strings.Cut(c.want, "|")
			if !slices.ContainsFunc(x.findings, func(f finding) bool {
				return f.Level == c.level && strings.Contains(f.Found, found) && strings.Contains(f.Do, remedy)
			}) {
				t.Errorf("no finding %q %q in %+v", c.level, c.want, x.findings)
			}
		})
	}
}
