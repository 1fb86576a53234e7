package turnstile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/warthog618/go-gpiocdev"
)

// chip is one GPIO chip of the kernel, chipLine one requested line of it, as
// go-gpiocdev has them.
type (
	chip interface {
		Lines() int
		LineInfo(offset int) (gpiocdev.LineInfo, error)
		RequestLine(offset int, o ...gpiocdev.LineReqOption) (chipLine, error)
		Close() error
	}
	chipLine interface {
		SetValue(value int) error
		Value() (int, error)
		Close() error
	}
)

// chips is what the kernel has: the labels of all chips, and the chip itself.
type chips interface {
	names() []string
	open(name string) (label string, c chip, err error)
}

// chipLines is the driver gpiochip. Each line is a request of its own, so that an
// error names the line; the kernel gives it to nobody else meanwhile. Values are
// the kernel's: 1 is active, whatever the polarity.
type chipLines struct {
	w       Wiring
	changes *mailbox[edgeSeen]

	mu     sync.Mutex
	closed bool
	lines  map[Line]chipLine
}

// edgeSeen is an edge of an input with its number among those of its line.
type edgeSeen struct {
	change Change
	seq    uint32
}

func openGPIOChip(w Wiring) (Lines, error) { return newChipLines(kernelChips{}, w) }

func newChipLines(kernel chips, w Wiring) (*chipLines, error) {
	c, err := findChip(kernel, w.Chip)
	if err != nil {
		return nil, err
	}
	defer c.Close() // lines outlive their chip's file
	d := &chipLines{w: w, changes: newMailbox[edgeSeen](), lines: map[Line]chipLine{}}
	for _, line := range w.lines() {
		l, err := d.request(c, line)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.lines[line] = l
	}
	return d, nil
}

// findChip finds a chip by its label: the numbers change with the kernel.
func findChip(kernel chips, label string) (chip, error) {
	var labels []string
	var denied error
	for _, name := range kernel.names() {
		got, c, err := kernel.open(name)
		if errors.Is(err, os.ErrPermission) {
			denied = err
		}
		if err != nil {
			continue // a link, or a chip that has just gone
		}
		if got == label {
			return c, nil
		}
		labels = append(labels, got)
		_ = c.Close() // nothing was asked of it
	}
	switch {
	case denied != nil:
		return nil, fmt.Errorf("find GPIO chip %q: add the user to group gpio: %w", label, denied)
	case len(labels) == 0:
		return nil, fmt.Errorf("find GPIO chip %q: this kernel has no GPIO chip: is this the board that the configuration is for?", label)
	}
	slices.Sort(labels)
	return nil, fmt.Errorf("find GPIO chip %q: the chips here are %s: name one of them", label, strings.Join(labels, ", "))
}

// request takes one line. The value of an output is in the request, so that it is
// there with the direction, and no edge on the way.
func (d *chipLines) request(c chip, line Line) (chipLine, error) {
	pin := d.w.Pins[line]
	if pin >= c.Lines() {
		return nil, fmt.Errorf("pin %d (%v) is not on chip %s: it has 0 to %d: name one of these", pin, line, d.w.Chip, c.Lines()-1)
	}
	l, err := c.RequestLine(pin, d.options(line)...)
	switch {
	case errors.Is(err, syscall.EBUSY):
		who := "an unnamed user"
		if info, err := c.LineInfo(pin); err == nil && info.Consumer != "" {
			who = fmt.Sprintf("%q", info.Consumer)
		}
		return nil, fmt.Errorf("pin %d (%v) is %w by %s: end that, or name another pin", pin, line, ErrHeld, who)
	case err != nil:
		return nil, fmt.Errorf("request pin %d (%v): %w", pin, line, err)
	}
	return l, nil
}

