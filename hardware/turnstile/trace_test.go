package turnstile

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTraceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turnstile.jsonl")
	before, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second process appends
		s := openSim(t, SimOptions{Path: path})
		for _, active := range []bool{true, true, false} {
			if err := s.Set(LineRelay, active); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Set(LineAmber, true); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil { // makes amber inactive
			t.Fatal(err)
		}
		if err := s.Set(LineRelay, true); err == nil {
			t.Error("a closed driver was written")
		}
	}
	after, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := readTrace(t, text)
	if len(lines) != 8 || !slices.Equal(history(lines, LineRelay), []bool{true, false, true, false}) {
		t.Errorf("the trace is %s", text)
	}
	last := before
	for _, l := range lines {
		if l.MonoNS < last || l.MonoNS > after {
			t.Errorf("time %d is not between %d and %d", l.MonoNS, last, after)
		}
		last = l.MonoNS
	}
	if !strings.HasPrefix(string(text), `{"mono_ns":`) || !strings.Contains(string(text), `,"line":"relay","active":true}`+"\n") {
		t.Errorf("the form is %s", text)
	}
}

func TestTraceHasOneTurnstileAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turnstile.jsonl")
	first := openSim(t, SimOptions{Path: path})
	if err := first.Set(LineRelay, true); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSim(SimOptions{Path: path}); err == nil {
		t.Fatal("a second turnstile opened the same file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(readTrace(t, text)); n != 1 {
		t.Errorf("the second one wrote: %s", text)
	}
}

// TestLeftoverOfACrash: lines that were active when the process died are
// inactive from the next opening on, however long ago they were written.
func TestLeftoverOfACrash(t *testing.T) {
	on := func(line string) string { return `{"mono_ns":1,"line":"` + line + `","active":true}` + "\n" }
	off := func(line string) string { return `{"mono_ns":2,"line":"` + line + `","active":false}` + "\n" }
	for name, c := range map[string]struct {
		before string
		want   []string
	}{
		"empty":             {"", nil},
		"all inactive":      {on("relay") + off("relay"), nil},
		"relay active":      {on("red") + on("relay") + off("red"), []string{"relay"}},
		"relay and green":   {on("green") + on("relay"), []string{"relay", "green"}},
		"long ago":          {on("relay") + strings.Repeat(on("amber")+off("amber"), 5000), []string{"relay"}},
		"a line cut off":    {on("relay") + off("relay")[:20], []string{"relay"}},
		"no line end":       {strings.TrimSpace(on("relay")), []string{"relay"}},
		"something unknown": {on("relay") + "what is this\n" + on("lamp"), []string{"relay"}},
		"only one line":     {on("buzzer"), []string{"buzzer"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "turnstile.jsonl")
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			openSim(t, SimOptions{Path: path})
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			added := bytes.TrimPrefix(text[len(c.before):], []byte("\n"))
			var got []string
			for _, l := range readTrace(t, added) {
				if l.Active {
					t.Errorf("opening made %s active", l.Line)
				}
				got = append(got, l.Line)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("made inactive: %v, want %v", got, c.want)
			}
		})
	}
}

func TestFileThatIsNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "movie")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSim(SimOptions{Path: path}); err == nil {
		t.Error("taken")
	}
}

const childTrace = "TURNSTILE_TEST_TRACE"

// TestMain is the child of TestKilledProcess where it is told a trace, and a
// keeper or its parent where its first argument says so.
func TestMain(m *testing.M) {
	switch flag := os.Args[1:]; {
	case len(flag) > 0 && flag[0] == "keeper":
		os.Exit(Keeper(os.Stdin, os.Stdout, os.Stderr, openPads))
	case len(flag) > 0 && flag[0] == "parent":
		os.Exit(keptParent(flag[1:]))
	}
	path := os.Getenv(childTrace)
	if path == "" {
		// A child with the race detector would take a second to end.
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	s, err := NewSim(SimOptions{Path: path})
	if err != nil {
		os.Exit(3)
	}
	ts, err := New(s, Options{})
	if err != nil {
		os.Exit(3)
	}
	go func() { _ = ts.Run(context.Background()) }()
	if _, err := ts.Open(10 * sec); err != nil {
		os.Exit(3)
	}
	_, _ = os.Stdout.WriteString("open\n")
	select {}
}

// TestKilledProcess kills a process in the middle of an opening, again and
// again: each opening of the file shows the leftover's end and nothing else.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turnstile.jsonl")
	const kills = 3
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childTrace+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 5)
		if _, err := out.Read(buf); err != nil || string(buf) != "open\n" {
			t.Errorf("the child said %q: %v", buf, err)
		}
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = child.Wait() // it was killed
	}
	openSim(t, SimOptions{Path: path})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := readTrace(t, text)
	want := slices.Repeat([]bool{true, false}, kills)
	if !slices.Equal(history(lines, LineRelay), want) || len(lines) != 2*kills {
		t.Errorf("the trace is %s", text)
	}
	for i := 1; i < len(lines); i++ {
		if lines[i].MonoNS < lines[i-1].MonoNS {
			t.Errorf("time goes back in %s", text)
		}
	}
}
