package turnstile

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// readTrace reads a trace strictly: every line is one change.
func readTrace(t *testing.T, text []byte) []traceLine {
	t.Helper()
	var lines []traceLine
	for raw := range bytes.Lines(text) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		var l traceLine
		if err := d.Decode(&l); err != nil {
			t.Fatalf("line %q: %v", raw, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// history is the changes of a line, as in the trace.
func history(lines []traceLine, line Line) []bool {
	var h []bool
	for _, l := range lines {
		if l.Line == line.String() {
			h = append(h, l.Active)
		}
	}
	return h
}

func openSim(t *testing.T, o SimOptions) *Sim {
	t.Helper()
	s, err := NewSim(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// withSim runs f with a turnstile over a simulated one in a bubble, and gives
// what the lines did until both were closed.
func withSim(t *testing.T, o SimOptions, f func(t *testing.T, ts *Turnstile, s *Sim)) []traceLine {
	t.Helper()
	var text bytes.Buffer
	o.Trace = &text
	synctest.Test(t, func(t *testing.T) {
		s := openSim(t, o)
		ts, err := New(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ts.Run(ctx) }()
		f(t, ts, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return readTrace(t, text.Bytes())
}

// TestBothPolarities: the levels are opposite, what is active is the same, and
// opening and closing make no edge on any line.
func TestBothPolarities(t *testing.T) {
	outputs := []Line{LineRelay, LineRed, LineGreen, LineAmber, LineBuzzer, LineLight}
	for name, activeLow := range map[string][]Line{"active high": nil, "active low": append(outputs, allInputs...)} {
		t.Run(name, func(t *testing.T) {
			low := activeLow != nil
			trace := withSim(t, SimOptions{ActiveLow: activeLow, Inputs: allInputs}, func(t *testing.T, ts *Turnstile, s *Sim) {
				synctest.Wait()
				for _, line := range append(outputs, LinePassageIn, LinePassageOut, LineAlarm) {
					if s.Active(line) || s.High(line) != low {
						t.Errorf("%v at the start: active %v, high %v", line, s.Active(line), s.High(line))
					}
				}
				if !ts.Ready() || s.High(LineReady) == low {
					t.Errorf("ready at the start: %v, high %v", ts.Ready(), s.High(LineReady))
				}
				if _, err := ts.Open(sec); err != nil {
					t.Error(err)
				}
				if !s.Active(LineRelay) || s.High(LineRelay) == low {
					t.Errorf("an open relay: active %v, high %v", s.Active(LineRelay), s.High(LineRelay))
				}
				time.Sleep(5 * sec)
			})
			if h := history(trace, LineRelay); !slices.Equal(h, []bool{true, false}) || len(trace) != 2 {
				t.Errorf("the lines did %v", trace)
			}
		})
	}
}

func TestSimulatedPassages(t *testing.T) {
	type at struct {
		kind Kind
		at   time.Duration // since the relay became active, 1 s after the start
	}
	for _, c := range []struct {
		passage Passage
		want    []at
	}{
		{PassageAuto, []at{{PulseBegin, 0}, {PassageIn, 200 * ms}, {PulseEnd, sec}}},
		{PassageNever, []at{{PulseBegin, 0}, {PulseEnd, sec}}},
		{PassageTwice, []at{{PulseBegin, 0}, {PassageIn, 200 * ms}, {PassageIn, 400 * ms}, {PulseEnd, sec}}},
		{PassageNow, []at{{PassageIn, -sec}, {PulseBegin, 0}, {PassageIn, 200 * ms}, {PulseEnd, sec}}},
		{PassageExit, []at{{PassageOut, -sec}, {PulseBegin, 0}, {PassageIn, 200 * ms}, {PulseEnd, sec}}},
	} {
		t.Run(string(c.passage), func(t *testing.T) {
			withSim(t, SimOptions{Inputs: []Line{LinePassageIn, LinePassageOut}}, func(t *testing.T, ts *Turnstile, s *Sim) {
				begin := time.Now().Add(sec)
				synctest.Wait()
				if err := s.SetPassage(c.passage); err != nil {
					t.Fatal(err)
				}
				time.Sleep(sec)
				if _, err := ts.Open(sec); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * sec)
				r := &rig{Turnstile: ts}
				var got []at
				for _, e := range r.drain() {
					got = append(got, at{e.Kind, e.At.Sub(begin)})
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestPassagesAtOnceAreTwo(t *testing.T) {
	withSim(t, SimOptions{Inputs: allInputs}, func(t *testing.T, ts *Turnstile, s *Sim) {
		r := &rig{Turnstile: ts, t: t}
		r.drain()
		for range 3 {
			if err := s.SetPassage(PassageNow); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * sec)
		r.wantKinds(PassageIn, PassageIn, PassageIn)
	})
}

func TestSimulatedInputs(t *testing.T) {
	withSim(t, SimOptions{Inputs: []Line{LineReady, LineAlarm}}, func(t *testing.T, ts *Turnstile, s *Sim) {
		r := &rig{Turnstile: ts, t: t}
		r.wantKinds(ReadyOn, AlarmOff)
		for line, active := range map[Line]bool{LineReady: false, LineAlarm: true} {
			if err := s.SetInput(line, active); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(sec)
		if ts.Ready() || !ts.Alarmed() {
			t.Error("the inputs were not seen")
		}
		if s.SetInput(LinePassageIn, true) == nil || s.SetPassage(PassageNow) == nil || s.SetPassage(PassageExit) == nil {
			t.Error("an input that is not wired changed")
		}
		if s.SetPassage("often") == nil {
			t.Error("an unknown passage was taken")
		}
	})
}

func TestBrokenLineOfTheSimulation(t *testing.T) {
	trace := withSim(t, SimOptions{}, func(t *testing.T, ts *Turnstile, s *Sim) {
		s.Break(LineRelay, errBroken)
		if _, err := ts.Open(sec); err == nil {
			t.Error("a broken relay opened")
		}
		s.Break(LineRelay, nil)
		time.Sleep(sec)
	})
	if len(trace) != 0 {
		t.Errorf("the lines did %v", trace)
	}
}

func TestImpossibleSimulations(t *testing.T) {
	for name, o := range map[string]SimOptions{
		"an output as input": {Inputs: []Line{LineRelay}},
		"no such line":       {ActiveLow: []Line{lineCount}},
		"no such passage":    {Passage: "sometimes"},
		"now does not last":  {Passage: PassageNow},
		"a directory":        {Path: t.TempDir()},
		"no directory":       {Path: filepath.Join(t.TempDir(), "none", "turnstile.jsonl")},
	} {
		if _, err := NewSim(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestLineNames(t *testing.T) {
	for line := range lineCount {
		if got, err := ParseLine(line.String()); err != nil || got != line {
			t.Errorf("%v reads as %v: %v", line, got, err)
		}
		if line.Input() == line.Output() {
			t.Errorf("%v is input and output, or neither", line)
		}
	}
	for _, bad := range []string{"", "Relay", "relay ", "line(0)"} {
		if _, err := ParseLine(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
