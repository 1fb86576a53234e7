package turnstile

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// keptBench is a keeper over a bench, in a bubble, and the parent's side of its pipes.
type keptBench struct {
	*bench
	t     *testing.T
	in    *io.PipeWriter
	ended chan error

	mu   sync.Mutex
	told []frame
}

// withKeeper runs f with a keeper that has opened a bench's lines.
func withKeeper(t *testing.T, wired []Line, f func(k *keptBench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		k := &keptBench{bench: newBench(wired...), t: t, in: inW, ended: make(chan error, 1)}
		go func() {
			k.ended <- Keep(inR, outW, func(Wiring) (Lines, error) { return k.bench, nil })
			_ = inR.Close()
		}()
		go func() {
			for out := newFrames(outR); ; {
				fr, err := out.next()
				if err != nil {
					return
				}
				k.mu.Lock()
				k.told = append(k.told, fr)
				k.mu.Unlock()
			}
		}()
		k.send(frame{Do: verbOpen, Terms: &terms{MaxOn: 5 * sec, Silent: sec}})
		f(k)
		_ = inW.Close()
		if err := <-k.ended; err != nil {
			t.Errorf("keeper: %v", err)
		}
		_ = outW.Close()
		for line := LineRelay; line.Output(); line++ {
			if k.isActive(line) {
				t.Errorf("%v is active after the keeper's end", line)
			}
		}
	})
}

func (k *keptBench) send(fr frame) {
	k.t.Helper()
	if err := writeFrame(k.in, fr); err != nil {
		k.t.Fatal(err)
	}
	synctest.Wait()
}

func (k *keptBench) set(line Line, active bool) {
	k.send(frame{Do: verbSet, Line: line, Active: active})
}

// beats lets the parent be heard for a time.
func (k *keptBench) beats(d time.Duration) {
	for ; d > 0; d -= 250 * ms {
		time.Sleep(250 * ms)
		k.send(frame{Do: verbBeat})
	}
}

// of gives what was told by a verb.
func (k *keptBench) of(do verb) (found []frame) {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, fr := range k.told {
		if fr.Do == do {
			found = append(found, fr)
		}
	}
	return found
}

func (k *keptBench) wantEdges(want ...edge) {
	k.t.Helper()
	if got := k.bench.of(LineRelay); !slices.Equal(got, want) {
		k.t.Errorf("the relay's edges: got %v, want %v", got, want)
	}
}

// TestSilentParent: while an output is active, the parent must be heard; while
// none is, it may be silent for as long as it likes.
func TestSilentParent(t *testing.T) {
	withKeeper(t, nil, func(k *keptBench) {
		time.Sleep(time.Hour)
		k.set(LineRelay, true)
		k.set(LineGreen, true)
		k.beats(3 * sec)
		k.wantEdges(edge{LineRelay, true, time.Hour})
		time.Sleep(time.Hour)
		synctest.Wait()
		k.wantEdges(edge{LineRelay, true, time.Hour}, edge{LineRelay, false, time.Hour + 4*sec})
		if k.isActive(LineGreen) {
			t.Error("a lamp is on without a parent")
		}
		if told := k.of(verbTripped); len(told) != 1 || !strings.Contains(told[0].Err, "silent for 1s") {
			t.Errorf("told %v", told)
		}
		k.set(LineRelay, true) // it is back
		k.set(LineRelay, false)
		if got := k.bench.of(LineRelay); len(got) != 4 {
			t.Errorf("a parent that came back has %v", got)
		}
	})
}

// TestKeeperHasAMaximumOfItsOwn: a parent that lives and forgets the relay.
func TestKeeperHasAMaximumOfItsOwn(t *testing.T) {
	withKeeper(t, nil, func(k *keptBench) {
		k.set(LineRelay, true)
		k.beats(3 * sec)
		k.set(LineRelay, true) // renewed
		k.beats(time.Minute)
		k.wantEdges(edge{LineRelay, true, 0}, edge{LineRelay, false, 8 * sec})
		if told := k.of(verbTripped); len(told) != 1 || !strings.Contains(told[0].Err, "active for 5s") {
			t.Errorf("told %v", told)
		}
	})
}

