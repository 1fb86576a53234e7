package turnstile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// padBoard is a board whose registers outlive processes, as real ones do: a file
// with every write to them. What a wire sees is worked out from it.
type padBoard struct {
	mu    sync.Mutex
	f     *os.File
	pads  map[int]*pad
	pulls map[int]bool // the level of a pin that nobody drives
	noise bool         // every input changes each time that it is read
	reads int
	stuck map[int]bool // pins that never change
}

// pad is one pin's registers.
type pad struct{ latch, out bool }

// padOp is one write, a line of the file.
type padOp struct {
	MonoNS int64  `json:"mono_ns"`
	Pin    int    `json:"pin"`
	Op     string `json:"op"` // write, output or input
	High   bool   `json:"high"`
}

// openPadBoard takes up a board where an earlier process left it.
func openPadBoard(path string, pulls map[int]bool) (*padBoard, error) {
	b := &padBoard{pads: map[int]*pad{}, pulls: pulls, stuck: map[int]bool{}}
	ops, err := readPads(path)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		b.apply(op)
	}
	b.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return b, err
}

func readPads(path string) ([]padOp, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ops []padOp
	for line := range bytes.Lines(text) {
		var op padOp
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &op); err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func (b *padBoard) pad(pin int) *pad {
	if b.pads[pin] == nil {
		b.pads[pin] = &pad{}
	}
	return b.pads[pin]
}

func (b *padBoard) apply(op padOp) {
	switch p := b.pad(op.Pin); op.Op {
	case "write":
		p.latch = op.High
	default:
		p.out = op.Op == "output"
	}
}

// level is what a wire on the pin sees.
func (b *padBoard) level(pin int) bool {
	if p := b.pad(pin); p.out && !b.stuck[pin] {
		return p.latch
	}
	return b.pulls[pin]
}

func (b *padBoard) do(op padOp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	op.MonoNS = monotonicAt(time.Now())
	b.apply(op)
	text, err := json.Marshal(op)
	if err == nil {
		_, err = b.f.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

func (b *padBoard) write(pin int, high bool) { b.do(padOp{Pin: pin, Op: "write", High: high}) }
func (b *padBoard) output(pin int)           { b.do(padOp{Pin: pin, Op: "output"}) }
func (b *padBoard) input(pin int)            { b.do(padOp{Pin: pin, Op: "input"}) }

func (b *padBoard) pull(pin int, p Pull) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulls[pin] = p == PullUp
}

func (b *padBoard) read(pin int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	return b.level(pin) != (b.noise && !b.pad(pin).out && b.reads%2 == 0)
}

// padEdge is a change of what a wire sees.
type padEdge struct {
	high bool
	at   time.Duration // CLOCK_MONOTONIC
}

// padEdges gives a pin's history, from the level that its pull gives it.
func padEdges(t *testing.T, path string, pin int, pull bool) []padEdge {
	t.Helper()
	ops, err := readPads(path)
	if err != nil {
		t.Fatal(err)
	}
	b := &padBoard{pads: map[int]*pad{}, pulls: map[int]bool{pin: pull}}
	var edges []padEdge
	was := pull
	for _, op := range ops {
		if op.Pin != pin {
			continue
		}
		b.apply(op)
		if now := b.level(pin); now != was {
			edges = append(edges, padEdge{now, time.Duration(op.MonoNS)})
			was = now
		}
	}
	return edges
}

// levels are the edges without their times.
func levels(edges []padEdge) []bool {
	var l []bool
	for _, e := range edges {
		l = append(l, e.high)
	}
	return l
}

// Pins of the tests' wiring.
const (
	relayPin   = 17
	greenPin   = 22
	passagePin = 5
)

// padWiring wires a relay, a lamp and an input to a board in a file. The pulls of
// the outputs give them their idle level, as the wiring must.
func padWiring(path string, low bool) Wiring {
	w := Wiring{Driver: DriverRPIO, File: path, Pins: map[Line]int{LineRelay: relayPin, LineGreen: greenPin, LinePassageIn: passagePin}}
	if low {
		w.ActiveLow = []Line{LineRelay, LineGreen}
	}
	return w
}

// openPads opens what padWiring wires, in a keeper of the tests.
func openPads(w Wiring) (Lines, error) {
	if w.Driver == DriverSim {
		return Open(w)
	}
	if _, err := os.Stat(w.File + ".held"); err == nil {
		return nil, fmt.Errorf("pin %d (relay) is %w by %q", relayPin, ErrHeld, "a test")
	}
	low := slices.Contains(w.ActiveLow, LineRelay)
	b, err := openPadBoard(w.File, map[int]bool{relayPin: low, greenPin: low})
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(w.File + ".noise")
	b.noise = err == nil
	return newRegisters(b, w)
}
