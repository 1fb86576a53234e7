package turnstile

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// polarities are the two ways to wire a relay.
var polarities = map[string]bool{"active high": false, "active low": true}

// eventually waits until f is true of something that another process does.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * ms)
	defer tick.Stop()
	limit := time.After(30 * sec)
	for !f() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// TestKeeperThatNobodyHears: a keeper that tells something meets a broken pipe
// before the end of its orders. That must not be its death: the lines come after.
func TestKeeperThatNobodyHears(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	write(t, path+".noise", "")
	cmd := exec.Command(os.Args[0], "keeper")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	opened := frame{Do: verbOpen, Terms: &terms{Wiring: padWiring(path, false), MaxOn: time.Hour, Silent: time.Hour}}
	if err := errors.Join(writeFrame(in, opened), writeFrame(in, frame{Do: verbSet, Line: LineRelay, Active: true})); err != nil {
		t.Fatal(err)
	}
	relay := func() []bool { return levels(padEdges(t, path, relayPin, false)) }
	eventually(t, "the relay is active", func() bool { return len(relay()) == 1 })
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the keeper ended with %v", err)
	}
	if got := relay(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("the relay's wire saw %v", got)
	}
}

// kept is a turnstile of this process over a keeper.
type kept struct {
	*Turnstile
	k      *Kept
	path   string
	events chan Event
}

// runKept runs a turnstile over a keeper until the test ends.
func runKept(t *testing.T, w Wiring, o KeptOptions) *kept {
	t.Helper()
	o.Wiring, o.Command, o.Stderr = w, []string{os.Args[0], "keeper"}, os.Stderr
	k, err := NewKept(o)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := New(k, Options{MaxOn: o.MaxOn})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ts.Run(ctx) }()
	r := &kept{Turnstile: ts, k: k, path: w.File, events: make(chan Event, 1000)}
	go func() {
		for {
			select {
			case e := <-ts.Events():
				r.events <- e
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, k.Close(), k.Close()); err != nil {
			t.Errorf("at the end: %v", err)
		}
	})
	return r
}

func (r *kept) hear(t *testing.T, want Kind) Event {
	t.Helper()
	limit := time.After(30 * sec)
	for {
		select {
		case e := <-r.events:
			if e.Kind == want {
				return e
			}
		case <-limit:
			t.Fatalf("no %v within 30 s", want)
		}
	}
}

// signal sends the keeper a signal.
func (r *kept) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	r.k.mu.Lock()
	pid := r.k.link.pid
	r.k.mu.Unlock()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// TestLostKeeper: killed, or stopped so that it answers no more, it is replaced,
// the relay is inactive, the gate hears of both, and the turnstile works again.
func TestLostKeeper(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for name, low := range polarities {
			t.Run(sig.String()+" "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pads")
				r := runKept(t, padWiring(path, low), KeptOptions{MaxOn: 100 * sec, Patience: sec, Silent: sec})
				if _, err := r.Open(time.Minute); err != nil {
					t.Fatal(err)
				}
				r.signal(t, sig)
				if e := r.hear(t, DriverLost); !errors.Is(e.Err, ErrLost) {
					t.Errorf("lost: %v", e.Err)
				}
				r.hear(t, DriverBack)
				r.hear(t, PulseEnd)
				if _, err := r.Pulse(100 * ms); err != nil {
					t.Error(err)
				}
				r.hear(t, PulseEnd)
				if got := levels(padEdges(t, path, relayPin, low)); !slices.Equal(got, []bool{!low, low, !low, low}) {
					t.Errorf("the relay's wire saw %v", got)
				}
			})
		}
	}
}

// TestKeeperIsDeafToSignals: what ends the parent's group does not end the keeper
// before the parent.
func TestKeeperIsDeafToSignals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	r := runKept(t, padWiring(path, false), KeptOptions{MaxOn: 100 * sec})
	if _, err := r.Open(time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT} {
		r.signal(t, sig)
	}
	if _, err := r.Open(time.Minute); err != nil || r.Lost() != nil {
		t.Error(err, r.Lost())
	}
	if err := r.Idle(); err != nil {
		t.Error(err)
	}
	if got := levels(padEdges(t, path, relayPin, false)); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("the relay's wire saw %v", got)
	}
}

// TestLinesThatCannotBeOpened: the gate lives without them, says who holds them,
// and has them when they are free.
func TestLinesThatCannotBeOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pads")
	write(t, path+".held", "")
	r := runKept(t, padWiring(path, false), KeptOptions{Patience: sec})
	if e := r.hear(t, DriverLost); !strings.Contains(e.Err.Error(), `in use by "a test"`) {
		t.Errorf("lost: %v", e.Err)
	}
	if _, err := r.Pulse(sec); !errors.Is(err, ErrLost) || r.Ready() {
		t.Errorf("pulse without lines: %v, ready %v", err, r.Ready())
	}
	if err := os.Remove(path + ".held"); err != nil {
		t.Fatal(err)
	}
	r.hear(t, DriverBack)
	if _, err := r.Pulse(50 * ms); err != nil {
		t.Error(err)
	}
	r.hear(t, PulseEnd)
}

// TestKeeperThatCannotStart: the same, where there is no keeper at all.
func TestKeeperThatCannotStart(t *testing.T) {
	k, err := NewKept(KeptOptions{Command: []string{"/nonexistent/gated"}, Wiring: Wiring{Driver: DriverSim}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 10)
	k.Notify(func(why error) {
		lost <- why
		cancel()
	})
	if err := k.Watch(ctx, func(Change) {}); err != nil {
		t.Error(err)
	}
	if why := <-lost; why == nil || !strings.Contains(why.Error(), "start turnstile's keeper") {
		t.Errorf("lost: %v", why)
	}
	if err := k.Set(LineRelay, true); !errors.Is(err, ErrLost) {
		t.Errorf("set: %v", err)
	}
	if _, err := NewKept(KeptOptions{Wiring: Wiring{Driver: "gpio"}}); err == nil {
		t.Error("a keeper for no driver")
	}
}

// TestSimBehindAKeeper: the simulated turnstile is scripted and traced as ever.
func TestSimBehindAKeeper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turnstile.jsonl")
	w := Wiring{Driver: DriverSim, File: path, Inputs: allInputs, Passage: PassageNever}
	r := runKept(t, w, KeptOptions{})
	r.hear(t, ReadyOn)
	if err := r.k.SetPassage(PassageNow); err != nil {
		t.Error(err)
	}
	r.hear(t, PassageIn)
	if err := r.k.SetInput(LineReady, false); err != nil {
		t.Error(err)
	}
	r.hear(t, ReadyOff)
	if err := r.k.SetPassage("sideways"); err == nil || !strings.Contains(err.Error(), `"sideways" is none of`) {
		t.Errorf("an unknown passage: %v", err)
	}
	if _, err := r.Pulse(50 * ms); err != nil {
		t.Error(err)
	}
	r.hear(t, PulseEnd)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if h := history(readTrace(t, text), LineRelay); !slices.Equal(h, []bool{true, false}) {
		t.Errorf("the trace is %s", text)
	}
}
