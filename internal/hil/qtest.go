package hil

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// qtest speaks QEMU's test protocol: a command a line, its answer a line that
// begins with OK or FAIL. Changes of the lines that were asked for come between.
type qtest struct {
	conn   net.Conn
	mu     sync.Mutex // one command at a time
	answer chan string

	edges *edges
}

func newQtest(conn net.Conn, e *edges) *qtest {
	q := &qtest{conn: conn, answer: make(chan string), edges: e}
	go q.read()
	return q
}

func (q *qtest) read() {
	s := bufio.NewScanner(q.conn)
	for s.Scan() {
		line := s.Text()
		if rest, ok := strings.CutPrefix(line, "IRQ "); ok {
			q.edge(rest)
			continue
		}
		q.answer <- line
	}
	q.edges.end(fmt.Errorf("QEMU has ended: %v", s.Err()))
	close(q.answer)
}

// edge takes "raise N" or "lower N".
func (q *qtest) edge(s string) {
	word, number, _ := strings.Cut(s, " ")
	if n, err := strconv.Atoi(number); err == nil {
		q.edges.add(n, word == "raise")
	}
}

// qtestPatience bounds an answer: QEMU gives it at once, on a busy machine soon.
const qtestPatience = 20 * time.Second

func (q *qtest) do(format string, args ...any) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	cmd := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(q.conn, cmd); err != nil {
		return "", fmt.Errorf("ask QEMU: %w", err)
	}
	select {
	case a, ok := <-q.answer:
		if rest, good := strings.CutPrefix(a, "OK"); ok && good {
			return strings.TrimSpace(rest), nil
		}
		return "", fmt.Errorf("ask QEMU for %q: it answers %q", cmd, a)
	case <-time.After(qtestPatience):
		return "", fmt.Errorf("ask QEMU for %q: no answer", cmd)
	}
}

// word reads 32 bits of the machine's memory.
func (q *qtest) word(addr uint64) (uint32, error) {
	s, err := q.do("readl %#x", addr)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("read %#x: %w", addr, err)
	}
	return uint32(v), nil
}
