package wiretest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"admitone/internal/wire"
)

// Node is one party of the network under test.
type Node struct {
	Conn      wire.Conn
	ID        string // the device id, or the ledger's process name
	Cut, Heal func()
	Close     func()
}

// Parties make the nodes of one network. Gates and ledgers may use only the
// subjects that package wire gives them.
type Parties struct {
	Gate   func(t *testing.T) Node
	Ledger func(t *testing.T) Node
}

// patience is how long something that must happen may take on a loaded machine.
const patience = 20 * time.Second

// RunConn runs the suite that every wire.Conn passes. Each test makes a network.
func RunConn(t *testing.T, network func(t *testing.T) Parties) {
	for name, test := range map[string]func(*testing.T, Parties){
		"published messages reach all others":      testPublish,
		"a queue group shares":                     testQueue,
		"requests get their own reply":             testRequest,
		"a request to nobody fails at once":        testNoResponders,
		"a request ends with its context":          testRequestEnds,
		"handlers run one at a time and in order":  testOrder,
		"a cut is told and nothing kept for later": testCut,
		"a closed connection says so":              testClosed,
	} {
		t.Run(name, func(t *testing.T) { test(t, network(t)) })
	}
}

// collect subscribes and gives what arrives.
func collect(t *testing.T, c wire.Conn, subject, queue string) <-chan string {
	t.Helper()
	ch := make(chan string, 1000)
	err := c.Subscribe(subject, queue, func(m wire.Msg) { ch <- m.Subject + " " + string(m.Data) })
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// reached waits until a request from one node is answered by the other's
// subscription: subscriptions take a moment to be known.
func reached(t *testing.T, from wire.Conn, subject string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, err := from.Request(ctx, subject, []byte("there?"))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("nobody answers %s: %v", subject, err)
		}
		wait(ctx, 5*time.Millisecond)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s never came", what)
		panic("unreachable")
	}
}

func answer(t *testing.T, c wire.Conn, subject, queue, with string) {
	t.Helper()
	err := c.Subscribe(subject, queue, func(m wire.Msg) {
		if m.Respond != nil {
			_ = m.Respond([]byte(with + string(m.Data)))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, ch <-chan bool, want bool) {
	t.Helper()
	for receive(t, ch, fmt.Sprintf("connected = %v", want)) != want {
	}
}

// settle waits until both ends know each other's subscriptions.
func settle(t *testing.T, p Parties, gates ...Node) {
	t.Helper()
	for _, g := range gates {
		await(t, g.Conn.Connected(), true)
	}
	for i, a := range gates {
		answer(t, a.Conn, "gate.*.fetch."+a.ID, "", "")
		for _, b := range gates[:i] {
			reached(t, b.Conn, "gate."+b.ID+".fetch."+a.ID)
			reached(t, a.Conn, "gate."+a.ID+".fetch."+b.ID)
		}
	}
}

func testPublish(t *testing.T, p Parties) {
	a, b, c := p.Gate(t), p.Gate(t), p.Gate(t)
	own, atB, atC := collect(t, a.Conn, "gate.*.spend", ""), collect(t, b.Conn, "gate.*.spend", ""), collect(t, c.Conn, "gate.*.spend", "")
	settle(t, p, a, b, c)
	must(t, a.Conn.Publish("gate."+a.ID+".spend", []byte("1")))
	must(t, a.Conn.Publish("gate."+a.ID+".head", []byte("2"))) // another subject
	must(t, b.Conn.Publish("gate."+b.ID+".spend", []byte("3")))
	if got := receive(t, atB, "a's spend"); got != "gate."+a.ID+".spend 1" {
		t.Errorf("b got %q", got)
	}
	got := map[string]bool{receive(t, atC, "a spend"): true, receive(t, atC, "a spend"): true}
	if !got["gate."+a.ID+".spend 1"] || !got["gate."+b.ID+".spend 3"] {
		t.Errorf("c got %v", got)
	}
	if got := receive(t, own, "b's spend"); got != "gate."+b.ID+".spend 3" {
		t.Errorf("a got %q: its own message, or none of b's", got)
	}
}

func testQueue(t *testing.T, p Parties) {
	gate, one, two := p.Gate(t), p.Ledger(t), p.Ledger(t)
	both := make(chan string, 1000)
	for _, l := range []Node{one, two} {
		err := l.Conn.Subscribe("gate.*.ask", "ledger", func(m wire.Msg) {
			if string(m.Data) != "there?" {
				both <- string(m.Data)
			}
			if m.Respond != nil {
				_ = m.Respond(nil)
			}
		})
		must(t, err)
	}
	await(t, one.Conn.Connected(), true)
	await(t, two.Conn.Connected(), true)
	await(t, gate.Conn.Connected(), true)
	reached(t, gate.Conn, "gate."+gate.ID+".ask")
	const n = 50
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := gate.Conn.Request(ctx, "gate."+gate.ID+".ask", []byte(fmt.Sprint(i)))
		cancel()
		must(t, err)
	}
	seen := make(map[string]int)
	for range n {
		seen[receive(t, both, "an ask")]++
	}
	if len(seen) != n || len(both) > 0 {
		t.Errorf("%d of %d asks came to exactly one of two, and %d more", len(seen), n, len(both))
	}
}

func testRequest(t *testing.T, p Parties) {
	a, b := p.Gate(t), p.Gate(t)
	answer(t, b.Conn, "gate.*.fetch."+b.ID, "", "re ")
	await(t, a.Conn.Connected(), true)
	await(t, b.Conn.Connected(), true)
	reached(t, a.Conn, "gate."+a.ID+".fetch."+b.ID)
	results := make(chan error, 20)
	for i := range 20 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			want := fmt.Sprint("re ", i)
			got, err := a.Conn.Request(ctx, "gate."+a.ID+".fetch."+b.ID, []byte(fmt.Sprint(i)))
			if err == nil && string(got) != want {
				err = fmt.Errorf("got %q, want %q", got, want)
			}
			results <- err
		}()
	}
	for range 20 {
		must(t, receive(t, results, "a reply"))
	}
}

