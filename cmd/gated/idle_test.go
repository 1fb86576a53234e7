package main

import (
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"admitone/internal/pictures"
	"admitone/internal/scan"
)

// BenchmarkIdle has the real daemon look at an empty lane, 15 pictures of 1280x720
// a second, and gives the processor time that it takes for each second: for all,
// and without the camera. Reading is what the search for codes in 15 such pictures
// takes by itself.
func BenchmarkIdle(b *testing.B) {
	const rate = 15
	hall := pictures.Draw(pictures.Spec{Seed: 1, Width: 1280, Height: 720})
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "hall.jpg"))
	if err != nil {
		b.Fatal(err)
	}
	if err := jpeg.Encode(f, hall, nil); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	exe := build(b)
	sees := fmt.Sprintf("camera = { driver = \"folder\", dir = %q, fps = %d, dark_level = 40 }", dir, rate)
	for b.Loop() {
		b.ReportMetric(idle(b, newBox(b).seeing(b, sees), exe), "all-ms/s")
		b.ReportMetric(idle(b, newBox(b), exe), "without-ms/s")
	}
	r, frame := scan.New(scan.Options{}), scan.Frame{Pix: hall.Pix, Stride: hall.Stride, W: 1280, H: 720}
	before := processorTime(b, os.Getpid())
	const reads = 20 * rate
	for range reads {
		if _, err := r.Read(frame); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b, os.Getpid())-before).Milliseconds())*rate/reads, "reading-ms/s")
}

// idle gives the processor time of a box's daemon, in ms for each second.
func idle(b *testing.B, x box, exe string) float64 {
	b.Helper()
	pid := x.start(b, exe, nil).Process.Pid
	<-time.After(3 * time.Second) // its start is none of it
	used, began := processorTime(b, pid), time.Now()
	<-time.After(20 * time.Second)
	return float64(processorTime(b, pid)-used) / 1e6 / time.Since(began).Seconds()
}

// processorTime is what a process has used, by /proc/PID/stat, in clock ticks of a
// hundredth of a second.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')'):])
	user, err := strconv.Atoi(fields[12])
	if err != nil {
		b.Fatal(err)
	}
	system, err := strconv.Atoi(fields[13])
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
