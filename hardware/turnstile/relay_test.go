package turnstile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func TestOpenEndsInTime(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.wait(sec)
		o := r.mustOpen(2 * sec)
		r.wait(10 * sec)
		r.wantEdges([]edge{{LineRelay, true, sec}, {LineRelay, false, 3 * sec}}, LineRelay)
		got := r.drain()
		if len(got) != 2 || got[0].Kind != PulseBegin || got[1].Kind != PulseEnd || got[0].Opening != o || got[1].Opening != o {
			t.Errorf("events %v of opening %v", got, o)
		}
		if d := got[1].At.Sub(got[0].At); d != 2*sec {
			t.Errorf("events say that it lasted %v", d)
		}
	})
}

func TestRelayNeverOutlastsTheMaximum(t *testing.T) {
	for _, ask := range []func(*rig){
		func(r *rig) { r.mustOpen(time.Hour) },
		func(r *rig) { r.mustPulse(time.Hour) },
	} {
		inBubble(t, Options{MaxOn: 5 * sec}, nil, func(t *testing.T, r *rig) {
			ask(r) // and then the caller does nothing any more, not even read events
			r.wait(time.Minute)
			r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 5 * sec}}, LineRelay)
		})
	}
}

func TestRenewalShowsNoEdge(t *testing.T) {
	inBubble(t, Options{MaxOn: 5 * sec}, nil, func(t *testing.T, r *rig) {
		first := r.mustOpen(3 * sec)
		for range 100 {
			r.wait(2 * sec)
			if o := r.mustOpen(3 * sec); o != first {
				t.Fatalf("renewal is opening %v, not %v", o, first)
			}
		}
		r.mustOpen(sec) // asks for less than there is
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 203 * sec}}, LineRelay)
		if n := r.b.sets[LineRelay]; n < 102 {
			t.Errorf("the driver heard of %d writes: a driver with its own limit must hear each renewal", n)
		}
	})
}

func TestHangingLampDoesNotHoldTheRelay(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		release := make(chan struct{})
		r.b.hang[LineGreen] = release
		r.Show(SignalAdmit)
		r.mustOpen(2 * sec)
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 2 * sec}}, LineRelay)
		close(release)
	})
}

func TestPulsesFollowOneAnother(t *testing.T) {
	inBubble(t, Options{Gap: 200 * ms}, nil, func(t *testing.T, r *rig) {
		var asked []Opening
		for range 4 {
			asked = append(asked, r.mustPulse(500*ms))
		}
		r.wait(time.Minute)
		var want []edge
		for i := range 4 {
			begin := time.Duration(i) * 700 * ms
			want = append(want, edge{LineRelay, true, begin}, edge{LineRelay, false, begin + 500*ms})
		}
		r.wantEdges(want, LineRelay)
		got := r.drain()
		for i, o := range asked {
			if got[2*i].Kind != PulseBegin || got[2*i].Opening != o || got[2*i+1].Kind != PulseEnd || got[2*i+1].Opening != o {
				t.Fatalf("events of pulse %d: %v", i, got)
			}
		}
	})
}

func TestPulseKeepsTheGapToTheLastOne(t *testing.T) {
	inBubble(t, Options{Gap: 200 * ms}, nil, func(t *testing.T, r *rig) {
		r.mustPulse(500 * ms)
		r.wait(600 * ms) // the first one ended 100 ms ago
		r.mustPulse(500 * ms)
		r.wait(time.Minute)
		r.wantEdges([]edge{
			{LineRelay, true, 0}, {LineRelay, false, 500 * ms},
			{LineRelay, true, 700 * ms}, {LineRelay, false, 1200 * ms},
		}, LineRelay)
	})
}

func TestTooManyPulsesAreRefused(t *testing.T) {
	inBubble(t, Options{MaxOn: 2 * sec, Gap: 500 * ms}, nil, func(t *testing.T, r *rig) {
		r.mustPulse(500 * ms)
		r.mustPulse(500 * ms) // in 1 s
		r.mustPulse(500 * ms) // in 2 s
		if _, err := r.Pulse(500 * ms); !errors.Is(err, ErrBusy) {
			t.Errorf("a pulse in 3 s: %v", err)
		}
		r.wait(time.Minute)
		if n := len(r.b.of(LineRelay)); n != 6 {
			t.Errorf("%d edges", n)
		}
	})
}

func TestOpenAndIdleDropWhatWaits(t *testing.T) {
	inBubble(t, Options{Gap: 200 * ms}, nil, func(t *testing.T, r *rig) {
		first := r.mustPulse(500 * ms)
		second := r.mustPulse(500 * ms)
		if o := r.mustOpen(2 * sec); o != first {
			t.Errorf("an Open in a pulse is opening %v", o)
		}
		if got := r.drain(); len(got) != 2 || got[1].Kind != PulseDropped || got[1].Opening != second || !errors.Is(got[1].Err, ErrSuperseded) {
			t.Errorf("events of Open: %v", got)
		}
		r.wait(sec)
		third := r.mustPulse(500 * ms)
		if err := r.Idle(); err != nil {
			t.Fatal(err)
		}
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, sec}}, LineRelay)
		got := r.drain()
		if want := []Kind{PulseDropped, PulseEnd}; !slices.Equal(kinds(got), want) {
			t.Fatalf("events of Idle: %v", got)
		}
		if got[0].Opening != third || !errors.Is(got[0].Err, ErrSuperseded) || got[1].Opening != first {
			t.Errorf("events of Idle: %v", got)
		}
	})
}

func TestIdleOfAnIdleRelayDoesNothing(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		if err := r.Idle(); err != nil {
			t.Fatal(err)
		}
		r.wantEdges(nil, LineRelay)
		r.wantKinds()
	})
}

