package camera

import (
	"sync"
	"time"
)

// shot is a frame as it came from a device, in a buffer of our own: the device
// writes into its own again as soon as it has them back.
type shot struct {
	data []byte // grey, w bytes a row; or a JPEG
	jpeg bool
	w, h int // pixels
	at   time.Time
}

// box holds the newest shot between the goroutine that takes them and the one
// that reads them. It has three: one being filled, one ready, one being read. So
// nobody waits, and nothing is allocated once each has grown to a frame's size.
type box struct {
	news chan struct{} // something is ready

	mu    sync.Mutex
	ready *shot
	free  []*shot
}

func newBox() *box {
	return &box{news: make(chan struct{}, 1), free: []*shot{{}, {}, {}}}
}

// empty gives a shot to fill; put takes it back.
func (b *box) empty() *shot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) == 0 { // one was lost in a panic
		return &shot{}
	}
	s := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	return s
}

// put makes a filled shot the one to be read. It tells whether one that nobody
// read was dropped for it.
func (b *box) put(s *shot) (dropped bool) {
	b.mu.Lock()
	if dropped = b.ready != nil; dropped {
		b.free = append(b.free, b.ready)
	}
	b.ready = s
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	return dropped
}

// take gives the newest shot, or nil; give takes it back.
func (b *box) take() *shot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.ready
	b.ready = nil
	return s
}

// give takes back a shot that is done with, or that came to nothing.
func (b *box) give(s *shot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, s)
}
