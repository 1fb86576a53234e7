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
	"syscall"
	"testing"
	"time"
)

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
