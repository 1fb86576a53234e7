package hil

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"
)

// monitor is QEMU's console for people. It is the only place that tells where in
// the machine a device stands.
type monitor struct{ conn net.Conn }

const prompt = "(qemu) "

// until reads up to the next prompt.
func (m monitor) until() (string, error) {
	var b bytes.Buffer
	buf := make([]byte, 1<<16)
	if err := m.conn.SetReadDeadline(time.Now().Add(qtestPatience)); err != nil {
		return "", err
	}
	for !strings.HasSuffix(b.String(), prompt) {
		n, err := m.conn.Read(buf)
		if err != nil {
			return "", fmt.Errorf("read QEMU's monitor: %w", err)
		}
		b.Write(buf[:n])
	}
	return b.String(), nil
}

func (m monitor) do(cmd string) (string, error) {
	if _, err := fmt.Fprintln(m.conn, cmd); err != nil {
		return "", fmt.Errorf("ask QEMU's monitor: %w", err)
	}
	return m.until()
}

// find gives the path of the first device of a kind in the machine.
func (m monitor) find(kind string) (string, error) {
	tree, err := m.do("info qom-tree")
	if err != nil {
		return "", err
	}
	return findDevice(tree, kind)
}

// findDevice reads a tree whose lines are indented by two spaces a level:
// "  /machine (virt-machine)".
func findDevice(tree, kind string) (string, error) {
	var at []string
	for line := range strings.Lines(tree) {
		line = strings.TrimRight(line, "\r\n")
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		name, of, ok := strings.Cut(name, " (")
		if !ok || !strings.HasPrefix(name, "/") || depth > len(at) {
			continue
		}
		at = append(at[:depth], name)
		if strings.TrimSuffix(of, ")") == kind {
			return strings.Join(at, ""), nil
		}
	}
	return "", fmt.Errorf("the machine has no %s", kind)
}
