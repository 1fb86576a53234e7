package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The real daemon looks at pictures for a season: after the first tenth of them it
// needs no more memory, and no more files. Those that come while it reads one are
// dropped.
func TestAHundredThousandPictures(t *testing.T) {
	const first, all, more = 10_000, 100_000, 8 << 20 // more: 90 bytes a picture would be seen
	b := newBox(t)
	pipe := filepath.Join(b.dir, "pictures")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b = b.seeing(t, fmt.Sprintf("camera = { driver = \"child\", socket = %q, dark_level = 200 }", pipe))
	cmd := b.start(t, build(t), nil)
	w := openPipe(t, pipe)
	picture := noise(t)
	show := func(n int) {
		t.Helper()
		for range n {
			if _, err := w.Write(picture); err != nil {
				t.Fatal(err)
			}
		}
	}
	show(first)
	files := openFiles(t, cmd.Process.Pid, show)
	memory := resident(t, cmd.Process.Pid)
	show(all - first)
	if now := resident(t, cmd.Process.Pid); now > memory+more {
		t.Errorf("%d bytes after %d pictures, %d after %d", memory, first, now, all)
	}
	if now := openFiles(t, cmd.Process.Pid, show); now != files {
		t.Errorf("%d files after %d pictures, %d after %d", files, first, now, all)
	}
	if s := b.camera(t); s != "ok" {
		t.Errorf("camera %q", s)
	}
}

// openPipe opens a FIFO that a gate reads, or will.
func openPipe(t *testing.T, path string) *os.File {
	t.Helper()
	w, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := w.SetWriteDeadline(time.Now().Add(5 * time.Minute)); err != nil { // for a gate that is not there
		t.Fatal(err)
	}
	return w
}

// noise is a small picture, with corners that could be a code's.
func noise(t *testing.T) []byte {
	t.Helper()
	r, img := rand.New(rand.NewPCG(1, 1)), image.NewGray(image.Rect(0, 0, 64, 48))
	for i := range img.Pix {
		img.Pix[i] = uint8(255 * r.IntN(2))
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 20}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// resident gives the bytes of memory that a process has.
func resident(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// openFiles gives how many files a process has open, less what it has for a moment
// while it looks for its broker. It is shown pictures meanwhile.
func openFiles(t *testing.T, pid int, show func(n int)) (least int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 20 {
		show(10)
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		if <-tick.C; least == 0 || len(all) < least {
			least = len(all)
		}
	}
	return least
}
