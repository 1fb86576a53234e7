package lab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts/lab as a shell uses it: every verb once, and nothing left behind.
func TestScript(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../scripts/lab")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a lab") // shells trip over blanks
	t.Cleanup(func() {
		for _, p := range running(t, dir) {
			t.Errorf("left behind: %s", p)
		}
	})
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "testdata/smoke.sh", script, dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		exec.Command(script, "down", dir).Run()
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// running lists the processes with a word on their command line.
func running(t *testing.T, word string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte(word)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
