//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // what the host sends
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// player plays one picture, over and over, to a video output: what a virtual
// camera that loops it sees.
type player struct {
	fd      int
	maps    [][]byte
	size    int // bytes of a frame
	done    chan struct{}
	mu      sync.Mutex
	frame   []byte // the next to play
	stopped bool
	err     error
}

// show plays a picture; the first one opens the output. Motion JPEG is played by
// another process, to which the device is a file.
func (s *server) show(device, pixels, path string) error {
	if pixels == motionJPEG {
		next := device + ".next"
		return errors.Join(os.Symlink(path, next), os.Rename(next, device))
	}
	frame, w, h, err := readFrame(path, pixels)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.player == nil {
		p, err := newPlayer(device, pixels, w, h)
		if err != nil {
			return err
		}
		s.player = p
		p.frame = frame
		go p.run()
		return nil
	}
	return s.player.change(frame)
}

func (s *server) hide() error {
	s.mu.Lock()
	p := s.player
	s.player = nil
	s.mu.Unlock()
	if p == nil {
		return errors.New("nothing is shown")
	}
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	<-p.done
	return nil
}

// readFrame makes a frame of a picture file: GREY has a byte a pixel, YUYV two,
// every second one being colour.
func readFrame(path, pixels string) (frame []byte, w, h int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, 0, err
	}
	defer f.Close()
	img, _, err := image.Decode(bufio.NewReader(f))
	if err != nil {
		return nil, 0, 0, fmt.Errorf("read %s: %w", path, err)
	}
	grey := image.NewGray(img.Bounds())
	draw.Draw(grey, grey.Rect, img, img.Bounds().Min, draw.Src)
	w, h = grey.Rect.Dx(), grey.Rect.Dy()
	switch pixels {
	case "GREY":
		return grey.Pix, w, h, nil
	case "YUYV":
		frame = make([]byte, 2*len(grey.Pix))
		for i, y := range grey.Pix {
			frame[2*i], frame[2*i+1] = y, 128
		}
		return frame, w, h, nil
	}
	return nil, 0, 0, fmt.Errorf("%s is not known here", pixels)
}

// newPlayer sets an output up with two buffers and starts it. The virtual output
// takes no plain writes, only mapped buffers.
func newPlayer(device, pixels string, w, h int) (p *player, err error) {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", device, err)
	}
	p = &player{fd: fd, done: make(chan struct{})}
	defer func() {
		if err != nil {
			p.close()
			err = fmt.Errorf("set up %s: %w", device, err)
		}
	}()
	f := format{Type: typeOutput, Pix: pixFormat{Width: uint32(w), Height: uint32(h), PixelFormat: fourCC(pixels), Field: fieldNone, Colorspace: 8}}
	if err := ioctl(fd, 3, 5, &f); err != nil {
		return nil, fmt.Errorf("set format: %w", err)
	}
	if f.Pix.Width != uint32(w) || f.Pix.Height != uint32(h) || f.Pix.PixelFormat != fourCC(pixels) {
		return nil, fmt.Errorf("it takes %dx%d %#x only", f.Pix.Width, f.Pix.Height, f.Pix.PixelFormat)
	}
	p.size = int(f.Pix.SizeImage)
	r := requestBuffers{Count: 2, Type: typeOutput, Memory: memoryMap}
	if err := ioctl(fd, 3, 8, &r); err != nil {
		return nil, fmt.Errorf("request buffers: %w", err)
	}
	for i := range r.Count {
		b := buffer{Index: i, Type: typeOutput, Memory: memoryMap}
		if err := ioctl(fd, 3, 9, &b); err != nil {
			return nil, fmt.Errorf("query buffer: %w", err)
		}
		m, err := unix.Mmap(fd, int64(b.Offset), int(b.Length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("map buffer: %w", err)
		}
		p.maps = append(p.maps, m)
	}
	return p, nil
}

func (p *player) change(frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.frame = frame
	return nil
}

// next gives the frame to play; nil: no more.
func (p *player) next() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	return p.frame
}

func (p *player) run() {
	defer close(p.done)
	defer p.close()
	err := p.play()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	for p.next() != nil { // keeps the device open, as whoever has it would
		unix.Nanosleep(&unix.Timespec{Nsec: 20e6}, nil)
	}
}

func (p *player) play() error {
	for i := range p.maps {
		if err := p.queue(uint32(i)); err != nil {
			return err
		}
	}
	on := uint32(typeOutput)
	if err := ioctl(p.fd, 1, 18, &on); err != nil {
		return fmt.Errorf("start output: %w", err)
	}
	for p.next() != nil {
		b := buffer{Type: typeOutput, Memory: memoryMap}
		if err := ioctl(p.fd, 3, 17, &b); err != nil {
			return fmt.Errorf("take back buffer: %w", err)
		}
		if err := p.queue(b.Index); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) queue(i uint32) error {
	if f := p.next(); f != nil {
		copy(p.maps[i], f)
	}
	b := buffer{Index: i, Type: typeOutput, Memory: memoryMap, BytesUsed: uint32(p.size), Field: fieldNone}
	if err := ioctl(p.fd, 3, 15, &b); err != nil {
		return fmt.Errorf("queue buffer: %w", err)
	}
	return nil
}

// close unmaps first: a mapping keeps the queue and its format busy.
func (p *player) close() {
	for _, m := range p.maps {
		_ = unix.Munmap(m)
	}
	unix.Close(p.fd)
}
