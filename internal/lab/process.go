package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	restartAfter = time.Second      // as the units do
	stopWithin   = 10 * time.Second // then it is killed
)

// process is one program of the lab. When it ends by itself it is started again,
// as systemd would; when the lab killed it, it stays dead until it is started.
type process struct {
	name, log string
	argv      []string
	forker    *forker

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	want bool          // it ought to run
}

// forker starts processes from one thread that lives as long as the lab, so that
// they die with the lab and not with some thread (prctl(2), PR_SET_PDEATHSIG).
type forker struct {
	calls chan func()
	stop  chan struct{}
}

func newForker() *forker {
	f := &forker{calls: make(chan func()), stop: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case c := <-f.calls:
				c()
			case <-f.stop:
				return
			}
		}
	}()
	return f
}

func (f *forker) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	answer := make(chan error, 1)
	f.calls <- func() { answer <- cmd.Start() }
	return <-answer
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = true
	if p.cmd != nil {
		return nil
	}
	return p.fork()
}

func (p *process) fork() error {
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.forker.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go p.follow(cmd, done)
	return nil
}

func (p *process) follow(cmd *exec.Cmd, done chan struct{}) {
	cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	close(done)
	again := p.want
	p.mu.Unlock()
	if !again {
		return
	}
	time.Sleep(restartAfter)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.want && p.cmd == nil {
		if p.fork() != nil {
			p.want = false
		}
	}
}

// end sends a signal and waits until the process is gone.
func (p *process) end(sig syscall.Signal) {
	p.mu.Lock()
	p.want = false
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Signal(sig)
	select {
	case <-done:
	case <-time.After(stopWithin):
		cmd.Process.Kill()
		<-done
	}
}

// running gives the process id, 0 while it does not run.
func (p *process) running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// dead reports a process that ended by itself while it ought to run, with the end
// of its log: the reason why nothing becomes ready.
func (p *process) dead(context.Context) error {
	if p.running() != 0 {
		return nil
	}
	return fmt.Errorf("%s does not run: %s", p.name, tail(p.log))
}

// tail gives the last bytes of a log.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-600):])
}
