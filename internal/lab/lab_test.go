package lab

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"admitone/internal/ticket"
)

// bin is where TestMain built the programs.
var bin string

// TestMain builds the programs as they are shipped: with neither the race
// detector nor anything else of a test in them.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set(atATime)
	}
	os.Exit(run(m))
}

// atATime is how many labs stand at a time, on however many cores: what they do is
// waiting, mostly.
const atATime = "4"

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "admitone/cmd/gated", "admitone/cmd/ledgerd", "admitone/cmd/gatectl")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

func TestOneTicketAtTwoGates(t *testing.T) {
	t.Parallel()
	s := stand(t, Options{Gates: 2})
	p := s.one()
	v := s.admit(1, p)
	if !v.Online || v.Gate != "1" || v.Lane != "1" || v.Claim == "" || v.GateMode != ticket.ModeNormal || v.Clock != ticket.Trusted || v.Took <= 0 {
		t.Errorf("the verdict: %+v", v)
	}
	if got := s.ended(1, p); len(got) != 1 || got[0] != ticket.Admitted {
		t.Errorf("the claim ended %v", got)
	}
	s.refuse(2, p, "1")
	if n := s.pulses(1) + s.pulses(2); n != 1 {
		t.Errorf("%d pulses for one admission", n)
	}
}
