package hil

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Edge is a change of an output's level, as a wire at the pin would see it.
type Edge struct {
	Line int
	High bool
	At   time.Time
}

func (e Edge) String() string {
	return fmt.Sprintf("line %d %s at %s", e.Line, level(e.High), e.At.Format("05.000"))
}

func level(high bool) string {
	if high {
		return "high"
	}
	return "low"
}

// block is an emulated GPIO block from outside.
type block interface {
	// level reads the level register.
	level(line int) (high bool, err error)
	// drive gives an input a level, as a contact at the pin does.
	drive(line int, high bool) error
	// sync returns when every edge that is over has been told.
	sync(ctx context.Context) error
}

// Pins are the lines of a board's GPIO block, from outside, with the history of
// the outputs' edges.
type Pins struct {
	block block
	edges *edges
}

// edges are what happened so far.
type edges struct {
	mu   sync.Mutex
	list []Edge
	news chan struct{} // closed and replaced at each edge
	err  error         // there will be no more
}

func newEdges() *edges { return &edges{news: make(chan struct{})} }

func (e *edges) add(line int, high bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, Edge{Line: line, High: high, At: time.Now()})
	close(e.news)
	e.news = make(chan struct{})
}

func (e *edges) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	close(e.news)
	e.news = make(chan struct{})
}

// Level reads a line's level.
func (p *Pins) Level(line int) (high bool, err error) { return p.block.level(line) }

// Drive gives an input a level, as a contact at the pin does.
func (p *Pins) Drive(line int, high bool) error { return p.block.drive(line, high) }

// Mark gives a place in the history of edges.
func (p *Pins) Mark(ctx context.Context) (int, error) {
	err := p.block.sync(ctx)
	p.edges.mu.Lock()
	defer p.edges.mu.Unlock()
	return len(p.edges.list), err
}

// Since gives the edges of a line after a mark.
func (p *Pins) Since(ctx context.Context, mark, line int) ([]Edge, error) {
	err := p.block.sync(ctx)
	p.edges.mu.Lock()
	defer p.edges.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.edges.list[mark:]), func(e Edge) bool { return e.Line != line }), err
}

// AwaitEdge waits for the first edge of a line to a level after a mark.
func (p *Pins) AwaitEdge(ctx context.Context, mark, line int, high bool) (Edge, error) {
	for {
		p.edges.mu.Lock()
		after, news, err := p.edges.list[mark:], p.edges.news, p.edges.err
		p.edges.mu.Unlock()
		i := slices.IndexFunc(after, func(e Edge) bool { return e.Line == line && e.High == high })
		if i >= 0 {
			return after[i], nil
		}
		if err != nil {
			return Edge{}, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return Edge{}, fmt.Errorf("line %d does not go %s, after the mark there are %v: %w", line, level(high), after, ctx.Err())
		}
	}
}