var errBroken = errors.New("broken driver")

func TestRelayThatCannotBeOpened(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.b.failing(func(line Line, active bool) error {
			if line == LineRelay && active {
				return errBroken
			}
			return nil
		})
		for range 3 {
			if _, err := r.Open(sec); !errors.Is(err, errBroken) {
				t.Errorf("Open: %v", err)
			}
			later, err := r.Pulse(sec) // it keeps the gap to what may have been active
			if err != nil {
				t.Errorf("Pulse in the gap: %v", err)
			}
			r.wait(sec)
			got := r.drain()
			if e := got[len(got)-1]; e.Kind != PulseDropped || e.Opening != later || !errors.Is(e.Err, errBroken) {
				t.Errorf("events %v", got)
			}
			if _, err := r.Pulse(sec); !errors.Is(err, errBroken) {
				t.Errorf("Pulse: %v", err)
			}
		}
		r.b.failing(nil)
		r.drain()
		r.wait(time.Minute)
		r.wantEdges(nil, LineRelay) // nothing that was refused comes later
	})
}

func TestRelayThatCannotBeClosed(t *testing.T) {
	inBubble(t, Options{Gap: 200 * ms}, nil, func(t *testing.T, r *rig) {
		r.mustPulse(sec)
		r.mustPulse(sec)
		r.b.failing(func(line Line, active bool) error {
			if line == LineRelay && !active {
				return errBroken
			}
			return nil
		})
		r.wait(10 * sec)
		// Told once, however often it is tried; the pulse that waited is gone.
		r.wantKinds(PulseBegin, Fault, PulseDropped)
		if _, err := r.Pulse(sec); !errors.Is(err, errBroken) {
			t.Errorf("Pulse while the relay hangs: %v", err)
		}
		if n := r.b.sets[LineRelay]; n < 50 {
			t.Errorf("tried %d times in 10 s", n)
		}
		r.b.failing(nil)
		r.wait(sec)
		r.wantKinds(FaultOff, PulseEnd)
		r.wait(time.Minute)
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, 10*sec + relayRetry}}, LineRelay)
	})
}

func TestFailedRenewalEndsTheOpening(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.mustOpen(5 * sec)
		r.wait(sec)
		r.b.failing(func(line Line, active bool) error {
			if active {
				return errBroken
			}
			return nil
		})
		if _, err := r.Open(5 * sec); !errors.Is(err, errBroken) {
			t.Errorf("Open: %v", err)
		}
		r.wantEdges([]edge{{LineRelay, true, 0}, {LineRelay, false, sec}}, LineRelay)
		r.wantKinds(PulseBegin, Fault, FaultOff, PulseEnd)
	})
}

func TestEndOfRun(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.Show(SignalAdmit)
		r.SetModeMark(true)
		r.mustPulse(10 * sec)
		r.mustPulse(10 * sec)
		r.wait(10 * ms)
		if !r.b.isActive(LineRelay) || !r.b.isActive(LineGreen) || !r.b.isActive(LineBuzzer) || !r.b.isActive(LineAmber) {
			t.Fatalf("before the end: %v", r.b.edges)
		}
		r.cancel()
		synctest.Wait()
		for line := LineRelay; line.Output(); line++ {
			if r.b.isActive(line) {
				t.Errorf("%v is active after the end", line)
			}
		}
		before := len(r.b.edges)
		if _, err := r.Open(sec); !errors.Is(err, ErrStopped) {
			t.Errorf("Open after the end: %v", err)
		}
		if err := r.Idle(); !errors.Is(err, ErrStopped) {
			t.Errorf("Idle after the end: %v", err)
		}
		r.Show(SignalRefuse)
		r.wait(time.Minute)
		if len(r.b.edges) != before {
			t.Errorf("edges after the end: %v", r.b.edges[before:])
		}
		if err := r.Run(t.Context()); err == nil {
			t.Error("a second Run was taken")
		}
	})
}

func TestStartAndEndWithoutAnEdge(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		r.wait(time.Minute)
		r.cancel()
		synctest.Wait()
		if len(r.b.edges) != 0 {
			t.Errorf("edges that nobody asked for: %v", r.b.edges)
		}
	})
}

func TestCommandBeforeRunWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		ts, err := New(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan error, 1)
		go func() {
			_, err := ts.Open(sec)
			opened <- err
		}()
		synctest.Wait()
		if len(opened) != 0 || len(b.edges) != 0 {
			t.Fatal("something happened before Run")
		}
		ended := make(chan error, 1)
		r := &rig{Turnstile: ts, t: t, b: b}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- ts.Run(ctx) }()
		r.wait(2 * sec)
		if err := <-opened; err != nil || len(b.edges) != 2 {
			t.Errorf("after Run: %v, %v", err, b.edges)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestImpossibleTimes(t *testing.T) {
	inBubble(t, Options{}, nil, func(t *testing.T, r *rig) {
		for _, d := range []time.Duration{0, -sec} {
			if _, err := r.Open(d); err == nil {
				t.Errorf("Open(%v) was taken", d)
			}
			if _, err := r.Pulse(d); err == nil {
				t.Errorf("Pulse(%v) was taken", d)
			}
		}
		r.wantEdges(nil, LineRelay)
	})
}

func TestOptionsTellEveryProblem(t *testing.T) {
	_, err := New(newBench(), Options{
		MaxOn: time.Hour, Gap: ms, Debounce: time.Minute,
		Timing: Timing{RefuseFor: -1, WaitPeriod: 1, MarkOn: sec, MarkPeriod: sec, Admitted: Beeps{Count: 1, On: 1}},
	})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"on-time", "gap", "debounce", "refusal", "wait", "period of the mode mark", "beep of an admission"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
}