func testNoResponders(t *testing.T, p Parties) {
	a := p.Gate(t)
	await(t, a.Conn.Connected(), true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := a.Conn.Request(ctx, "gate."+a.ID+".ask", nil); !errors.Is(err, wire.ErrNoResponders) {
		t.Errorf("got %v, want ErrNoResponders", err)
	}
}

func testRequestEnds(t *testing.T, p Parties) {
	a, b := p.Gate(t), p.Gate(t)
	must(t, b.Conn.Subscribe("gate.*.fetch."+b.ID, "", func(m wire.Msg) {
		if string(m.Data) == "there?" {
			_ = m.Respond(nil)
		}
	}))
	await(t, a.Conn.Connected(), true)
	await(t, b.Conn.Connected(), true)
	reached(t, a.Conn, "gate."+a.ID+".fetch."+b.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Conn.Request(ctx, "gate."+a.ID+".fetch."+b.ID, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func testOrder(t *testing.T, p Parties) {
	a, b := p.Gate(t), p.Gate(t)
	running, got := make(chan bool, 1), make(chan string, 300)
	must(t, b.Conn.Subscribe("gate.*.spend", "", func(m wire.Msg) {
		running <- true // would block if another were running
		got <- string(m.Data)
		<-running
	}))
	settle(t, p, a, b)
	for i := range 300 {
		must(t, a.Conn.Publish("gate."+a.ID+".spend", []byte(fmt.Sprint(i))))
	}
	for i := range 300 {
		if s := receive(t, got, "a spend"); s != fmt.Sprint(i) {
			t.Fatalf("spend %s came as number %d", s, i)
		}
	}
}

func testCut(t *testing.T, p Parties) {
	a, b := p.Gate(t), p.Gate(t)
	atB := collect(t, b.Conn, "gate.*.spend", "")
	settle(t, p, a, b)
	state := a.Conn.Connected()
	await(t, state, true)
	a.Cut()
	await(t, state, false)
	if err := a.Conn.Publish("gate."+a.ID+".spend", []byte("lost")); !errors.Is(err, wire.ErrNotConnected) {
		t.Errorf("publish while cut: %v, want ErrNotConnected", err)
	}
	if _, err := a.Conn.Request(t.Context(), "gate."+a.ID+".fetch."+b.ID, nil); !errors.Is(err, wire.ErrNotConnected) {
		t.Errorf("request while cut: %v, want ErrNotConnected", err)
	}
	a.Heal()
	await(t, state, true)
	reached(t, b.Conn, "gate."+b.ID+".fetch."+a.ID) // a's subscription is back
	must(t, a.Conn.Publish("gate."+a.ID+".spend", []byte("after")))
	if got := receive(t, atB, "the spend after the cut"); got != "gate."+a.ID+".spend after" {
		t.Errorf("got %q: what was refused while cut came later", got)
	}
}

func testClosed(t *testing.T, p Parties) {
	a := p.Gate(t)
	await(t, a.Conn.Connected(), true)
	a.Close()
	if err := a.Conn.Publish("gate."+a.ID+".spend", nil); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("publish: %v, want ErrClosed", err)
	}
	if err := a.Conn.Subscribe("gate.*.spend", "", func(wire.Msg) {}); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("subscribe: %v, want ErrClosed", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
