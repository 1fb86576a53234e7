package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Cut is how a link is broken.
type Cut string

// The cuts.
const (
	Whole Cut = ""     // not cut
	Down  Cut = "down" // connections are refused, and those that were open are reset
	Hang  Cut = "hang" // connections are accepted, and nothing goes through
)

// proxy carries one link, and breaks it on demand.
type proxy struct {
	target string
	addr   string

	mu    sync.Mutex
	cut   Cut
	ln    net.Listener // nil while down
	conns map[net.Conn]bool
	flow  chan struct{} // closed while bytes may pass
	gone  bool
}

func newProxy(target string) (*proxy, error) {
	p := &proxy{target: target, conns: map[net.Conn]bool{}, flow: make(chan struct{})}
	close(p.flow)
	ln, err := listen()
	if err != nil {
		return nil, fmt.Errorf("open link: %w", err)
	}
	p.ln, p.addr = ln, ln.Addr().String()
	go p.accept(ln)
	return p, nil
}

func (p *proxy) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

// serve joins a connection with one to the target, which it makes only once bytes
// may pass.
func (p *proxy) serve(c net.Conn) {
	if !p.keep(c) {
		c.Close()
		return
	}
	defer p.drop(c)
	if !p.wait(c) {
		return
	}
	t, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil || !p.keep(t) {
		return
	}
	defer p.drop(t)
	done := make(chan struct{}, 2)
	go func() { p.pipe(t, c); done <- struct{}{} }()
	go func() { p.pipe(c, t); done <- struct{}{} }()
	<-done
	c.Close()
	t.Close()
	<-done
}

func (p *proxy) pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.wait(from) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns true once bytes may pass, false when the connection was cut.
func (p *proxy) wait(c net.Conn) bool {
	for {
		p.mu.Lock()
		flow, cut, there := p.flow, p.cut, p.conns[c]
		p.mu.Unlock()
		if !there || cut == Down {
			return false
		}
		if cut == Whole {
			return true
		}
		<-flow
	}
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.cut == Down {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	c.Close()
}

// set breaks the link or mends it.
func (p *proxy) set(cut Cut) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cut == p.cut || p.gone {
		return nil
	}
	if p.ln == nil {
		ln, err := relisten(p.addr)
		if err != nil {
			return fmt.Errorf("mend link: %w", err)
		}
		p.ln = ln
		go p.accept(ln)
	}
	was := p.cut
	p.cut = cut
	if was != Whole {
		close(p.flow) // whoever waits looks again
	}
	if cut != Whole {
		p.flow = make(chan struct{})
	}
	if cut == Down {
		p.ln.Close()
		p.ln = nil
		p.reset()
	}
	return nil
}

// relisten takes the address again that the link had: the other side knows no
// other. The kernel may need a moment to give it back.
func relisten(addr string) (ln net.Listener, err error) {
	for range 50 {
		if ln, err = net.Listen("tcp", addr); err == nil {
			return ln, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, err
}

func (p *proxy) reset() {
	for c := range p.conns {
		if t, ok := c.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
		c.Close()
		delete(p.conns, c)
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	p.gone = true
	if p.ln != nil {
		p.ln.Close()
	}
	p.reset()
	if p.cut != Whole {
		close(p.flow)
		p.cut = Whole
	}
}

// The lab's ports lie below those that Linux gives to connections by itself (from
// 32768): one whose process is dead, or whose link is down, is not taken meanwhile.
const (
	portFrom = 20000
	portTo   = 32000
)

// listen takes some port that nobody has now.
func listen() (ln net.Listener, err error) {
	for range 100 {
		port := portFrom + rand.IntN(portTo-portFrom)
		if ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("find a free port: %w", err)
}

// freePort gives the address of a port that nobody has now.
func freePort() (string, error) {
	ln, err := listen()
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// await calls try until it returns nil or ctx ends, and gives the last error then.
func await(ctx context.Context, what string, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
