package broker

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"admitone/internal/wire"
)

// Times of the server (those of wire's clients, so that both ends give a dead
// link up alike).
const (
	pingInterval  = 10 * time.Second
	pingsOut      = 2
	startWithin   = 10 * time.Second
	startPoll     = 100 * time.Millisecond
	uplinkWait    = time.Second     // between attempts to reach the hub
	uplinkTimeout = 5 * time.Second // of one attempt: a slow uplink is an uplink
	maxPending    = 16 << 20        // bytes queued for one slow connection before it is cut
	maxConns      = 4096
)

// Options set a broker up.
type Options struct {
	Name   string // for logs
	Listen string // for gates and ledgers, "host:port"; port 0: any free one

	// LeafListen is where venues' brokers connect; "": none may.
	LeafListen string

	// CertFile and KeyFile are a PEM pair as wire.NewCertificate makes it. Plain
	// does without TLS and may listen on this host only.
	CertFile, KeyFile string
	Plain             bool

	// Ledgers are the public NKeys of ledger processes.
	Ledgers []string

	// ListKey is the public half of what the ledger signs gate lists with. ListFile,
	// if not empty, keeps the last list over restarts.
	ListKey  ed25519.PublicKey
	ListFile string

	// Upstream makes this a venue's broker, a leaf of the hub at these addresses
	// ("tls://host:port"), as the device of Seed, with the hub's pinned keys.
	Upstream     []string
	UpstreamPins []string

	// Seed is this broker's own NKey. A hub needs none: it makes one.
	Seed string

	Log *slog.Logger     // nil: slog.Default
	Now func() time.Time // nil: time.Now; only judges the dates of certificates
}

// Broker is one embedded server. Run runs it once.
type Broker struct {
	o        Options
	opts     *server.Options
	srv      *server.Server
	logger   *logger
	register *register
	seed     string
	public   string

	ready    chan struct{}
	uplink   atomic.Int64 // NotAfter of the hub's certificate, Unix seconds
	ownEnd   time.Time    // NotAfter of our own
	mu       sync.Mutex
	version  uint64
	signed   []byte
	changed  map[string]bool // keys whose rights the last list changed
	changeAt time.Time
}

// New checks the options and starts nothing.
func New(o Options) (*Broker, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Broker{o: o, register: newRegister(), logger: newLogger(o.Log), ready: make(chan struct{})}
	if err := b.identify(); err != nil {
		return nil, err
	}
	opts, err := b.serverOptions()
	if err != nil {
		return nil, err
	}
	b.opts = opts
	if b.srv, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("set up broker: %w", err)
	}
	b.srv.SetLoggerV2(b.logger, false, false, false)
	b.readListFile()
	return b, nil
}

// identify sets the broker's own key and those of the ledgers.
func (b *Broker) identify() (err error) {
	b.seed = b.o.Seed
	if b.seed == "" {
		if len(b.o.Upstream) > 0 {
			return errors.New("set up broker: a venue's broker wants its device key")
		}
		if b.seed, _, err = wire.NewDeviceKey(); err != nil {
			return err
		}
	}
	if b.public, err = wire.PublicKey(b.seed); err != nil {
		return err
	}
	if err := b.register.addFixed(b.public, self); err != nil {
		return err
	}
	for _, key := range b.o.Ledgers {
		if err := b.register.addFixed(key, ledger); err != nil {
			return fmt.Errorf("set up broker: ledger's key: %w", err)
		}
	}
	if len(b.o.ListKey) != ed25519.PublicKeySize {
		return errors.New("set up broker: want the key that gate lists are signed with")
	}
	return nil
}

func (b *Broker) serverOptions() (*server.Options, error) {
	host, port, err := address(b.o.Listen, b.o.Plain)
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: b.o.Name, Host: host, Port: port,
		NoSigs: true, MaxPayload: wire.MaxMessage, MaxPending: maxPending, MaxConn: maxConns,
		PingInterval: pingInterval, MaxPingsOut: pingsOut,
		AlwaysEnableNonce: true, CustomClientAuthentication: b.register,
	}
	if !b.o.Plain {
		if o.TLSConfig, err = b.serverTLS(); err != nil {
			return nil, err
		}
		o.TLSTimeout = uplinkTimeout.Seconds()
		o.AuthTimeout = 2 * uplinkTimeout.Seconds()
	}
	if b.o.LeafListen != "" {
		if o.LeafNode.Host, o.LeafNode.Port, err = address(b.o.LeafListen, b.o.Plain); err != nil {
			return nil, err
		}
		o.LeafNode.TLSConfig, o.LeafNode.TLSTimeout = o.TLSConfig, o.TLSTimeout
	}
	if len(b.o.Upstream) > 0 {
		remote, err := b.remote()
		if err != nil {
			return nil, err
		}
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{remote}
		o.LeafNode.ReconnectInterval = uplinkWait
	}
	return o, nil
}

