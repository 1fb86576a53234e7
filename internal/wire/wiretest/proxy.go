package wiretest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP line that can be cut and hung, in front of a real server.
type Proxy struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	state proxyState
	heal  chan struct{} // closed by the next change from hung
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

type proxyState uint8

const (
	passing proxyState = iota
	refusing
	hanging
)

// NewProxy listens on a free port of this host, for the length of the test.
func NewProxy(t *testing.T, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{to: to, listener: l, heal: make(chan struct{}), conns: make(map[net.Conn]bool)}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		p.set(refusing)
		l.Close()
		p.done.Wait()
	})
	return p
}

// Addr is where it listens, "host:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks all connections and refuses new ones.
func (p *Proxy) Cut() { p.set(refusing) }

// Hang accepts, and stops reading: nobody is told anything.
func (p *Proxy) Hang() { p.set(hanging) }

// Heal lets everything pass again; connections that hung are broken.
func (p *Proxy) Heal() { p.set(passing) }

func (p *Proxy) set(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.state
	p.state = s
	if was == hanging && s != hanging {
		close(p.heal)
		p.heal = make(chan struct{})
	}
	if s == refusing || was == hanging && s == passing {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.keep(c) {
			continue
		}
		p.done.Go(func() { p.carry(c) })
	}
}

// keep notes a connection, or closes it when there are to be none.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == refusing {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

func (p *Proxy) carry(down net.Conn) {
	defer p.drop(down)
	p.await()
	up, err := net.Dial("tcp", p.to)
	if err != nil || !p.keep(up) {
		return
	}
	defer p.drop(up)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{down, up}, {up, down}} {
		both.Go(func() { p.copy(way[0], way[1]) })
	}
	both.Wait()
}

func (p *Proxy) copy(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		p.await()
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.await()
		if _, err := to.Write(buf[:n]); err != nil && err != io.ErrShortWrite {
			return
		}
	}
}

// await waits while the line hangs.
func (p *Proxy) await() {
	p.mu.Lock()
	heal, hung := p.heal, p.state == hanging
	p.mu.Unlock()
	if hung {
		<-heal
	}
}
