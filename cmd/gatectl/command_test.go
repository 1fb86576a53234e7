package main

import (
	"bytes"
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/ticket"
)

// Flags stand anywhere; after "--" there are none.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		args, rest string
		a, b       bool
	}{
		{"x y", "x y", false, false},
		{"-a x -b y", "x y", true, true},
		{"x y -a", "x y", true, false},
		{"x -- -a -b", "x -a -b", false, false},
		{"-a -- -b", "-b", true, false},
		{"- -a", "-", true, false},
	} {
		fs := newFlags()
		a, b := fs.Bool("a", false, ""), fs.Bool("b", false, "")
		rest, err := parse(fs, strings.Fields(c.args))
		if err != nil || strings.Join(rest, " ") != c.rest || *a != c.a || *b != c.b {
			t.Errorf("%s: %q, %v, %v, %v", c.args, rest, *a, *b, err)
		}
	}
}

// The table holds together: each name once, groups in one piece, flags that can
// be declared, help for all.
func TestTable(t *testing.T) {
	names, groups := map[string]bool{}, []string{}
	for _, c := range commands() {
		first, _, _ := strings.Cut(c.name, " ")
		if names[c.name] || c.about == "" || strings.HasSuffix(c.about, ".") || c.flags == nil {
			t.Errorf("%s: twice, or without a line about it", c.name)
		}
		names[c.name] = true
		if len(groups) == 0 || groups[len(groups)-1] != first {
			if slices.Contains(groups, first) {
				t.Errorf("%s stands apart from its group", c.name)
			}
			groups = append(groups, first)
		}
		var stdout, stderr bytes.Buffer
		env := environment{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }}
		if code := run(t.Context(), append([]string{"help"}, strings.Fields(c.name)...), env); code != 0 || !strings.Contains(stdout.String(), c.name) {
			t.Errorf("help %s: %d %s%s", c.name, code, stdout.String(), stderr.String())
		}
		for line := range strings.Lines(stdout.String()) {
			if len(line) > 125 {
				t.Errorf("help %s is too wide: %s", c.name, line)
			}
		}
	}
}

// A ledger that takes the request and says nothing may have enrolled the box:
// the file with the only copy of its key stays.
func TestEnrolmentOfUnknownOutcomeStays(t *testing.T) {
	dir := t.TempDir()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write([]byte(`{"brokers":["nats://127.0.0.1:4222"],"programme_key":"` + strings.Repeat("ab", 32) + `"}`))
			return
		}
		panic(http.ErrAbortHandler)
	}))
	srv.Config.ErrorLog = nil
	defer srv.Close()
	key, sign, out := filepath.Join(dir, "key"), filepath.Join(dir, "sign"), filepath.Join(dir, "north.enrolment")
	if err := os.WriteFile(key, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteKey(sign, ed25519.NewKeyFromSeed(make([]byte, 32))); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	env := environment{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	code := run(t.Context(), []string{"-ledger", srv.URL, "gate", "add", "North", "-key-file", key, "-sign", sign, "-out", out}, env)
	if code != 1 || !strings.Contains(stderr.String(), "is not known") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	if e, err := config.LoadEnrolment(out); err != nil || e.Place != "North" {
		t.Errorf("the file is gone or broken: %v", err)
	}
}

// Lines of every length around the limits, with both ends and without.
func TestReadCodes(t *testing.T) {
	key := make([]byte, 32)
	longest := strings.Repeat("x", ticket.MaxCode)
	for name, c := range map[string]struct {
		text             string
		codes, dup, bad1 int // bad1: the number of the first bad line
	}{
		"nothing":          {"", 0, 0, 0},
		"no end":           {"a\nb", 2, 0, 0},
		"CRLF":             {"a\r\nb\r\n", 2, 0, 0},
		"CRLF is no code":  {"a\r\na\n", 1, 1, 0},
		"a mark":           {"\ufeffa\na\n", 1, 1, 0},
		"spaces count":     {"a\na \n a\n", 3, 0, 0},
		"longest":          {longest + "\n" + longest + "y\nb", 2, 0, 2},
		"far too long":     {"a\n" + strings.Repeat("x", 1<<20) + "\nb", 2, 0, 2},
		"long without end": {"a\n" + strings.Repeat("x", 1<<20), 1, 0, 2},
		"a full buffer":    {strings.Repeat("x", 4095) + "\n" + strings.Repeat("y", 4096) + "\nb\n", 1, 0, 1},
		"not UTF-8":        {"\xff\nb\n", 1, 0, 1},
		"a zero byte":      {"a\x00b\nb\n", 1, 0, 1},
	} {
		hashes, r, err := readCodes(strings.NewReader(c.text), key)
		first := 0
		if len(r.Bad) > 0 {
			first = r.Bad[0].Line
		}
		if err != nil || len(hashes) != c.codes || r.Codes != c.codes || r.Duplicates != c.dup || first != c.bad1 {
			t.Errorf("%s: %d hashes, %+v, %v", name, len(hashes), r, err)
		}
	}
	if hashes, _, _ := readCodes(strings.NewReader("\ufeffTM-1\r\n"), key); len(hashes) != 1 || hashes[0] != ticket.CodeHash(key, "TM-1") {
		t.Error("the hash is not that of the text that a gate reads")
	}
}
