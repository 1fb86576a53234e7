// Package alivetest stands in for the service manager in tests of real processes:
// a datagram socket that they notify.
package alivetest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Manager is the socket, and what it heard.
type Manager struct {
	conn   *net.UnixConn
	path   string
	Status string      // the words heard last
	Fed    []time.Time // each WATCHDOG=1
}

// patience bounds how long a test waits for what must come.
const patience = 60 * time.Second

// Listen makes a manager.
func Listen(t *testing.T) *Manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "alive") // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{path: filepath.Join(dir, "notify")}
	m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.conn.Close()
		os.RemoveAll(dir)
	})
	return m
}

// Env is what a process is started with.
func (m *Manager) Env(watchdog time.Duration) []string {
	return append(os.Environ(), "NOTIFY_SOCKET="+m.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
}

// Next gives the assignments of the next message; nil where none came in time.
func (m *Manager) Next(t *testing.T, within time.Duration) []string {
	t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64<<10)
	n, err := m.conn.Read(b)
	if err != nil {
		return nil
	}
	lines := strings.Split(string(b[:n]), "\n")
	for _, l := range lines {
		if s, ok := strings.CutPrefix(l, "STATUS="); ok {
			m.Status = s
		}
		if l == "WATCHDOG=1" {
			m.Fed = append(m.Fed, time.Now())
		}
	}
	return lines
}

// Await reads until one assignment begins with the words, and gives it.
func (m *Manager) Await(t *testing.T, begins string) string {
	t.Helper()
	var heard []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for _, l := range m.Next(t, time.Until(end)) {
			if strings.HasPrefix(l, begins) {
				return l
			}
			if len(heard) < 20 {
				heard = append(heard, l)
			}
		}
	}
	t.Fatalf("the manager was not told %q but %q", begins, heard)
	return ""
}
