package crashtest

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// judges is how many processes look at states at a time, on two cores.
const judges = 2

// stuckAfter is when a state is bad because its check has not come to an end.
const stuckAfter = 20 * time.Second

// judge has every state of a recording opened and checked in child processes, and
// gives what is wrong with them. A child that ends or hangs condemns the state it
// was at.
func judge(t *testing.T, rec Recording, states []State) []Finding {
	t.Helper()
	dir := t.TempDir()
	if err := rec.Save(filepath.Join(dir, "recording")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "states"))
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewEncoder(f).Encode(states); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	found := make([][]Finding, judges)
	for j := range judges {
		var mine []int
		for i := j; i < len(states); i += judges {
			mine = append(mine, i)
		}
		wg.Go(func() {
			for len(mine) > 0 {
				out := child(t, dir, fmt.Sprint(j), mine)
				found[j], mine = append(found[j], out...), mine[len(out):]
			}
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// child gives findings of the first states of a list, as far as one process got: at
// least one.
func child(t *testing.T, dir, name string, list []int) (found []Finding) {
	cmd := exec.Command(filepath.Join(bin, "check"), filepath.Join(dir, "recording"), filepath.Join(dir, "states"), fast(t, dir, name))
	var in strings.Builder
	for _, i := range list {
		fmt.Fprintln(&in, i)
	}
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return []Finding{{list[0], err.Error()}}
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return []Finding{{list[0], err.Error()}}
	}
	stuck := time.AfterFunc(stuckAfter, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); stuck.Reset(stuckAfter) {
		var f Finding
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			break
		}
		found = append(found, f)
	}
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || len(found) < len(list) {
		said := stderr.String()
		found = append(found, Finding{list[len(found)], fmt.Sprintf("the check ended (%v): %s", err, said[:min(len(said), 1000)])})
	}
	return found
}

// fast gives a folder in memory where there is one: what is flushed there need not
// survive.
func fast(t *testing.T, dir, name string) string {
	if d, err := os.MkdirTemp("/dev/shm", "crash"); err == nil {
		t.Cleanup(func() { os.RemoveAll(d) })
		return d
	}
	return filepath.Join(dir, name)
}

// bad gives the findings with a problem.
func bad(found []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Problem == "" })
}
