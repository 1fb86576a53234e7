package wire

import (
	"sync"
	"time"
)

// askPace watches the asks under way: whether there are any, and whether they
// get anywhere.
type askPace struct {
	mu      sync.Mutex
	running int
	moved   time.Time     // when the first began, or the last one ended
	none    chan struct{} // closed when there are none; nil: there are none
}

func (p *askPace) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == 0 {
		p.moved, p.none = now, make(chan struct{})
	}
	p.running++
}

func (p *askPace) end(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = now
	if p.running--; p.running == 0 {
		close(p.none)
		p.none = nil
	}
}

func (p *askPace) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.none != nil {
		return p.none
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

func (p *askPace) stuck(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running > 0 && now.Sub(p.moved) > stuckAfter
}
