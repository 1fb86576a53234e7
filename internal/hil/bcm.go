package hil

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// bcm is the GPIO block of a Raspberry Pi. QEMU traces what is written to its
// registers, from which follows what each pin does, a change of direction
// included.
type bcm struct {
	q     *qtest
	edges *edges

	mu     sync.Mutex
	sel    [6]uint32 // function of ten lines each, three bits a line: 0 is input, 1 is output
	levels uint64    // as last written
	told   int       // empty writes that came by
	err    error
}

// The registers (BCM2835 ARM Peripherals, section 6.1), of which there are two for
// 32 lines each.
const (
	bcmBase   = 0x3f200000
	bcmSelect = bcmBase
	bcmSet    = bcmBase + 0x1c
	bcmClear  = bcmBase + 0x28
	bcmLevels = bcmBase + 0x34
	bcmLines  = 54

	// pulledUp is how many lines have a pull-up before anybody asks for another; the
	// others of the header are pulled down.
	pulledUp = 9
)

// bcmTrace is the event of QEMU that tells of writes.
const bcmTrace = "memory_region_ops_write"

// newBCM reads how the registers are and follows from then on what trace, QEMU's
// log, says.
func newBCM(q *qtest, e *edges, trace io.Reader, on func() error) (*bcm, error) {
	b := &bcm{q: q, edges: e}
	for i := range b.sel {
		v, err := q.word(bcmSelect + 4*uint64(i))
		if err != nil {
			return nil, err
		}
		b.sel[i] = v
	}
	for i := range 2 {
		v, err := q.word(bcmLevels + 4*uint64(i))
		if err != nil {
			return nil, err
		}
		b.levels |= uint64(v) << (32 * i)
	}
	go b.follow(trace)
	return b, on()
}

func (b *bcm) follow(trace io.Reader) {
	s := bufio.NewScanner(trace)
	for s.Scan() {
		var cpu, size int
		var mr string
		var addr, value uint64
		_, rest, ok := strings.Cut(s.Text(), bcmTrace+" ")
		if !ok || !strings.HasSuffix(rest, "'bcm2835_gpio'") {
			continue
		}
		if _, err := fmt.Sscanf(rest, "cpu %d mr %s addr %v value %v size %d", &cpu, &mr, &addr, &value, &size); err != nil {
			b.broken(fmt.Errorf("read QEMU's trace %q: %w", rest, err))
			return
		}
		b.wrote(addr, uint32(value))
	}
	b.broken(fmt.Errorf("QEMU has ended: %v", s.Err()))
}

func (b *bcm) broken(err error) {
	b.mu.Lock()
	b.err = err
	b.mu.Unlock()
	b.edges.end(err)
}

// wrote applies a write, and tells of the pins that changed by it.
func (b *bcm) wrote(addr uint64, value uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.pins()
	switch {
	case addr < bcmSet:
		b.sel[(addr-bcmSelect)/4] = value
	case addr < bcmSet+8 && value == 0:
		b.told++
	case addr < bcmSet+8:
		b.levels |= uint64(value) << (8 * (addr - bcmSet))
	case addr >= bcmClear && addr < bcmClear+8:
		b.levels &^= uint64(value) << (8 * (addr - bcmClear))
	}
	now := b.pins()
	for line := range bcmLines {
		if (was^now)>>line&1 == 1 {
			b.edges.add(line, now>>line&1 == 1)
		}
	}
}

// pins gives the levels of all outputs; an input has its pull's.
func (b *bcm) pins() (out uint64) {
	for line := range bcmLines {
		high := line < pulledUp
		if b.sel[line/10]>>(3*(line%10))&7 == 1 {
			high = b.levels>>line&1 == 1
		}
		if high {
			out |= 1 << line
		}
	}
	return out
}

func (b *bcm) level(line int) (bool, error) {
	v, err := b.q.word(bcmLevels + 4*uint64(line/32))
	return v>>(line%32)&1 == 1, err
}

// drive writes the level: the emulated block has no inputs to set, but its level
// register keeps what is written for a line that is one.
func (b *bcm) drive(line int, high bool) error {
	reg := uint64(bcmClear)
	if high {
		reg = bcmSet
	}
	_, err := b.q.do("writel %#x %#x", reg+4*uint64(line/32), uint32(1)<<(line%32))
	return err
}

// sync writes nothing to a register, and waits for word of it.
func (b *bcm) sync(ctx context.Context) error {
	state := func() (int, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.told, b.err
	}
	before, _ := state()
	if _, err := b.q.do("writel %#x 0", bcmSet); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, qtestPatience)
	defer cancel()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		n, err := state()
		if err != nil || n > before {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return fmt.Errorf("QEMU's trace is silent: %w", ctx.Err())
		}
	}
}
