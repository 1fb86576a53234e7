package turnstile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var allInputs = []Line{LinePassageIn, LinePassageOut, LineReady, LineAlarm}

// idleInputs tells the states that a driver finds at its start.
func (b *bench) idleInputs() {
	for _, line := range b.wired {
		b.input(line, line == LineReady)
	}
}

func TestPassagesAreCountedOnce(t *testing.T) {
	inBubble(t, Options{}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		r.wait(sec)
		r.drain()
		for range 3 { // a contact that bounces for 6 ms at each end
			for _, closed := range []bool{true, false} {
				for range 2 {
					r.b.input(LinePassageIn, closed)
					r.wait(2 * ms)
					r.b.input(LinePassageIn, !closed)
					r.wait(ms)
				}
				r.b.input(LinePassageIn, closed)
				r.wait(100 * ms)
			}
		}
		r.b.input(LinePassageOut, true)
		r.wait(sec)
		r.wantKinds(PassageIn, PassageIn, PassageIn, PassageOut)
	})
}

func TestGlitchIsNoPassage(t *testing.T) {
	inBubble(t, Options{Debounce: 20 * ms}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		r.wait(sec)
		r.drain()
		for range 10 {
			r.b.input(LinePassageIn, true)
			r.wait(19 * ms)
			r.b.input(LinePassageIn, false)
			r.wait(19 * ms)
		}
		r.wantKinds()
	})
}

func TestPassageHasTheTimeOfItsEdge(t *testing.T) {
	inBubble(t, Options{Debounce: 50 * ms}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		r.wait(sec)
		r.drain()
		edge := time.Now()
		r.b.input(LinePassageIn, true)
		r.wait(sec)
		got := r.drain()
		if len(got) != 1 || !got[0].At.Equal(edge) {
			t.Errorf("got %v, the edge was at %v", got, edge)
		}
	})
}

// TestEdgesReadTogether: a driver that was held up delivers a whole passage at
// once. The edges' own times say that it was one.
func TestEdgesReadTogether(t *testing.T) {
	inBubble(t, Options{}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		r.wait(sec)
		r.drain()
		now := time.Now()
		for i := range 3 {
			begin := now.Add(time.Duration(i)*200*ms - sec)
			r.b.changes.put(Change{LinePassageIn, true, begin})
			r.b.changes.put(Change{LinePassageIn, false, begin.Add(100 * ms)})
		}
		r.wantKinds(PassageIn, PassageIn, PassageIn)
	})
}

func TestUndebouncedInputCountsAtOnce(t *testing.T) {
	inBubble(t, Options{Debounce: -1}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		r.drain()
		for range 5 {
			r.b.input(LinePassageIn, true)
			r.b.input(LinePassageIn, false)
		}
		r.wantKinds(PassageIn, PassageIn, PassageIn, PassageIn, PassageIn)
	})
}

func TestReadyAndAlarm(t *testing.T) {
	inBubble(t, Options{}, allInputs, func(t *testing.T, r *rig) {
		synctest.Wait()
		if r.Ready() || r.Alarmed() {
			t.Error("known before it was read")
		}
		r.b.input(LineReady, true)
		r.b.input(LineAlarm, true)
		r.wantKinds(ReadyOn, AlarmOn)
		if !r.Ready() || !r.Alarmed() {
			t.Error("not as the inputs are")
		}
		r.b.input(LineReady, false)
		r.b.input(LineAlarm, false)
		r.wait(sec)
		r.wantKinds(ReadyOff, AlarmOff)
		if r.Ready() || r.Alarmed() {
			t.Error("not as the inputs are")
		}
	})
}

func TestContactClosedAtTheStartIsNoPassage(t *testing.T) {
	inBubble(t, Options{}, allInputs, func(t *testing.T, r *rig) {
		r.b.input(LinePassageIn, true)
		r.wait(sec)
		r.wantKinds()
		r.b.input(LinePassageIn, false)
		r.wait(sec)
		r.b.input(LinePassageIn, true)
		r.wait(sec)
		r.wantKinds(PassageIn)
	})
}

func TestWithoutInputs(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		if !r.Ready() || r.Alarmed() || r.HasPassage() {
			t.Error("a turnstile without inputs is ready, has no alarm and sees no passage")
		}
	})
	inBubble(t, Options{}, allInputs, func(t *testing.T, r *rig) {
		if !r.HasPassage() {
			t.Error("it has one")
		}
	})
}

func TestLostInputsEndTheRunWithTheRelayInactive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(allInputs...)
		ts, err := New(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- ts.Run(context.Background()) }()
		if _, err := ts.Open(10 * sec); err != nil {
			t.Fatal(err)
		}
		b.lost <- errBroken
		if err := <-ended; !errors.Is(err, errBroken) {
			t.Errorf("Run: %v", err)
		}
		if b.isActive(LineRelay) {
			t.Error("the relay is active")
		}
	})
}

func TestNobodyReadsTheEvents(t *testing.T) {
	inBubble(t, Options{Debounce: -1}, allInputs, func(t *testing.T, r *rig) {
		r.b.idleInputs()
		for range 3 * eventLimit {
			r.b.input(LinePassageIn, true)
			r.b.input(LinePassageIn, false)
		}
		synctest.Wait()
		r.b.input(LinePassageOut, true)
		r.mustOpen(sec)
		r.wait(10 * sec)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, sec}}, LineRelay)
		got := kinds(r.drain())
		if len(got) != eventLimit {
			t.Errorf("%d events kept", len(got))
		}
		for _, k := range []Kind{PassageOut, PulseBegin, PulseEnd} {
			if !slices.Contains(got[len(got)-3:], k) {
				t.Errorf("the newest events are %v", got[len(got)-3:])
			}
		}
	})
}
