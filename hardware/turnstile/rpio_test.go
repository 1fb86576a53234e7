package turnstile

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openBoard(t *testing.T, path string, low bool) *padBoard {
	t.Helper()
	b, err := openPadBoard(path, map[int]bool{relayPin: low, greenPin: low})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.f.Close() })
	return b
}

// TestRegistersWithoutAnEdge: opening, closing, and opening again show nothing on
// a wire, whatever was left in a register before, and an opening shows itself.
func TestRegistersWithoutAnEdge(t *testing.T) {
	for name, low := range map[string]bool{"active high": false, "active low": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pads")
			w := padWiring(path, low)
			b := openBoard(t, path, low)
			b.write(relayPin, !low) // a pin that is an input has the active level in its register
			for range 3 {
				r, err := newRegisters(b, w)
				if err != nil {
					t.Fatal(err)
				}
				for _, active := range []bool{true, true, false} {
					if err := r.Set(LineRelay, active); err != nil {
						t.Fatal(err)
					}
					if high := b.read(relayPin); high != (active != low) {
						t.Errorf("set to %v, the wire is high: %v", active, high)
					}
				}
				if err := errors.Join(r.Set(LineAmber, true), r.Close(), r.Close()); err != nil {
					t.Error(err)
				}
				if err := r.Set(LineRelay, true); !errors.Is(err, ErrClosed) {
					t.Errorf("set after close: %v", err)
				}
			}
			if got := levels(padEdges(t, path, relayPin, low)); !slices.Equal(got, slices.Repeat([]bool{!low, low}, 3)) {
				t.Errorf("the relay's wire saw %v", got)
			}
			if got := padEdges(t, path, greenPin, low); len(got) > 0 {
				t.Errorf("the lamp's wire saw %v", got)
			}
		})
	}
}

// TestRegistersEndAnOpening: a killed process left the relay active; opening ends it.
func TestRegistersEndAnOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	for _, want := range [][]bool{{true}, {true, false, true}} {
		r, err := newRegisters(openBoard(t, path, false), padWiring(path, false))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Set(LineRelay, true); err != nil {
			t.Fatal(err)
		}
		if got := levels(padEdges(t, path, relayPin, false)); !slices.Equal(got, want) {
			t.Errorf("the relay's wire saw %v, want %v", got, want)
		}
	}
}

// TestShortCircuit: a pin that does not follow its register is an error that names
// it, at open and later.
func TestShortCircuit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	b := openBoard(t, path, false)
	r, err := newRegisters(b, padWiring(path, false))
	if err != nil {
		t.Fatal(err)
	}
	b.stuck[relayPin] = true
	if err := r.Set(LineRelay, true); err == nil || !strings.Contains(err.Error(), "pin 17 (relay) stays low") {
		t.Errorf("set: %v", err)
	}
	b.pulls[relayPin] = true
	if _, err := newRegisters(b, padWiring(path, false)); err == nil || !strings.Contains(err.Error(), "pin 17 (relay) stays high") {
		t.Errorf("open: %v", err)
	}
	if err := r.Close(); err == nil {
		t.Error("closed idle, which it is not")
	}
}

// TestPolledInputs: the first state of each input, then its changes, within a
// poll, with its polarity and its pull.
func TestPolledInputs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	b := openBoard(t, path, false)
	w := padWiring(path, false)
	w.ActiveLow = []Line{LinePassageIn}
	w.Pull = map[Line]Pull{LinePassageIn: PullUp}
	r, err := newRegisters(b, w)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var got []bool
		done := make(chan error, 1)
		go func() { done <- r.Watch(ctx, func(c Change) { got = append(got, c.Active) }) }()
		synctest.Wait()
		for _, high := range []bool{false, true} {
			b.mu.Lock()
			b.pulls[passagePin] = high
			b.mu.Unlock()
			time.Sleep(pollEvery)
			synctest.Wait()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, []bool{false, true, false}) {
			t.Errorf("the input was told as %v", got)
		}
	})
}
