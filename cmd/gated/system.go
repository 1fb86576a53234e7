package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/ticket"
)

// systemClock reads the kernel's clocks. With an offset file, for rehearsals, its
// wall clock is wrong by what the file says, and NTP is never believed.
type systemClock struct {
	boot       ticket.BootID
	offsetFile string
	offset     atomic.Int64
}

func newSystemClock(offsetFile string) (*systemClock, error) {
	c := &systemClock{offsetFile: offsetFile}
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("read boot id: %w", err)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != len(c.boot) {
		return nil, fmt.Errorf("read boot id %q: not a UUID", text)
	}
	copy(c.boot[:], b)
	return c, c.readOffset()
}

func (c *systemClock) wall() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// up is the time since boot, the kernel's suspend included.
func (c *systemClock) up() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every kernel since 2.6.39 has it
	}
	return time.Duration(ts.Nano())
}

// synced asks the kernel whether NTP holds the clock, and how well (adjtimex(2)).
func (c *systemClock) synced() (bool, time.Duration) {
	if c.offsetFile != "" {
		return false, 0
	}
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil || state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return false, 0
	}
	return true, time.Duration(t.Maxerror) * time.Microsecond
}

func (c *systemClock) readOffset() error {
	if c.offsetFile == "" {
		return nil
	}
	b, err := os.ReadFile(c.offsetFile)
	if os.IsNotExist(err) {
		c.offset.Store(0)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read clock offset: %w", err)
	}
	d, err := time.ParseDuration(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("read clock offset: %w", err)
	}
	c.offset.Store(int64(d))
	return nil
}

// run follows the offset file.
func (c *systemClock) run(ctx context.Context) error {
	if c.offsetFile == "" {
		return nil
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			if err := c.readOffset(); err != nil {
				return err
			}
		}
	}
}
