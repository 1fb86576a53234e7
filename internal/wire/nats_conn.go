package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Close ends the connection and waits until it is down.
func (c *NATS) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	<-c.done
}

// Status tells how the connection stands.
func (c *NATS) Status() NATSStatus {
	s := NATSStatus{Reconnects: c.reconnects.Load(), Rebuilt: c.rebuilt.Load(),
		Refused: c.refused.Load(), Violations: c.violations.Load(), Dropped: c.dropped.Load(),
		CertificateNotice: ExpiryNotice(c.expires(), c.o.Now())}
	c.mu.Lock()
	nc := c.cur
	c.mu.Unlock()
	switch {
	case nc == nil:
	case nc.IsConnected():
		s.Connected, s.URL = true, nc.ConnectedUrlRedacted()
	case nc.LastError() != nil:
		s.LastError = nc.LastError().Error()
	}
	return s
}

func (c *NATS) expires() time.Time {
	if s := c.notAfter.Load(); s != 0 {
		return time.Unix(s, 0)
	}
	return time.Time{}
}

// current gives the library's connection if it is up.
func (c *NATS) current() (*nats.Conn, error) {
	c.mu.Lock()
	nc, closed := c.cur, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case nc == nil || !nc.IsConnected():
		return nil, ErrNotConnected
	}
	return nc, nil
}

// Publish implements Conn.
func (c *NATS) Publish(subject string, data []byte) error {
	nc, err := c.current()
	if err != nil {
		return err
	}
	if err := nc.Publish(subject, data); err != nil {
		return fmt.Errorf("publish %s: %w", subject, translate(err))
	}
	return nil
}

// Request implements Conn.
func (c *NATS) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	nc, err := c.current()
	if err != nil {
		return nil, err
	}
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", subject, translate(err))
	}
	return m.Data, nil
}

func translate(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoResponders
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected):
		return ErrNotConnected
	}
	return err
}

// Subscribe implements Conn.
func (c *NATS) Subscribe(subject, queue string, h func(Msg)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	s := subscription{subject: subject, queue: queue, h: h}
	c.subs = append(c.subs, s)
	if c.cur != nil {
		c.subscribe(c.cur, s)
	}
	return nil
}

// Connected implements Conn.
func (c *NATS) Connected() <-chan bool {
	ch := make(chan bool, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, ch)
	ch <- c.shown
	return ch
}

// refresh tells the watchers if the state has changed.
func (c *NATS) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.cur != nil && c.cur.IsConnected()
	if up == c.shown {
		return
	}
	c.shown = up
	for _, ch := range c.watchers {
		replace(ch, up)
	}
}

// replace puts v into a channel of one, over what nobody has read. There is one
// sender at a time.
func replace[T any](ch chan T, v T) {
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

// signal leaves a mark in a channel of one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *NATS) disconnected(err error) {
	c.refresh()
	if err != nil {
		c.complain("disconnected", "connection to the broker lost", err)
	}
}

// asyncError hears what the broker says of no call in particular. A refused
// subject shows nowhere else: who published only sees a time-out.
func (c *NATS) asyncError(err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		c.violations.Add(1)
		c.complain("violation", "broker refused a subject", err)
	case errors.Is(err, nats.ErrAuthorization):
		c.refused.Add(1)
		c.complain("refused", "broker refused this device's key", err)
	case errors.Is(err, nats.ErrSlowConsumer):
		c.dropped.Add(1)
		c.complain("slow", "messages dropped, they will be fetched", err)
	default:
		c.complain("broker", "broker reported an error", err)
	}
}

// complain logs, each kind at most once a minute.
func (c *NATS) complain(kind, text string, err error) {
	now := time.Now()
	c.mu.Lock()
	last, again := c.complaints[kind]
	if again && now.Sub(last) < complainEvery {
		c.mu.Unlock()
		return
	}
	c.complaints[kind] = now
	c.mu.Unlock()
	c.o.Log.Warn(text, "err", err)
}

func (c *NATS) tellExpiry() {
	notice := ExpiryNotice(c.expires(), c.o.Now())
	if notice == "" {
		return
	}
	now := time.Now()
	c.mu.Lock()
	last, again := c.complaints["expiry"]
	due := !again || now.Sub(last) >= expiryLogEvery
	if due {
		c.complaints["expiry"] = now
	}
	c.mu.Unlock()
	if due {
		c.o.Log.Warn("broker's certificate needs renewal", "notice", notice)
	}
}
