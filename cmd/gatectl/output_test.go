package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"admitone/internal/ticket"
)

// output with everything that a test may want to set.
func testOutput(asJSON, terminal bool, vars map[string]string) (*output, *bytes.Buffer) {
	var b bytes.Buffer
	env := environment{stdout: &b, terminal: terminal, getenv: func(k string) string { return vars[k] }}
	return newOutput(env, asJSON), &b
}

// No text that anybody sends can do more to a terminal than show itself, and two
// texts never look the same.
func TestEscape(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.String(), rapid.SampledFrom([]string{"a\nb", `a\nb`, "\x1b[2J", "\u202e", "\u009b31m", "\xff\xfe", `"`, "é ✓", "\u2028"}),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		).Draw(t, "text")
		got := escape(s)
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q shows %U", s, r)
			}
		}
		if other, ok := seen[got]; ok && other != s {
			t.Fatalf("%q and %q both show as %s", s, other, got)
		}
		seen[got] = s
	})
	if got := escape(`say "hi"`); got != `say "hi"` {
		t.Errorf("quotes: %s", got)
	}
}

// A program reads from escaped JSON what was written, and a terminal that shows
// it is not moved.
func TestEscapeJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{"text": rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\u202e\u009b", "\U000e0001", "<&>", "\u2028"})).Draw(t, "text")}
		o, b := testOutput(true, true, nil)
		if err := o.object(want); err != nil {
			t.Fatal(err)
		}
		o.w.Flush()
		line := b.String()
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r > unicode.MaxASCII && !unicode.IsPrint(r) || r < ' ' {
				t.Fatalf("%q has %U", line, r)
			}
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["text"] != want["text"] {
			t.Fatalf("%q reads as %q, %v", line, got["text"], err)
		}
	})
}

func TestColours(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		vars     map[string]string
		coloured bool
	}{
		"a terminal":      {true, nil, true},
		"a file":          {false, nil, false},
		"NO_COLOR":        {true, map[string]string{"NO_COLOR": "1"}, false},
		"a dumb terminal": {true, map[string]string{"TERM": "dumb"}, false},
	} {
		o, b := testOutput(false, c.terminal, c.vars)
		o.columns([][]cell{{{"name", faint}, text("x")}, {{"longer name", faint}, {"✓ y\x1b", good}, text("")}})
		o.w.Flush()
		want := "name         x\nlonger name  ✓ y\\x1b\n"
		if c.coloured {
			want = "\x1b[2mname\x1b[0m         x\n\x1b[2mlonger name\x1b[0m  \x1b[32m✓ y\\x1b\x1b[0m\n"
		}
		if got := b.String(); got != want {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
	}
}

// A verdict says in words and a symbol what its colour says.
func TestVerdictLine(t *testing.T) {
	at := time.Date(2026, 11, 30, 18, 0, 0, 0, time.Local)
	v := ticket.Verdict{Time: at, Gate: "North\n2", Lane: "1", GateMode: ticket.ModeNormal, Online: true, Took: 12 * time.Millisecond}
	admit, refuse, wait := v, v, v
	admit.Verdict, admit.Reason, admit.Ticket = ticket.Admit, ticket.OK, "ab"
	refuse.Verdict, refuse.Reason, refuse.FirstSeen, refuse.FirstGate = ticket.Refuse, ticket.AlreadyUsed, at.Add(-time.Hour), "South"
	wait.Verdict, wait.Reason, wait.GateMode, wait.Clock, wait.Online = ticket.Wait, ticket.Busy, ticket.ModeTest, ticket.Untrusted, false
	offline := admit
	offline.Online = false
	o, b := testOutput(false, false, nil)
	for _, v := range []ticket.Verdict{admit, refuse, wait, offline} {
		o.line(verdictLine(v), nil)
	}
	o.w.Flush()
	const want = `18:00:00.000  ✓ admit   ok               North\n2 lane 1  ab  12 ms
18:00:00.000  ✗ refuse  already_used     North\n2 lane 1  no ticket  first at 17:00:00.000 by South  12 ms
18:00:00.000  … wait    busy             North\n2 lane 1  no ticket  ! test  clock untrusted  12 ms
18:00:00.000  ✓ admit   ok               North\n2 lane 1  ab  offline  12 ms
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What came before an error of a list is printed; an empty list says so, a
// failed one does not.
func TestTableWithAnError(t *testing.T) {
	list := func(n int, err error) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			if err != nil {
				yield(0, err)
			}
		}
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		n    int
		err  error
		json bool
		want string
	}{
		{2, broken, false, "n\n0\n1\n"}, {2, broken, true, "0\n1\n"}, {0, nil, false, "none\n"}, {0, broken, false, ""}, {0, nil, true, ""},
	} {
		o, b := testOutput(c.json, false, nil)
		err := table(o, list(c.n, c.err), "none", []string{"n"}, func(i int) []cell { return []cell{text(fmt.Sprint(i))} })
		o.w.Flush()
		if !errors.Is(err, c.err) || b.String() != c.want {
			t.Errorf("%+v: %q, %v", c, b.String(), err)
		}
	}
}

// Errors go to standard error with a hint and the right code; a full disk is one.
func TestTell(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{fmt.Errorf("call ledger: %w", context.Canceled), 1, "gatectl: interrupted\n"},
		{errTold, 1, ""},
		{errors.New("a\x1b[1m\nb"), 1, "gatectl: a\\x1b[1m\ngatectl: b\n"},
		{hint(wrongUsage("no %s", "x"), "try %s", "y"), 2, "gatectl: no x\ngatectl: hint: try y\n"},
		{fmt.Errorf("more: %w", hint(errors.New("x"), "y")), 1, "gatectl: more: x\ngatectl: hint: y\n"},
	} {
		var b bytes.Buffer
		if code := tell(&b, c.err); code != c.code || b.String() != c.want {
			t.Errorf("%v: %d, %q", c.err, code, b.String())
		}
	}
	var stderr bytes.Buffer
	env := environment{stdout: full{}, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	if code := run(t.Context(), []string{"read", "nowhere"}, env); code != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("a full disk: %d, %s", code, stderr.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
