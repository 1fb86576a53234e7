package hil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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
	m.cmd.Stderr = log
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
	m.Agent = newAgent(in, io.TeeReader(out, log))
	return m, m.connect(ctx, ends[0], ends[1])
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
func (m *Machine) connect(ctx context.Context, qt, mon net.Conn) error {
	m.mon = monitor{mon}
	if _, err := m.mon.until(); err != nil {
		return err
	}
	path, err := m.mon.find(m.Board.gpio.kind)
	if err != nil {
		return err
	}
	if m.Pins, err = newPins(newQtest(qt), m.Board.gpio, path); err != nil {
		return err
	}
	if _, err := m.mon.do("cont"); err != nil {
		return err
	}
	return m.Agent.awaitUp(ctx, bootLimit)
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