// TestKeeperTriesAgain: a relay that cannot be made inactive is tried until it is,
// also when the parent is gone.
func TestKeeperTriesAgain(t *testing.T) {
	stuck := func(line Line, active bool) error {
		if line == LineRelay && !active {
			return errors.New("stuck")
		}
		return nil
	}
	withKeeper(t, nil, func(k *keptBench) {
		k.set(LineRelay, true)
		k.failing(stuck)
		time.Sleep(2*sec + idleRetry/2)
		k.failing(nil)
		time.Sleep(idleRetry)
		synctest.Wait()
		k.wantEdges(edge{LineRelay, true, 0}, edge{LineRelay, false, 2*sec + idleRetry})

		k.set(LineRelay, true)
		k.failing(stuck)
		k.set(LineRelay, false)
		time.AfterFunc(sec, func() { k.failing(nil) })
	}) // and withKeeper sees it inactive
}

// TestKeeperAnswers: each order by its number, an error with its text, and changes
// of inputs with their time.
func TestKeeperAnswers(t *testing.T) {
	withKeeper(t, []Line{LinePassageIn}, func(k *keptBench) {
		k.input(LinePassageIn, true)
		k.failing(func(line Line, _ bool) error {
			if line == LineRed {
				return errors.New("pin 27 (red) stays low")
			}
			return nil
		})
		k.send(frame{Do: verbSet, ID: 7, Line: LineRed, Active: true})
		k.send(frame{Do: verbSet, ID: 8, Line: LinePassageIn, Active: true})
		k.send(frame{Do: verbPassage, ID: 9, Passage: PassageNow})
		k.failing(nil)
		want := []string{"pin 27 (red) stays low", "passage_in is no output", "this turnstile is not simulated"}
		for i, a := range k.of(verbAnswer) {
			if a.ID != uint64(7+i) || a.Err != want[i] {
				t.Errorf("answer %d: %+v", i, a)
			}
		}
		changes := k.of(verbChange)
		if len(changes) != 1 || changes[0].Line != LinePassageIn || !changes[0].Active || changes[0].MonoNS == 0 {
			t.Errorf("changes %+v", changes)
		}
	})
}

// TestKeeperEnds: whatever the reason, every output is inactive then.
func TestKeeperEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(k *keptBench)
		wrong string
	}{
		"nonsense":        {func(k *keptBench) { _, _ = k.in.Write([]byte("open the gate\n")) }, "read frame"},
		"an unknown verb": {func(k *keptBench) { k.send(frame{Do: "dance"}) }, `"dance" is no order`},
		"a long frame": {func(k *keptBench) {
			go func() { _, _ = k.in.Write(make([]byte, 1<<20)) }()
		}, "more than 16384 bytes"},
		"lost inputs": {func(k *keptBench) { k.lost <- errors.New("pulled out") }, "watch inputs: pulled out"},
		"a chip that is gone": {func(k *keptBench) {
			k.failing(func(line Line, _ bool) error {
				if line == LineRed {
					return syscall.ENODEV
				}
				return nil
			})
			k.set(LineRed, true)
			k.failing(nil)
		}, "no such device"},
	} {
		t.Run(name, func(t *testing.T) {
			withKeeper(t, []Line{LineReady}, func(k *keptBench) {
				k.set(LineRelay, true)
				c.do(k)
				if err := <-k.ended; err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("ended with %v, want %q", err, c.wrong)
				}
				if k.isActive(LineRelay) {
					t.Error("the relay is active after the keeper's end")
				}
				k.ended <- nil
			})
		})
	}
}

// TestKeeperWaitsForHeldLines: the process before may need a moment to end.
func TestKeeperWaitsForHeldLines(t *testing.T) {
	for _, free := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			until := time.Now().Add(500 * ms)
			var out strings.Builder
			in := strings.NewReader(`{"do":"open","terms":{"max_on":1000000000,"silent":1000000000,"retry":1000000000}}` + "\n")
			err := Keep(in, &out, func(Wiring) (Lines, error) {
				if !free || time.Now().Before(until) {
					return nil, ErrHeld
				}
				return newBench(), nil
			})
			synctest.Wait()
			if err != nil || free == strings.Contains(out.String(), `"held":true`) {
				t.Errorf("free %v: %v, told %s", free, err, out.String())
			}
		})
	}
	if err := Keep(strings.NewReader("{\"do\":\"beat\"}\n"), io.Discard, nil); err == nil {
		t.Error("a keeper without an order to open")
	}
}
