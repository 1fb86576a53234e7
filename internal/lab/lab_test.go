package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"admitone/internal/ticket"
)

// bin is where TestMain built the programs.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "admitone/cmd/gated", "admitone/cmd/ledgerd")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		os.Exit(1)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// stage is a lab with readers of what its gates write.
type stage struct {
	*Lab
	t *testing.T
}

func stand(t *testing.T, gates int) *stage {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	if keep := os.Getenv("LABDIR"); keep != "" {
		dir = keep
	}
	l, err := Up(t.Context(), Options{Dir: dir, Gates: gates, Bin: bin})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Lab: l, t: t}
	t.Cleanup(func() {
		l.Down()
		if t.Failed() {
			for _, name := range []string{"ledger", "broker", "gate-1", "gate-2"} {
				if b, err := os.ReadFile(l.at.path(name, "log")); err == nil {
					t.Logf("%s:\n%s", name, b[max(0, len(b)-6000):])
				}
			}
		}
	})
	return s
}

func (s *stage) mint() string {
	s.t.Helper()
	texts, err := Mint(s.Dir(), 1, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return texts[0]
}

// look shows a ticket at gate k once.
func (s *stage) look(k int, text string) {
	s.t.Helper()
	f, err := os.OpenFile(s.at.gate(k, "line"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// lines reads a file of JSON objects.
func lines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return out // being written
		}
		out = append(out, v)
	}
	return out
}

func (s *stage) verdicts(k int) []ticket.Verdict {
	return lines[ticket.Verdict](s.t, s.at.gate(k, "verdicts.jsonl"))
}

func (s *stage) results(k int) []ticket.Result {
	return lines[ticket.Result](s.t, s.at.gate(k, "results.jsonl"))
}

// eventually waits for something that takes a moment; what must never happen is
// asserted on what was written, not waited for.
func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	err := await(ctx, what, func(context.Context) error {
		if ok() {
			return nil
		}
		return fmt.Errorf("not yet")
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) verdict(k, n int) ticket.Verdict {
	s.t.Helper()
	s.eventually(fmt.Sprintf("verdict %d at gate %d", n, k), func() bool { return len(s.verdicts(k)) >= n })
	return s.verdicts(k)[n-1]
}

func TestOneTicketAtTwoGates(t *testing.T) {
	s := stand(t, 2)
	text := s.mint()
	s.look(1, text)
	v := s.verdict(1, 1)
	if v.Verdict != ticket.Admit || !v.Online || v.Gate != "1" {
		t.Fatalf("%+v", v)
	}
	s.eventually("the passage", func() bool { r := s.results(1); return len(r) == 1 && r[0].Result == ticket.Admitted })
	s.look(2, text)
	v = s.verdict(2, 1)
	if v.Reason != ticket.AlreadyUsed || v.FirstGate != "1" || v.FirstSeen.IsZero() {
		t.Fatalf("%+v", v)
	}
}