func (d *chipLines) options(line Line) []gpiocdev.LineReqOption {
	o := []gpiocdev.LineReqOption{gpiocdev.WithConsumer("gated " + line.String())}
	if d.w.activeLow(line) {
		o = append(o, gpiocdev.AsActiveLow)
	}
	if line.Output() {
		return append(o, gpiocdev.AsOutput(0))
	}
	o = append(o, gpiocdev.AsInput, gpiocdev.WithBothEdges, gpiocdev.WithEventHandler(d.edge(line)))
	if d.w.Debounce > 0 {
		o = append(o, gpiocdev.WithDebounce(d.w.Debounce))
	}
	switch d.w.Pull[line] {
	case PullUp:
		o = append(o, gpiocdev.WithPullUp)
	case PullDown:
		o = append(o, gpiocdev.WithPullDown)
	case PullNone:
		o = append(o, gpiocdev.WithBiasDisabled)
	}
	return o
}

// edge takes the kernel's edges of an input.
func (d *chipLines) edge(line Line) gpiocdev.EventHandler {
	return func(e gpiocdev.LineEvent) {
		d.changes.put(edgeSeen{seq: e.LineSeqno, change: Change{
			Line: line, Active: e.Type == gpiocdev.LineEventRisingEdge, At: atMonotonic(int64(e.Timestamp)),
		}})
	}
}

// Set implements Lines.
func (d *chipLines) Set(line Line, active bool) error {
	if !line.Output() {
		return fmt.Errorf("%v is no output", line)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	l, wired := d.lines[line]
	if !wired {
		return nil
	}
	value := 0
	if active {
		value = 1
	}
	if err := l.SetValue(value); err != nil {
		return fmt.Errorf("set pin %d: %w", d.w.Pins[line], err)
	}
	return nil
}

// Inputs implements Lines.
func (d *chipLines) Inputs() []Line { return d.w.inputs() }

// Watch implements Lines. Where the kernel had no room for an edge, the state is
// read.
func (d *chipLines) Watch(ctx context.Context, changed func(Change)) error {
	for _, line := range d.Inputs() {
		if err := d.read(line, changed); err != nil {
			return err
		}
	}
	var last [lineCount]uint32
	for {
		for _, e := range d.changes.take() {
			line := e.change.Line
			missed := e.seq > last[line]+1
			last[line] = e.seq
			changed(e.change)
			if !missed {
				continue
			}
			if err := d.read(line, changed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.changes.wake:
		}
	}
}

func (d *chipLines) read(line Line, changed func(Change)) error {
	d.mu.Lock()
	l := d.lines[line]
	d.mu.Unlock()
	v, err := l.Value()
	if err != nil {
		return fmt.Errorf("read pin %d (%v): %w", d.w.Pins[line], line, err)
	}
	changed(Change{Line: line, Active: v != 0, At: time.Now()})
	return nil
}

// Close implements Lines. The kernel may leave a released line at its level, or
// make it an input: both are idle after this.
func (d *chipLines) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	var errs []error
	for _, line := range d.w.lines() {
		l, ok := d.lines[line]
		if !ok {
			continue
		}
		if line.Output() {
			if err := l.SetValue(0); err != nil {
				errs = append(errs, fmt.Errorf("set pin %d: %w", d.w.Pins[line], err))
			}
		}
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// kernelChips are the real ones.
type kernelChips struct{}

func (kernelChips) names() []string { return gpiocdev.Chips() }

func (kernelChips) open(name string) (string, chip, error) {
	c, err := gpiocdev.NewChip(name, gpiocdev.WithABIVersion(2))
	if err != nil {
		return "", nil, err
	}
	return c.Label, kernelChip{c}, nil
}

// kernelChip gives its lines as the interface.
type kernelChip struct{ *gpiocdev.Chip }

func (c kernelChip) RequestLine(offset int, o ...gpiocdev.LineReqOption) (chipLine, error) {
	l, err := c.Chip.RequestLine(offset, o...)
	if err != nil {
		return nil, err
	}
	return l, nil
}
