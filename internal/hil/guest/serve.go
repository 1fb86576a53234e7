//go:build linux

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/hil/talk"
)

// server does what the host asks for, each request in a goroutine of its own.
type server struct {
	mu      sync.Mutex
	out     io.Writer
	started map[int]*started
	player  *player
}

// started is a program that runs beside.
type started struct {
	done chan struct{}
	code int // valid once done is closed
}

func serve(in io.Reader, out io.Writer) error {
	s := &server{out: out, started: map[int]*started{}}
	s.reply(talk.Reply{Line: "up"})
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		var q talk.Request
		if err := json.Unmarshal(line, &q); err != nil {
			s.reply(talk.Reply{ID: -1, Error: fmt.Sprintf("read request: %v", err)})
			continue
		}
		go func() {
			p, err := s.do(q)
			if err != nil {
				p.Error = err.Error()
			}
			p.ID = q.ID
			s.reply(p)
		}()
	}
}

func (s *server) reply(p talk.Reply) {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, numbers and bytes always encode
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n%s%s\n", talk.Mark, b)
}

func (s *server) do(q talk.Request) (talk.Reply, error) {
	switch q.Op {
	case talk.Start:
		return s.start(q)
	case talk.Own:
		return talk.Reply{}, own(q.Argv, q.Number)
	case talk.Run:
		return run(q)
	case talk.Signal:
		return talk.Reply{}, kill(q.PIDs, unix.Signal(q.Number))
	case talk.Exit:
		return s.exit(q.PID, q.Wait)
	case talk.Await:
		return await(q)
	case talk.Read:
		return read(q.Path)
	case talk.Write:
		return talk.Reply{}, write(q.Path, q.Data, os.FileMode(q.Number))
	case talk.List:
		list, err := processes()
		return talk.Reply{Processes: list}, err
	case talk.Show:
		return talk.Reply{}, s.show(q.Argv[0], q.Words[0], q.Path)
	case talk.Hide:
		return talk.Reply{}, s.hide()
	case talk.Control:
		return talk.Reply{}, setControl(q.Path, q.Words[0], q.Number)
	case talk.Timings:
		return talk.Reply{}, setTimings(q.Argv)
	case talk.Formats:
		list, err := formats(q.Path)
		return talk.Reply{Words: list}, err
	case talk.Off:
		off()
	}
	return talk.Reply{}, fmt.Errorf("there is no operation %q", q.Op)
}

// program is one that runs as a user, who is in a group of the same number alone.
func program(argv []string, user int, out io.Writer) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	return cmd
}

func own(paths []string, user int) error {
	for _, p := range paths {
		err := filepath.WalkDir(p, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, user, user))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) start(q talk.Request) (talk.Reply, error) {
	log, err := os.OpenFile(q.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return talk.Reply{}, err
	}
	defer log.Close()
	cmd := program(q.Argv, q.Number, log)
	if err := cmd.Start(); err != nil {
		return talk.Reply{}, err
	}
	p := &started{done: make(chan struct{})}
	s.mu.Lock()
	s.started[cmd.Process.Pid] = p
	s.mu.Unlock()
	go func() {
		p.code = code(cmd.Wait(), cmd)
		close(p.done)
	}()
	return talk.Reply{PID: cmd.Process.Pid}, nil
}

// code is the exit code, or the number of the signal that ended it, below 0.
func code(err error, cmd *exec.Cmd) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 127
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return -int(st.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func (s *server) exit(pid int, wait time.Duration) (talk.Reply, error) {
	s.mu.Lock()
	p := s.started[pid]
	s.mu.Unlock()
	if p == nil {
		return talk.Reply{}, fmt.Errorf("process %d was not started here", pid)
	}
	select {
	case <-p.done:
		return talk.Reply{Code: p.code}, nil
	case <-time.After(wait):
		return talk.Reply{}, fmt.Errorf("process %d still runs after %v", pid, wait)
	}
}

func kill(pids []int, sig unix.Signal) error {
	var errs []error
	for _, pid := range pids {
		errs = append(errs, unix.Kill(pid, sig))
	}
	return errors.Join(errs...)
}

func run(q talk.Request) (talk.Reply, error) {
	var out bytes.Buffer
	cmd := program(q.Argv, q.Number, &out)
	if err := cmd.Start(); err != nil {
		return talk.Reply{}, err
	}
	end := time.AfterFunc(q.Wait, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	c := code(cmd.Wait(), cmd)
	return talk.Reply{Code: c, Data: out.Bytes()}, nil
}

// The console has no bandwidth to lose, the emulated processor has no time: the
// file is looked at this often.
const lookEvery = 20 * time.Millisecond

func await(q talk.Request) (talk.Reply, error) {
	end := time.Now().Add(q.Wait)
	for {
		b, err := os.ReadFile(q.Path)
		if err != nil && !os.IsNotExist(err) {
			return talk.Reply{}, err
		}
		from := min(int(q.Offset), len(b))
		for at := from; ; {
			n := bytes.IndexByte(b[at:], '\n')
			if n < 0 {
				break
			}
			line := string(b[at : at+n])
			at += n + 1
			if has(line, q.Words) {
				return talk.Reply{Line: line, Offset: int64(at)}, nil
			}
		}
		if time.Now().After(end) {
			return talk.Reply{}, fmt.Errorf("no line with %q in %s after %v; it has %q", q.Words, q.Path, q.Wait, b[from:])
		}
		time.Sleep(lookEvery)
	}
}

func has(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// read packs what it reads: a store has more room than rows.
func read(path string) (talk.Reply, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return talk.Reply{}, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(b)
	err = errors.Join(err, z.Close())
	return talk.Reply{Data: packed.Bytes()}, err
}

func write(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
