package hil

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Machine is a board that runs.
type Machine struct {
	Board Board
	*Agent
	*Pins
	cmd     *exec.Cmd
	mon     monitor
	closers []io.Closer
}

// Boot starts a board and returns when the program in it answers. What its console
// prints goes to the file console.
func Boot(ctx context.Context, b Board, k Kernel, initrd, console string) (m *Machine, err error) {
	m = &Machine{Board: b}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("boot %s: %w", b.Name, err), m.Close())
			m = nil
		}
	}()
	log, err := os.Create(console)
	if err != nil {
		return m, err
	}
	m.closers = append(m.closers, log)
	argv := b.argv(k, initrd)
	m.cmd = exec.Command(argv[0], argv[1:]...)
	// A test that is killed leaves no machine running.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := m.cmd.StderrPipe()
	if err != nil {
		return m, err
	}
	var ends [2]net.Conn
	for i := range ends {
		file, err := m.pair(&ends[i])
		if err != nil {
			return m, err
		}
		defer file.Close()
		m.cmd.ExtraFiles = append(m.cmd.ExtraFiles, file)
	}
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return m, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	if err := m.cmd.Start(); err != nil {
		m.cmd = nil
		return m, err
	}
	trace, traced := io.Pipe()
	go sortOut(stderr, traced, log)
	m.Agent = newAgent(in, io.TeeReader(out, log))
	return m, m.connect(ctx, ends[0], ends[1], trace)
}

// sortOut separates QEMU's trace from what it has to say otherwise.
func sortOut(stderr io.Reader, traced *io.PipeWriter, log io.Writer) {
	s := bufio.NewScanner(stderr)
	for s.Scan() {
		to := log
		if strings.Contains(s.Text(), bcmTrace+" ") {
			to = traced
		}
		fmt.Fprintln(to, s.Text())
	}
	traced.CloseWithError(s.Err())
}

// pair makes a connection whose other end is a file for QEMU.
func (m *Machine) pair(end *net.Conn) (*os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make connection: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close() // FileConn has a copy
	if *end, err = net.FileConn(ours); err != nil {
		return nil, errors.Join(fmt.Errorf("make connection: %w", err), theirs.Close())
	}
	m.closers = append(m.closers, *end)
	return theirs, nil
}

// connect sees to the lines first, and lets the processors run then.
func (m *Machine) connect(ctx context.Context, qt, mon net.Conn, trace io.Reader) error {
	m.mon = monitor{mon}
	if _, err := m.mon.until(); err != nil {
		return err
	}
	e := newEdges()
	q := newQtest(qt, e)
	if m.Board.gpio == kindPL061 {
		path, err := m.mon.find(kindPL061)
		if err != nil {
			return err
		}
		b, err := newPL061(q, path)
		if err != nil {
			return err
		}
		m.Pins = &Pins{b, e}
	}
	if _, err := m.mon.do("cont"); err != nil {
		return err
	}
	if err := m.Agent.awaitUp(ctx, bootLimit); err != nil || m.Pins != nil {
		return err
	}
	// A trace of the kernel's start would be long, and it has no part in our lines.
	b, err := newBCM(q, e, trace, func() error {
		_, err := m.mon.do("trace-event " + bcmTrace + " on")
		return err
	})
	m.Pins = &Pins{b, e}
	return err
}

// Close ends the machine, as pulling its plug does.
func (m *Machine) Close() error {
	var errs []error
	if m.cmd != nil {
		errs = append(errs, m.cmd.Process.Kill())
		_ = m.cmd.Wait() // it was killed
	}
	for _, c := range m.closers {
		errs = append(errs, c.Close())
	}
	m.closers = nil
	return errors.Join(errs...)
}
