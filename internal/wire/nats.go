package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// The constants of a NATS connection.
const (
	dialTimeout    = 3 * time.Second
	flushTimeout   = 5 * time.Second // a write that takes longer breaks the connection
	reconnectMin   = 100 * time.Millisecond
	reconnectMax   = 2 * time.Second
	pendingMsgs    = 16384    // of one subscription; beyond it messages are lost, and fetched
	pendingBytes   = 32 << 20 //
	complainEvery  = time.Minute
	expiryLogEvery = 24 * time.Hour
)

// InProcess is an embedded server to connect to without a socket.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// NATSOptions say where and as whom to connect.
type NATSOptions struct {
	URLs         []string         // "tls://host:port", the preferred one first; tried in turn
	InProcess    InProcess        // instead of URLs: the broker in this very process
	Seed         string           // the device's NKey seed
	PinnedKeys   []string         // see Pin; any of them will do
	Plain        bool             // without TLS; only for URLs of this host
	Name         string           // for the broker's log
	PingInterval time.Duration    // 0: 10 s; a silent connection is given up after two more
	Log          *slog.Logger     // nil: slog.Default
	Now          func() time.Time // nil: time.Now; only judges the dates of certificates
}

// NATSStatus is how a connection stands.
type NATSStatus struct {
	Connected         bool
	URL               string // of the server connected to
	LastError         string // why it is not connected, as far as known
	Reconnects        uint64
	Rebuilt           uint64 // times that the library had closed the connection for good
	Refused           uint64 // the broker refused the key of a connection that it had once accepted
	Violations        uint64 // the broker refused a subject
	Dropped           uint64 // a subscription was too slow and lost messages
	CertificateNotice string // see ExpiryNotice
}

// NATS is a Conn over core NATS. It connects, reconnects and renews its
// subscriptions by itself until it is closed.
type NATS struct {
	o       NATSOptions
	options []nats.Option
	id      string // inbox prefix

	mu       sync.Mutex
	cur      *nats.Conn // nil until the first attempt to connect has ended
	subs     []subscription
	watchers []chan bool
	shown    bool // the state that the watchers have
	closed   bool

	stop     context.CancelFunc
	done     chan struct{}
	lost     chan struct{} // the library closed the connection
	notAfter atomic.Int64  // of the server's certificate, Unix seconds

	reconnects, rebuilt, refused, violations, dropped atomic.Uint64

	complaints map[string]time.Time // under mu: when each kind was last logged
}

type subscription struct {
	subject, queue string
	h              func(Msg)
}

// Dial returns a connection that is not connected yet: it never waits for the
// network. It ends with ctx or Close. An error means that the options cannot
// work.
func Dial(ctx context.Context, o NATSOptions) (*NATS, error) {
	kp, public, err := readSeed(o.Seed)
	if err != nil {
		return nil, err
	}
	id, err := DeviceID(public)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &NATS{o: o, id: InboxPrefix(id), done: make(chan struct{}), lost: make(chan struct{}, 1),
		complaints: make(map[string]time.Time)}
	ctx, c.stop = context.WithCancel(ctx)
	if c.options, err = c.natsOptions(ctx, kp, public); err != nil {
		c.stop()
		return nil, err
	}
	go c.run(ctx)
	return c, nil
}

func (o NATSOptions) withDefaults() NATSOptions {
	if o.PingInterval <= 0 {
		o.PingInterval = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// natsOptions sets every option whose default would let a gate down.
func (c *NATS) natsOptions(ctx context.Context, kp nkeys.KeyPair, public string) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(c.o.Name),
		nats.Nkey(public, kp.Sign),
		nats.CustomInboxPrefix(c.id),
		nats.MaxReconnects(-1),          // by default it gives up for good after 60
		nats.RetryOnFailedConnect(true), //
		nats.IgnoreAuthErrorAbort(),     // by default two equal refusals end the connection for good
		nats.ReconnectBufSize(-1),       // by default a publish that returned an error is delivered later
		nats.PingInterval(c.o.PingInterval),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(dialTimeout),
		nats.SkipHostLookup(), // the dialer does it, within its time
		nats.SetCustomDialer(dialer{ctx}),
		nats.FlusherTimeout(flushTimeout),
		nats.ReconnectOnFlusherError(),
		nats.CustomReconnectDelay(backOff),
		nats.DontRandomize(),
		nats.IgnoreDiscoveredServers(), // only servers from the enrolment, whose keys are pinned
		nats.NoEcho(),
		nats.ConnectHandler(func(*nats.Conn) { c.refresh() }),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnects.Add(1); c.refresh() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.disconnected(err) }),
		nats.ClosedHandler(func(*nats.Conn) { signal(c.lost); c.refresh() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.asyncError(err) }),
	}
	if c.o.InProcess != nil {
		return append(opts, nats.InProcessServer(c.o.InProcess)), nil
	}
	return c.addressOptions(opts)
}

