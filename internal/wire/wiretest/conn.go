package wiretest

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"admitone/internal/wire"
)

// Conn is one node's connection; it implements wire.Conn.
type Conn struct {
	net  *Net
	site string
	id   string

	// Under net.mu:
	link     Link
	subs     []*sub
	lastFrom map[*Conn]time.Duration // when the last message in order arrives
	queue    deliveries
	order    int
	replies  map[string]chan []byte
	requests int
	watchers []chan bool
	closed   bool

	kick    chan struct{}
	stop    chan struct{}
	running sync.WaitGroup
}

type message struct {
	subject, reply string
	data           []byte
}

type delivery struct {
	at    time.Duration // since the network's start
	order int
	sub   *sub // nil: a reply
	from  *Conn
	m     message
}

type sub struct {
	subject, queue string
	h              func(wire.Msg)

	mu      sync.Mutex
	waiting []wire.Msg
	kick    chan struct{}
}

func newConn(n *Net, site, id string) *Conn {
	c := &Conn{net: n, site: site, id: id, lastFrom: make(map[*Conn]time.Duration),
		replies: make(map[string]chan []byte), kick: make(chan struct{}, 1), stop: make(chan struct{})}
	c.running.Add(1)
	return c
}

// SetLink changes the node's own link. Cutting or hanging it loses what is under
// way; cutting it also tells the node that it is not connected.
func (c *Conn) SetLink(l Link) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	was := c.link.Cut
	c.link = l
	if l.Cut != was && !c.closed {
		for _, ch := range c.watchers {
			replace(ch, !l.Cut)
		}
	}
}

// Cut and Heal are SetLink with nothing but a cut, and with a plain link.
func (c *Conn) Cut() { c.SetLink(Link{Cut: true}) }

// Heal gives the node a plain link without delay.
func (c *Conn) Heal() { c.SetLink(Link{}) }

// Hang lets nothing pass, and the node believe that it is connected.
func (c *Conn) Hang() { c.SetLink(Link{Hang: true}) }

// Publish implements wire.Conn.
func (c *Conn) Publish(subject string, data []byte) error {
	_, err := c.send(message{subject: subject, data: data})
	return err
}

func (c *Conn) send(m message) (heard bool, err error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	switch {
	case c.closed:
		return false, wire.ErrClosed
	case c.link.Cut:
		return false, wire.ErrNotConnected
	}
	return c.net.send(c, m), nil
}

// Request implements wire.Conn.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	c.net.mu.Lock()
	c.requests++
	reply, ch := fmt.Sprintf("_INBOX_%s.%d", c.id, c.requests), make(chan []byte, 1)
	c.replies[reply] = ch
	hung := c.link.Hang
	c.net.mu.Unlock()
	defer func() {
		c.net.mu.Lock()
		delete(c.replies, reply)
		c.net.mu.Unlock()
	}()
	heard, err := c.send(message{subject: subject, reply: reply, data: data})
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", subject, err)
	}
	if !heard && !hung { // a hung broker tells nothing, not even that
		return nil, fmt.Errorf("request %s: %w", subject, wire.ErrNoResponders)
	}
	select {
	case b := <-ch:
		return b, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("request %s: %w", subject, ctx.Err())
	case <-c.stop:
		return nil, wire.ErrClosed
	}
}

// Subscribe implements wire.Conn.
func (c *Conn) Subscribe(subject, queue string, h func(wire.Msg)) error {
	s := &sub{subject: subject, queue: queue, h: h, kick: make(chan struct{}, 1)}
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return wire.ErrClosed
	}
	c.subs = append(c.subs, s)
	c.running.Add(1)
	go c.serve(s)
	return nil
}

// Connected implements wire.Conn.
func (c *Conn) Connected() <-chan bool {
	ch := make(chan bool, 1)
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	ch <- !c.link.Cut && !c.closed
	c.watchers = append(c.watchers, ch)
	return ch
}

// Close ends the connection and waits for the handler that is running.
func (c *Conn) Close() {
	c.net.mu.Lock()
	was := c.closed
	if !was {
		c.closed, c.subs = true, nil
		close(c.stop)
	}
	c.net.mu.Unlock()
	c.running.Wait()
}

// push queues a delivery; net.mu is held.
func (c *Conn) push(d delivery) {
	c.order++
	d.order = c.order
	heap.Push(&c.queue, d)
	signal(c.kick)
}

// deliver hands messages over when they arrive.
func (c *Conn) deliver() {
	defer c.running.Done()
	for {
		wait := c.due()
		select {
		case <-c.stop:
			return
		case <-c.kick:
		case <-time.After(wait):
		}
	}
}

// due delivers what has arrived, and says how long the next takes.
func (c *Conn) due() time.Duration {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for len(c.queue) > 0 {
		if wait := c.queue[0].at - time.Since(c.net.start); wait > 0 {
			return wait
		}
		d := heap.Pop(&c.queue).(delivery)
		if c.link.Deaf || lost(c.net.path(d.from, c)) {
			continue
		}
		if d.sub != nil {
			d.sub.push(c.msg(d))
		} else if ch, ok := c.replies[d.m.subject]; ok {
			select {
			case ch <- d.m.data:
			default: // a second reply
			}
		}
	}
	return time.Hour
}

func (c *Conn) msg(d delivery) wire.Msg {
	m := wire.Msg{Subject: d.m.subject, Data: d.m.data}
	if d.m.reply != "" {
		m.Respond = func(data []byte) error { return c.respond(d.from, d.m.reply, data) }
	}
	return m
}

func (c *Conn) respond(to *Conn, reply string, data []byte) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed || c.link.Cut {
		return wire.ErrNotConnected
	}
	c.net.sent++
	if reach(c.net.path(c, to)) {
		c.net.carry(c, target{conn: to}, message{subject: reply, data: data})
	}
	return nil
}

func (s *sub) push(m wire.Msg) {
	s.mu.Lock()
	s.waiting = append(s.waiting, m)
	s.mu.Unlock()
	signal(s.kick)
}

func (s *sub) pop() (wire.Msg, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return wire.Msg{}, false
	}
	m := s.waiting[0]
	s.waiting = s.waiting[1:]
	return m, true
}

// serve runs one subscription's handler, one message at a time.
func (c *Conn) serve(s *sub) {
	defer c.running.Done()
	for {
		select {
		case <-c.stop:
			return
		case <-s.kick:
		}
		for m, ok := s.pop(); ok && !c.stopped(); m, ok = s.pop() {
			s.h(m)
		}
	}
}

func (c *Conn) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

type deliveries []delivery

func (d deliveries) Len() int      { return len(d) }
func (d deliveries) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d deliveries) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].order < d[j].order
}
func (d *deliveries) Push(x any) { *d = append(*d, x.(delivery)) }
func (d *deliveries) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// replace puts v into a channel of one, over what nobody has read.
func replace(ch chan bool, v bool) {
	for {
		select {
		case ch <- v:
			return
		default:
		}
		select {
		case <-ch:
		default:
		}
	}
}
