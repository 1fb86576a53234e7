package hil

import (
	"context"
	"fmt"
	"slices"
)

// Pins are the lines of a board's GPIO block, from outside.
type Pins struct {
	q    *qtest
	gpio gpioBlock
	path string
}

// newPins has every change of an output reported from now on.
func newPins(q *qtest, g gpioBlock, path string) (*Pins, error) {
	if _, err := q.do("irq_intercept_out %s", path); err != nil {
		return nil, err
	}
	return &Pins{q: q, gpio: g, path: path}, nil
}

// Level reads a line's level.
func (p *Pins) Level(line int) (high bool, err error) {
	v, err := p.q.word(p.gpio.levels + 4*uint64(line/32))
	return v>>(line%32)&1 == 1, err
}

// Drive gives an input a level, as a contact at the pin does.
func (p *Pins) Drive(line int, high bool) error {
	if p.gpio.sets == 0 {
		_, err := p.q.do("set_irq_in %s unnamed-gpio-in %d %d", p.path, line, map[bool]int{true: 1}[high])
		return err
	}
	// The emulated block of a Pi has no inputs to drive, but its level register keeps
	// what is written for a line that is an input.
	reg := p.gpio.sets
	if !high {
		reg = p.gpio.clears
	}
	_, err := p.q.do("writel %#x %#x", reg+4*uint64(line/32), uint32(1)<<(line%32))
	return err
}

// Mark gives a place in the history of edges.
func (p *Pins) Mark() int {
	p.q.seen.Lock()
	defer p.q.seen.Unlock()
	return len(p.q.edges)
}

// Since gives the edges of a line after a mark.
func (p *Pins) Since(mark, line int) []Edge {
	p.q.seen.Lock()
	defer p.q.seen.Unlock()
	var out []Edge
	for _, e := range p.q.edges[mark:] {
		if e.Line == line {
			out = append(out, e)
		}
	}
	return out
}

// AwaitEdge waits for the first edge of a line to a level after a mark.
func (p *Pins) AwaitEdge(ctx context.Context, mark, line int, high bool) (Edge, error) {
	for {
		p.q.seen.Lock()
		i := slices.IndexFunc(p.q.edges[mark:], func(e Edge) bool { return e.Line == line && e.High == high })
		edges, news, err := p.q.edges[mark:], p.q.news, p.q.err
		p.q.seen.Unlock()
		if i >= 0 {
			return edges[i], nil
		}
		if err != nil {
			return Edge{}, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return Edge{}, fmt.Errorf("line %d does not go %s; its edges: %v: %w", line, map[bool]string{true: "high", false: "low"}[high], p.Since(mark, line), ctx.Err())
		}
	}
}
