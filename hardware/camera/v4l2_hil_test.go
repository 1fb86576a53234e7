//go:build hil && linux

package camera

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// virtual is the kernel's virtual camera, which shows test pictures.
const virtual = "/dev/video0"

// patience is what an emulated board may take for some frames.
const patience = time.Minute

// TestKernelCameraDelivers: in each format, also where this process holds so many
// files that the camera's has a number which select(2) could not take.
func TestKernelCameraDelivers(t *testing.T) {
	for _, held := range []int{0, 200, 1100} {
		release := holdFiles(t, held)
		for _, format := range []Format{FormatGrey, FormatYUYV} {
			cam, err := NewV4L2(V4L2Options{Device: virtual, Format: format, Width: 1280, Height: 720})
			if err != nil {
				t.Fatal(err)
			}
			if n := count(t, cam, 3); n < 3 {
				t.Errorf("%v with %d files held: %d frames, %v", format, held, n, cam.State())
			}
		}
		release()
	}
}

// holdFiles opens files, and gives what closes them.
func holdFiles(t *testing.T, n int) (release func()) {
	t.Helper()
	var all []*os.File
	for range n {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return func() {
		for _, f := range all {
			_ = f.Close() // it was only read
		}
	}
}

// count runs a camera until it has given so many frames of its size.
func count(t *testing.T, cam *V4L2, enough int) (n int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	err := cam.Run(ctx, func(f Frame) {
		if f.W != 1280 || f.H != 720 || len(f.Pix) < f.Stride*f.H {
			t.Errorf("a frame of %d x %d in %d bytes", f.W, f.H, len(f.Pix))
		}
		if n++; n == enough {
			stop()
		}
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestKernelBusyCameraLeavesNothing: another program streams. Each try says so, and
// leaves neither a file nor memory that is mapped.
func TestKernelBusyCameraLeavesNothing(t *testing.T) {
	other, err := openDevice(virtual)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.SetFormat(FormatGrey, 1280, 720); err != nil {
		t.Fatal(err)
	}
	if err := other.Start(askBuffers); err != nil {
		t.Fatal(err)
	}
	open, mapped := files(t), videoMaps(t)
	for range 1000 {
		d, err := openDevice(virtual)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(askBuffers); err == nil || !strings.Contains(err.Error(), "another program uses it") {
			t.Fatalf("start beside another program: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if f, m := files(t), videoMaps(t); f > open || m > mapped {
		t.Errorf("%d files and %d maps, before it %d and %d", f, m, open, mapped)
	}
}

// cidDisconnect is the button of the virtual camera that pulls it out
// (VIVID_CID_DISCONNECT of the kernel's vivid-ctrls.c); the last who closes it plugs
// it in again.
const cidDisconnect = 0x00f0f041

// TestKernelUnpluggedCamera: ten thousand tries to open one that is gone, while
// somebody still holds it, and it works when it is back.
func TestKernelUnpluggedCamera(t *testing.T) {
	holder, err := openDevice(virtual)
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.SetControl(cidDisconnect, 1); err != nil {
		t.Fatal(err)
	}
	before := files(t)
	for range 10_000 {
		if _, err := openDevice(virtual); !errors.Is(err, errGone) {
			t.Fatalf("open: %v", err)
		}
	}
	if after := files(t); after > before {
		t.Errorf("%d files before, %d after", before, after)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	cam, err := NewV4L2(V4L2Options{Device: virtual, Width: 1280, Height: 720})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, cam, 1); n == 0 {
		t.Error(cam.State())
	}
}

// videoMaps counts the buffers of the camera that this process has mapped.
func videoMaps(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), virtual)
}