func (c *NATS) addressOptions(opts []nats.Option) ([]nats.Option, error) {
	if len(c.o.URLs) == 0 {
		return nil, errors.New("connect: want the address of a broker")
	}
	for _, s := range c.o.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("connect: address %q, want tls://HOST:PORT", s)
		}
		if c.o.Plain && !loopback(u.Hostname()) {
			return nil, fmt.Errorf("connect: address %q without TLS, allowed on this host only", s)
		}
	}
	if c.o.Plain {
		return opts, nil
	}
	config, err := PinnedTLS(c.o.PinnedKeys, c.sawCertificate)
	if err != nil {
		return nil, err
	}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	return append(opts, nats.Secure(config)), nil
}

// dialer dials, and breaks what it dialled, when its context ends: the library
// holds its lock while it connects, so that nothing else could stop it.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	conn, err := nd.DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &dialled{Conn: conn, release: context.AfterFunc(d.ctx, func() { conn.Close() })}, nil
}

type dialled struct {
	net.Conn
	release func() bool
}

func (c *dialled) Close() error {
	c.release()
	return c.Conn.Close()
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// backOff waits 100 ms, 200 ms … 2 s, each cut by up to a half at random, so that
// a hundred gates do not come back in step.
func backOff(attempts int) time.Duration {
	d := reconnectMax
	if attempts < 6 {
		d = min(reconnectMin<<max(attempts-1, 0), reconnectMax)
	}
	return d/2 + rand.N(d/2+1)
}

// run builds the connection, and builds it again whenever the library gave it up.
func (c *NATS) run(ctx context.Context) {
	defer close(c.done)
	expiry := time.NewTicker(expiryLogEvery)
	defer expiry.Stop()
	for attempt := 1; ctx.Err() == nil; attempt++ {
		if nc := c.build(); nc != nil {
			c.await(ctx, nc, expiry.C)
			c.rebuilt.Add(1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backOff(attempt)):
		}
	}
}

// await returns when the connection is closed for good, having closed it when
// ctx ended.
func (c *NATS) await(ctx context.Context, nc *nats.Conn, expiry <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			nc.Close()
			c.refresh()
			return
		case <-expiry:
			c.tellExpiry()
		case <-c.lost:
			if nc.IsClosed() {
				c.complain("closed", "connection closed for good, building it again", nc.LastError())
				return
			}
		}
	}
}

func (c *NATS) build() *nats.Conn {
	o := nats.GetDefaultOptions()
	o.Servers = slices.Clone(c.o.URLs)
	for _, set := range c.options {
		if err := set(&o); err != nil {
			c.complain("options", "connection options refused", err)
			return nil
		}
	}
	nc, err := o.Connect()
	if err != nil {
		c.complain("connect", "connecting was refused, trying again", err)
		return nil
	}
	c.mu.Lock()
	for _, s := range c.subs {
		c.subscribe(nc, s)
	}
	c.cur = nc
	c.mu.Unlock()
	c.refresh()
	return nc
}

func (c *NATS) subscribe(nc *nats.Conn, s subscription) {
	sub, err := nc.QueueSubscribe(s.subject, s.queue, func(m *nats.Msg) {
		msg := Msg{Subject: m.Subject, Data: m.Data}
		if m.Reply != "" {
			msg.Respond = m.Respond
		}
		s.h(msg)
	})
	if err == nil {
		err = sub.SetPendingLimits(pendingMsgs, pendingBytes)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // a closed one is built again
		c.o.Log.Error("subscription refused", "subject", s.subject, "err", err)
	}
}

func (c *NATS) sawCertificate(cert *x509.Certificate) {
	c.notAfter.Store(cert.NotAfter.Unix())
	c.tellExpiry()
}
