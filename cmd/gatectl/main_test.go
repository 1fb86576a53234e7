package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gatectl": main})
}

// TestTranscripts plays the transcripts of testdata with the real command, the
// real ledger daemon and real gates with simulated hardware. What stands in them
// besides the commands of testscript is in stage_test.go.
func TestTranscripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/ledgerd", "./cmd/gated")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			s, err := newStage(e, bin)
			if err != nil {
				return err
			}
			e.Values[stageKey{}] = s
			e.Defer(s.close)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ledger": ledgerCmd, "gate": gateCmd, "show": showCmd, "watching": watchingCmd, "await": awaitCmd,
			"capture": captureCmd, "expand": expandCmd, "codes": codesCmd, "mode": modeCmd, "halt": haltCmd,
		},
	})
}

// captureCmd: capture VAR PATTERN puts the pattern's first group, found in the
// last standard output, into a variable.
func captureCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2)
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("no %s in\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[1])
}

// expandCmd: expand FILE... replaces the variables in files.
func expandCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, -1)
	for _, f := range args {
		path := ts.MkAbs(f)
		ts.Check(os.WriteFile(path, []byte(os.Expand(ts.ReadFile(f), ts.Getenv)), 0o600))
	}
}

// codesCmd: codes FILE N writes N different codes, one a line.
func codesCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2)
	var n int
	_, err := fmt.Sscan(args[1], &n)
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "TM-%09d-%c\n", i*7919, 'A'+i%26)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// modeCmd: mode OCTAL FILE asserts a file's permissions.
func modeCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2)
	st, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", st.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// awaitCmd: await PATTERN gatectl ARGS... runs a command until its output
// matches. What comes through the network has no moment that a script could know.
func awaitCmd(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, -1)
	want := regexp.MustCompile("(?m)" + args[0])
	last := ""
	if !until(func() bool {
		_ = ts.Exec(args[1], args[2:]...) // it may say no until it says yes
		last = ts.ReadFile("stdout")
		return want.MatchString(last)
	}) {
		ts.Fatalf("%s never said %s, but\n%s%s", strings.Join(args[1:], " "), args[0], last, ts.ReadFile("stderr"))
	}
}

// until looks again and again for as long as anything here may take.
func until(done func() bool) bool {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-again.C:
		case <-deadline:
			return false
		}
	}
	return true
}

// need checks how a command of ours is written; n -1 is at least two words.
func need(ts *testscript.TestScript, neg bool, args []string, n int) {
	if neg || n >= 0 && len(args) != n || n < 0 && len(args) < 1 {
		ts.Fatalf("this cannot stand so in a transcript: %v %q", neg, args)
	}
}

// The transcripts cover every command.
func TestEveryCommandHasATranscript(t *testing.T) {
	var all strings.Builder
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, c := range commands() {
		shown := strings.Contains(all.String(), "gatectl "+c.name) || c.name == "watch" && strings.Contains(all.String(), "\nwatching ")
		if !shown && !c.raw {
			t.Errorf("no transcript has gatectl %s", c.name)
		}
	}
}
