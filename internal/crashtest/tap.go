package crashtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// Tap stands between a gate and its broker, which speak without TLS, and tells what
// each says to the other as soon as it has left the one, before the other has it.
type Tap struct {
	Addr   string // what the gate dials
	broker string
	gate   *Log // told what the gate says
	ledger *Log // told what the ledger says; nil: nobody
	ln     net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	asked map[string]asked // by the subject of the reply
}

type asked struct {
	verb string
	data []byte
}

// NewTap listens on a port of this host.
func NewTap(broker string, gate, ledger *Log) (*Tap, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open tap: %w", err)
	}
	t := &Tap{
		Addr: ln.Addr().String(), broker: broker, gate: gate, ledger: ledger, ln: ln,
		conns: map[net.Conn]bool{}, asked: map[string]asked{},
	}
	t.wg.Go(t.accept)
	return t, nil
}

// Close ends all connections.
func (t *Tap) Close() {
	t.ln.Close()
	t.mu.Lock()
	for c := range t.conns {
		c.Close()
	}
	t.conns = nil
	t.mu.Unlock()
	t.wg.Wait()
}

func (t *Tap) accept() {
	for {
		near, err := t.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", t.broker)
		if err != nil {
			near.Close()
			continue
		}
		t.mu.Lock()
		if t.conns == nil {
			near.Close()
			far.Close()
		} else {
			t.conns[near], t.conns[far] = true, true
		}
		t.mu.Unlock()
		t.wg.Go(func() { t.pass(near, far, t.gateSays) })
		t.wg.Go(func() { t.pass(far, near, t.ledgerSays) })
	}
}

// pass copies one direction, message by message, and tells each before it goes on.
func (t *Tap) pass(from, to net.Conn, tell func(subject, reply string, data []byte)) {
	defer from.Close()
	defer to.Close()
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		raw, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		if subject, reply, n, ok := parse(string(raw)); ok {
			data := make([]byte, n+2)
			if _, err := io.ReadFull(r, data); err != nil {
				return
			}
			tell(subject, reply, data[:n])
			raw = append(raw, data...)
		}
		if _, err := to.Write(raw); err != nil {
			return
		}
	}
}

// parse reads the line before a message, as in "PUB subject [reply] bytes" and "MSG
// subject sid [reply] bytes"; of those with a header all bytes count as the message.
func parse(line string) (subject, reply string, n int, ok bool) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return "", "", 0, false
	}
	sizes, sid := 1, 0
	switch f[0] {
	case "PUB":
	case "HPUB":
		sizes = 2
	case "MSG":
		sid = 1
	case "HMSG":
		sizes, sid = 2, 1
	default:
		return "", "", 0, false
	}
	n, err := strconv.Atoi(f[len(f)-1])
	if rest := f[2+sid : len(f)-sizes]; len(rest) == 1 {
		reply = rest[0]
	}
	return f[1], reply, n, err == nil
}

// verb is what follows the author in a subject as in "gate.DEVICE.ask".
func verb(subject, kind string) string {
	f := strings.SplitN(subject, ".", 3)
	if len(f) != 3 || f[0] != kind {
		return ""
	}
	return f[2]
}

func (t *Tap) gateSays(subject, reply string, data []byte) {
	v := verb(subject, "gate")
	if reply != "" {
		t.mu.Lock()
		t.asked[reply] = asked{v, bytes.Clone(data)}
		t.mu.Unlock()
	}
	switch v {
	case "spend":
		t.gate.Say(Note{Record: bytes.Clone(data)})
	case "ask":
		records(t.gate, data, func(m wire.Ask) [][]byte { return m.Records })
	case "upload":
		records(t.gate, data, func(m wire.Upload) [][]byte { return m.Records })
	}
}

func records[M any](l *Log, data []byte, of func(M) [][]byte) {
	if m, err := read[M](data); err == nil {
		for _, raw := range of(m) {
			l.Say(Note{Record: raw})
		}
	}
}

func read[M any](data []byte) (m M, err error) { return m, cbor.Unmarshal(data, &m) }

func (t *Tap) ledgerSays(subject, _ string, data []byte) {
	if t.ledger == nil {
		return
	}
	if verb(subject, "ledger") == "spend" {
		t.ledger.Say(Note{Record: bytes.Clone(data)})
		return
	}
	t.mu.Lock()
	q, ok := t.asked[subject]
	delete(t.asked, subject)
	t.mu.Unlock()
	if !ok || len(data) == 0 {
		return
	}
	switch q.verb {
	case "ask":
		m, err := read[wire.Ask](q.data)
		r, err2 := read[wire.AskReply](data)
		if errors.Join(err, err2) == nil && r.Answer != ticket.AnswerMismatch {
			t.ledger.Say(Note{Answer: &Answer{m.Claim, m.Unit, r.Answer}})
		}
	case "upload":
		t.receipt(q.data, data)
	case "hello":
		if r, err := read[wire.HelloReply](data); err == nil {
			t.ledger.Say(Note{High: r.High})
		}
	case "fetch.ledger":
		records(t.ledger, data, func(m wire.FetchReply) [][]byte { return m.Records })
	}
}

// receipt tells what the ledger said that it has, and the records by which it got it.
func (t *Tap) receipt(request, reply []byte) {
	m, err := read[wire.Upload](request)
	r, err2 := read[wire.UploadReply](reply)
	if errors.Join(err, err2) != nil {
		return
	}
	t.ledger.Say(Note{High: r.High})
	for _, p := range r.High {
		for i, raw := range m.Records {
			if p.Run == m.Run && m.From+uint64(i) <= p.Pos {
				t.ledger.Say(Note{Record: raw})
			}
		}
	}
}
