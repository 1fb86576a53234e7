package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"admitone/internal/kv"
)

// traced runs a child of this program under strace with the given options, and
// gives what it printed and the system calls. strace is what sees a flush, and
// what can make one fail: "make test" installs it.
func traced(t testing.TB, path string, options []string, verb string, args ...string) (out, calls []string) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	line := append([]string{"-f", "-qq", "-o", trace}, options...)
	line = append(append(append(line, os.Args[0], verb), args...), path)
	cmd := exec.Command("strace", line...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run strace (install it: apt-get install strace): %v", err)
	}
	if err != nil && !strings.Contains(strings.Join(options, " "), "signal=KILL") {
		t.Fatalf("child: %v: %s", err, stderr.String())
	}
	content, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(stdout.String(), " ", "_")), strings.Split(string(content), "\n")
}

func count(calls []string, part string) (n int) {
	for _, c := range calls {
		if strings.Contains(c, part) {
			n++
		}
	}
	return n
}

// flushes counts what a child does, less what it does with no work at all.
func flushes(t testing.TB, verb, n string) (syncs, grows int) {
	t.Helper()
	trace := []string{"-e", "trace=fdatasync,fsync,ftruncate"}
	_, some := traced(t, temp(t), trace, verb, n)
	_, none := traced(t, temp(t), trace, verb, "0")
	syncs = count(some, "sync(") - count(none, "sync(")
	return syncs, count(some, "ftruncate(") - count(none, "ftruncate(")
}

// TestFlushes: a commit of its own costs two flushes, and one more when the file
// grows; what writes nothing costs none; callers at once share.
func TestFlushes(t *testing.T) {
	t.Parallel()
	const n = 100
	syncs, grows := flushes(t, "child-commits", fmt.Sprint(n))
	if syncs > 2*n+grows || grows > 3 || syncs < 2*n {
		t.Errorf("%d commits: %d flushes with %d growths", n, syncs, grows)
	}
	if syncs, _ := flushes(t, "child-idle", "50"); syncs != 0 {
		t.Errorf("functions that write nothing: %d flushes", syncs)
	}
	const each = 10
	if syncs, grows := flushes(t, "child-callers", fmt.Sprint(each)); syncs > 2*64*each/8+grows {
		t.Errorf("%d functions of 64 callers: %d flushes", 64*each, syncs)
	}
}

// commits runs ten commits with one system call tampered with, and checks what must
// hold whatever happens: what was acknowledged is there, what was called full is
// not, what was called unknown may be, and nothing succeeds after that. It gives
// the outcomes.
func commits(t *testing.T, tamper string) map[string]int {
	t.Helper()
	path := temp(t)
	f := openAt(t, path, options()) // its creation is another test's matter
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, _ := traced(t, path, []string{"-e", "trace=pwrite64,fdatasync", "-e", "inject=" + tamper}, "child-commits", "10")
	if err := inChild(t, path); err != nil {
		t.Fatalf("%s: afterwards: %v", tamper, err)
	}
	got := map[string]int{}
	err := openAt(t, path, options()).View(func(tx kv.Tx) error {
		next := 0 // the first row that nothing was said about
		for _, line := range out {
			word, arg, _ := strings.Cut(line, "_")
			got[word]++
			if word == "view" && (arg == "unknown") != (got["unknown"] > 0) {
				t.Errorf("%s: %d unknown, and then a View says %s", tamper, got["unknown"], arg)
			}
			if word == "view" || word == "open" {
				continue
			}
			v, err := tx.Get("rows", rowKey(next))
			if err != nil {
				return err
			}
			switch there := v != nil; {
			case word == "ok" && (!there || got["unknown"] > 0), word == "full" && there, word == "unknown" && there && got["unknown"] > 1:
				t.Errorf("%s: row %d is called %s, there: %v; %v", tamper, next, word, there, out)
			case word != "ok" && word != "full" && word != "unknown":
				t.Errorf("%s: %s", tamper, line)
			}
			next++
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", tamper, err)
	}
	return got
}

// TestFailedFlush has every flush of some commits fail, the one before the meta page
// and the one after it: the outcome is unknown and stays so.
func TestFailedFlush(t *testing.T) {
	t.Parallel()
	for n := 3; n <= 8; n++ {
		got := commits(t, fmt.Sprintf("fdatasync:error=EIO:when=%d", n))
		if got["unknown"] == 0 || got["ok"] != (n-1)/2 || got["ok"]+got["unknown"] != 10 {
			t.Errorf("flush %d: %v", n, got)
		}
	}
}

// TestNoSpace has every page write of some commits find the disk full: that commit
// left nothing, and the next ones succeed.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	for n := 7; n <= 14; n++ {
		got := commits(t, fmt.Sprintf("pwrite64:error=ENOSPC:when=%d", n))
		if got["full"] != 1 || got["ok"] != 9 {
			t.Errorf("write %d: %v", n, got)
		}
	}
}

// TestKilled kills the process at a write or a flush: what it acknowledged is there.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"pwrite64", "fdatasync"} {
		for n := 5; n <= 8; n++ {
			got := commits(t, fmt.Sprintf("%s:signal=KILL:when=%d", call, n))
			if got["ok"] == 0 || got["view"] != 0 {
				t.Errorf("killed at %s %d: %v", call, n, got)
			}
		}
	}
}

// TestKilledInCreation kills the process at each step of making the file: there is
// none, or a good one, and the next opening succeeds.
func TestKilledInCreation(t *testing.T) {
	t.Parallel()
	made := 0
	for _, step := range []string{"pwrite64:1", "pwrite64:2", "pwrite64:3", "fdatasync:1", "fdatasync:2", "fdatasync:3", "fsync:1", "fsync:2", "fsync:3", "renameat:1"} {
		path := temp(t)
		call, n, _ := strings.Cut(step, ":")
		out, _ := traced(t, path, []string{"-e", "trace=" + call, "-e", "inject=" + call + ":signal=KILL:when=" + n}, "child-commits", "0")
		if len(out) != 0 {
			t.Errorf("%s: the child lived", step)
		}
		switch _, err := os.Stat(path); {
		case err == nil:
			made++
			if err := inChild(t, path); err != nil {
				t.Errorf("%s: %v", step, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
		f := openAt(t, path, options())
		if err := f.Update(t.Context(), func(tx kv.Tx) error { return tx.Put("a", []byte("k"), nil) }); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	if made == 0 {
		t.Error("no kill came after the rename")
	}
}
