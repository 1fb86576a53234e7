package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// bin is where TestMain built the programs: as they are shipped, without the race
// detector.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"admitone/cmd/gated", "admitone/cmd/ledgerd", "admitone/internal/crashtest/check")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

// program is one process with its disk.
type program struct {
	t    *testing.T
	name string
	argv []string
	disk *Disk
	log  *Log
	said string // the file of its standard error
	cmd  *exec.Cmd
	done chan error
	now  atomic.Pointer[os.Process] // as cmd says, for a disk's goroutines
}

// newProgram mounts a disk with the folders data and out.
func newProgram(t *testing.T, dir, name string, o Options) *program {
	t.Helper()
	p := &program{t: t, name: name, log: &Log{}, said: filepath.Join(dir, name+".log")}
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	o.Log = p.log
	if p.disk, err = Mount(filepath.Join(dir, name), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if err := p.disk.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			b, _ := os.ReadFile(p.said)
			t.Logf("%s said:\n%s", name, b[max(0, len(b)-4000):])
		}
	})
	for _, sub := range []string{"data", "out", "run"} {
		if err := os.Mkdir(filepath.Join(p.disk.Dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// start runs the program; it may end by itself.
func (p *program) start() {
	p.t.Helper()
	f, err := os.OpenFile(p.said, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	p.cmd = exec.Command(p.argv[0], p.argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.now.Store(p.cmd.Process)
	p.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait(); close(done) }(p.cmd, p.done)
}

// kill ends the program as a power cut does.
func (p *program) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.done
	p.cmd = nil
}

// stop ends the program by SIGTERM and gives its exit code.
func (p *program) stop() int {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

// wait gives the exit code of a program that ends.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		p.cmd.Process.Signal(syscall.SIGABRT)
		p.t.Errorf("%s does not end", p.name)
		<-p.done
	}
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// ended reports whether the program ended by itself.
func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// logged reads what a program wrote on standard error.
func (p *program) logged() string {
	b, err := os.ReadFile(p.said)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}
