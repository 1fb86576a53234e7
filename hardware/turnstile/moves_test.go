package turnstile

import (
	"context"
	"errors"
	"testing"
	"time"
)

// moves asks for proof with a patience of one second.
func moves(r *rig) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return r.Moves(ctx)
}

// writes is how often the driver heard of the relay.
func writes(r *rig) int {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return r.b.sets[LineRelay]
}

func TestMovesTouchesNoEdgeAndLengthensNothing(t *testing.T) {
	inBubble(t, Options{MaxOn: 5 * sec}, nil, func(t *testing.T, r *rig) {
		if err := moves(r); err != nil {
			t.Fatalf("idle: %v", err)
		}
		if n := writes(r); n != 1 {
			t.Errorf("the driver was written to %d times while idle, want once: a keeper that hangs must show", n)
		}
		r.mustOpen(3 * sec)
		before := writes(r)
		for range 2 {
			r.wait(sec)
			if err := moves(r); err != nil {
				t.Fatalf("open: %v", err)
			}
		}
		if n := writes(r); n != before {
			t.Errorf("%d writes while the relay was active: a driver counts each as a renewal", n-before)
		}
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 3 * sec}}, LineRelay)
	})
}

func TestMovesTellsLineThatHangs(t *testing.T) {
	for _, line := range []Line{LineRelay, LineRed} {
		inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
			stuck := make(chan struct{})
			r.b.mu.Lock()
			r.b.hang[line] = stuck
			r.b.mu.Unlock()
			r.Show(SignalFault)
			r.wait(ms)
			if err := moves(r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v hangs, and Moves gives %v", line, err)
			}
			close(stuck)
		})
	}
}

func TestMovesTakesFailedLineForLife(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		fail := func(err error) {
			r.b.mu.Lock()
			defer r.b.mu.Unlock()
			r.b.fail = func(Line, bool) error { return err }
		}
		fail(errors.New("no such chip"))
		if err := moves(r); err != nil {
			t.Errorf("a line that fails: %v", err)
		}
		got := r.drain()
		if len(got) != 1 || got[0].Kind != Fault {
			t.Errorf("events %v, want one fault", got)
		}
		fail(nil)
	})
}
