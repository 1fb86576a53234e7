package turnstile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// keptParent is a process with a turnstile over a keeper: it opens it for a
// minute, says so, and says what happens until its standard input ends.
func keptParent(args []string) int {
	var o KeptOptions
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return 2
	}
	o.Command, o.Stderr = []string{os.Args[0], "keeper"}, os.Stderr
	k, err := NewKept(o)
	if err != nil {
		return 2
	}
	ts, err := New(k, Options{MaxOn: o.MaxOn, Debounce: -1})
	if err != nil {
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ts.Run(ctx) }()
	go func() {
		for e := range ts.Events() {
			fmt.Println(e.Kind)
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	ts.Show(SignalOpen)
	if _, err := ts.Open(time.Minute); err != nil {
		fmt.Println(err)
		return 1
	}
	if errors.Join(<-done, k.Close()) != nil {
		return 1
	}
	return 0
}

// parent is that process, seen from the test.
type parent struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Closer
	path string
	low  bool
	said chan string
}

func startParent(t *testing.T, o KeptOptions, low bool) *parent {
	t.Helper()
	p := &parent{t: t, path: filepath.Join(t.TempDir(), "pads"), low: low, said: make(chan string, 10000)}
	o.Wiring = padWiring(p.path, low)
	args, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0], "parent", string(args))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed, or waited for already
	})
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	p.hear(PulseBegin)
	return p
}

// hear waits for something that the parent says.
func (p *parent) hear(k Kind) {
	p.t.Helper()
	limit := time.After(30 * sec)
	for {
		select {
		case s, ok := <-p.said:
			if s == k.String() {
				return
			}
			if !ok {
				p.t.Fatalf("the parent ended without %v", k)
			}
		case <-limit:
			p.t.Fatalf("no %v within 30 s", k)
		}
	}
}

// idle waits until the relay and the lamp are so, and gives the relay's edges.
func (p *parent) idle(edges int) []padEdge {
	p.t.Helper()
	relay := func() []padEdge { return padEdges(p.t, p.path, relayPin, p.low) }
	eventually(p.t, "the relay becomes inactive", func() bool { return len(relay()) >= edges })
	eventually(p.t, "the lamp is off", func() bool {
		lamp := padEdges(p.t, p.path, greenPin, p.low)
		return len(lamp) > 0 && lamp[len(lamp)-1].high == p.low
	})
	return relay()
}

// want holds the relay's whole history to openings and their ends.
func (p *parent) want(edges []padEdge, openings int) {
	p.t.Helper()
	if got := levels(edges); !slices.Equal(got, slices.Repeat([]bool{!p.low, p.low}, openings)) {
		p.t.Errorf("the relay's wire saw %v from %v on", got, p.low)
	}
}

// TestKilledParent: the relay is inactive as soon as the parent is gone, and not
// only by a limit; signals to its group do not reach the keeper before.
func TestKilledParent(t *testing.T) {
	for name, low := range polarities {
		t.Run(name, func(t *testing.T) {
			p := startParent(t, KeptOptions{MaxOn: 100 * sec, Silent: time.Hour}, low)
			for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGKILL} {
				if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil {
					t.Fatal(err)
				}
			}
			edges := p.idle(2)
			p.want(edges, 1)
			if open := edges[1].at - edges[0].at; open > 50*sec {
				t.Errorf("it was open for %v", open)
			}
		})
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

// TestStoppedParent: the relay becomes inactive while the parent stands still. When
// it goes on it hears of that, and its end makes no further edge.
func TestStoppedParent(t *testing.T) {
	for name, low := range polarities {
		t.Run(name, func(t *testing.T) {
			p := startParent(t, KeptOptions{MaxOn: 100 * sec, Silent: 2 * sec}, low)
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p.want(p.idle(2), 1)
			if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			p.hear(DriverLost)
			p.hear(DriverBack)
			if err := p.in.Close(); err != nil {
				t.Error(err)
			}
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("the parent: %v", err)
			}
			p.want(p.idle(2), 1)
		})
	}
}

// TestParentThatEnds: the relay is inactive at an orderly end, with the keeper gone.
func TestParentThatEnds(t *testing.T) {
	p := startParent(t, KeptOptions{MaxOn: 100 * sec}, false)
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the parent: %v", err)
	}
	p.want(padEdges(t, p.path, relayPin, false), 1)
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
