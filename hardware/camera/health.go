package camera

import (
	"fmt"
	"sync"
	"time"
)

// Stats counts what a camera's device sent.
type Stats struct {
	Frames   uint64 `json:"frames"`   // of the right shape
	Skipped  uint64 `json:"skipped"`  // bad ones: empty, cut, of another size, not readable
	Replaced uint64 `json:"replaced"` // good ones that a newer one replaced while the receiver was busy
	Lost     uint64 `json:"lost"`     // times that the device was lost or could not be opened
}

// health is how a device does, told by both goroutines and asked by any.
type health struct {
	mu        sync.Mutex
	err       error     // why no frames come; nil while they do
	alive     time.Time // the last good frame, or the session's begin
	first     time.Time // the session's first good frame, or zero
	well      func()    // called once the session's frames came for the time proven
	bad       int       // frames of the wrong shape since the last of the right one
	notRead   int       // frames that could not be read since the last that could
	lastError error     // of the last one that could not be read
	stats     Stats
}

func (h *health) state() (alive time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alive, h.err
}

func (h *health) counts() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

// begin begins a session. Well is called by the goroutine that calls arrived.
func (h *health) begin(well func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first, h.alive, h.well = time.Time{}, time.Now(), well
	h.bad, h.notRead = 0, 0
}

// arrived counts a good frame; replaced tells whether one before it was dropped.
func (h *health) arrived(at time.Time, replaced bool) {
	h.mu.Lock()
	if h.first.IsZero() {
		h.first = at
	}
	h.alive, h.bad = at, 0
	h.stats.Frames++
	if replaced {
		h.stats.Replaced++
	}
	var well func()
	if h.err == nil && h.notRead == 0 && at.Sub(h.first) >= proven {
		well, h.well = h.well, nil
	}
	h.mu.Unlock()
	if well != nil {
		well()
	}
}

// spoilt counts a bad frame, and gives how many there were in a row.
func (h *health) spoilt() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Skipped++
	h.bad++
	return h.bad
}

// read tells how the reading of a frame went. Only one that could be read proves
// that frames come.
func (h *health) read(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.notRead = 0
		if !h.first.IsZero() { // no late one of a session that is over
			h.err = nil
		}
		return
	}
	h.stats.Skipped++
	h.notRead++
	h.lastError = err
}

func (h *health) unreadable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notRead < maxSpoilt {
		return nil
	}
	return modeError{fmt.Errorf("%d frames in a row that cannot be read, the last: %w", h.notRead, h.lastError)}
}

// lost ends a session.
func (h *health) lost(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err, h.first = err, time.Time{}
	h.stats.Lost++
}

// lived gives how long the session's frames came; 0: there was none that could be
// read.
func (h *health) lived() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.first.IsZero() {
		return 0
	}
	return max(h.alive.Sub(h.first), 1)
}

// since gives the time since the last good frame or the session's begin, and
// whether there was a frame at all.
func (h *health) since() (d time.Duration, some bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.alive), !h.first.IsZero()
}