func (b *Broker) serverTLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(b.o.CertFile, b.o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read broker's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read broker's certificate: %w", err)
	}
	b.ownEnd = cert.NotAfter
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}, nil
}

func (b *Broker) remote() (*server.RemoteLeafOpts, error) {
	r := &server.RemoteLeafOpts{
		Nkey: b.seed, NoRandomize: true, IgnoreDiscoveredServers: true,
		DialTimeout: uplinkTimeout, FirstInfoTimeout: uplinkTimeout, TLSTimeout: uplinkTimeout.Seconds(),
	}
	plain := len(b.o.UpstreamPins) == 0
	for _, s := range b.o.Upstream {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("set up broker: upstream %q, want tls://HOST:PORT", s)
		}
		if plain && (!b.o.Plain || !loopback(u.Hostname())) {
			return nil, fmt.Errorf("set up broker: upstream %q without a pinned key, allowed on this host only", s)
		}
		r.URLs = append(r.URLs, u)
	}
	if plain {
		return r, nil
	}
	config, err := wire.PinnedTLS(b.o.UpstreamPins, func(c *x509.Certificate) { b.uplink.Store(c.NotAfter.Unix()) })
	r.TLSConfig, r.TLS = config, true
	return r, err
}

// address splits "host:port"; the server's word for any free port is -1.
func address(s string, plain bool) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("set up broker: address %q, want HOST:PORT: %w", s, err)
	case plain && !loopback(host):
		return "", 0, fmt.Errorf("set up broker: address %q without TLS, allowed on this host only", s)
	case port == 0:
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Run serves until ctx ends, and returns nil then, when the last of the server's
// goroutines is gone. An error means that it could not listen.
func (b *Broker) Run(ctx context.Context) error {
	b.srv.Start()
	defer func() {
		b.srv.Shutdown()
		b.srv.WaitForShutdown()
	}()
	if err := b.awaitStart(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	close(b.ready)
	return b.followList(ctx)
}

func (b *Broker) awaitStart(ctx context.Context) error {
	for end := time.Now().Add(startWithin); ; {
		select {
		case <-ctx.Done():
			return nil
		case text := <-b.logger.fatal:
			return fmt.Errorf("start broker: %s", text)
		default:
		}
		if b.srv.ReadyForConnections(startPoll) {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("start broker: not ready in time")
		}
	}
}

// Ready is closed when the broker listens.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// URL is where gates and ledgers connect; only after Ready.
func (b *Broker) URL() string {
	if a := b.srv.Addr(); a != nil {
		return b.scheme() + a.String()
	}
	return ""
}

// LeafURL is where venues' brokers connect; only after Ready.
func (b *Broker) LeafURL() string {
	if b.o.LeafListen == "" {
		return ""
	}
	return b.scheme() + net.JoinHostPort(b.opts.LeafNode.Host, strconv.Itoa(b.opts.LeafNode.Port))
}

func (b *Broker) scheme() string {
	if b.o.Plain {
		return "nats://"
	}
	return "tls://"
}

// InProcessConn implements wire.InProcess: a connection without a socket, for the
// ledger in the same process. It proves its NKey like any other.
func (b *Broker) InProcessConn() (net.Conn, error) { return b.srv.InProcessConn() }

// Status is how a broker stands.
type Status struct {
	Clients           int
	Leaves            int    // brokers of venues at a hub; 1 or 0 at a venue: whether the uplink is there
	ListVersion       uint64 // of the gate list in force; 0: none yet
	CertificateNotice string // see wire.ExpiryNotice; the nearer end of our own and the hub's
}

// Status tells how the broker stands.
func (b *Broker) Status() Status {
	end := b.ownEnd
	if s := b.uplink.Load(); s != 0 && (end.IsZero() || s < end.Unix()) {
		end = time.Unix(s, 0)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{Clients: b.srv.NumClients(), Leaves: b.srv.NumLeafNodes(), ListVersion: b.version,
		CertificateNotice: wire.ExpiryNotice(end, b.o.Now())}
}
