package turnstile

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRandomCommands holds the relay's invariants against any order of calls:
// it is active only within the maximum on-time after a call or its own start,
// and each pulse begins and ends once, or is dropped, and keeps the gap.
func TestRandomCommands(t *testing.T) {
	const maxOn, gap = 3 * sec, 200 * ms
	for seed := range uint64(60) {
		inBubble(t, Options{MaxOn: maxOn, Gap: gap}, nil, func(t *testing.T, r *rig) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var calls []time.Duration
			pulses := map[Opening]int{}
			for range 200 {
				switch n := rnd.IntN(10); {
				case n < 3:
					r.mustOpen(time.Duration(1+rnd.IntN(5000)) * ms)
					calls = append(calls, time.Since(r.b.start))
				case n < 7:
					if o, err := r.Pulse(time.Duration(1+rnd.IntN(1000)) * ms); err == nil {
						pulses[o] = 0
					} else if !errors.Is(err, ErrBusy) {
						t.Fatal(err)
					}
				case n < 8:
					if err := r.Idle(); err != nil || r.b.isActive(LineRelay) {
						t.Fatalf("seed %d: active after Idle: %v", seed, err)
					}
				}
				r.wait(time.Duration(rnd.IntN(2000)) * ms)
			}
			r.wait(time.Minute)
			checkLimits(t, seed, r.b.of(LineRelay), calls, maxOn)
			checkPulses(t, seed, r.drain(), pulses, gap)
		})
	}
}

func checkLimits(t *testing.T, seed uint64, edges []edge, opens []time.Duration, maxOn time.Duration) {
	t.Helper()
	if len(edges)%2 != 0 || len(edges) < 20 {
		t.Fatalf("seed %d: %d edges", seed, len(edges))
	}
	for i := 0; i < len(edges); i += 2 {
		on, off := edges[i], edges[i+1]
		if !on.active || off.active {
			t.Fatalf("seed %d: edges do not alternate: %v %v", seed, on, off)
		}
		from := on.at
		for _, c := range opens {
			if c >= on.at && c < off.at {
				from = c
			}
		}
		if off.at-from > maxOn {
			t.Errorf("seed %d: active %v after the last call", seed, off.at-from)
		}
	}
}

func checkPulses(t *testing.T, seed uint64, events []Event, pulses map[Opening]int, gap time.Duration) {
	t.Helper()
	var ended time.Time
	for _, e := range events {
		_, pulse := pulses[e.Opening]
		switch e.Kind {
		case PulseBegin:
			if pulse && e.At.Sub(ended) < gap {
				t.Errorf("seed %d: pulse %v began %v after the relay became inactive", seed, e.Opening, e.At.Sub(ended))
			}
		case PulseEnd:
			ended = e.At
		}
		if pulse && e.Kind != PulseBegin {
			pulses[e.Opening]++
		}
	}
	for o, n := range pulses {
		if n != 1 {
			t.Errorf("seed %d: pulse %v ended or was dropped %d times", seed, o, n)
		}
	}
}
