package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"admitone/internal/wire"
)

// brokerPatience bounds a look at one broker.
const brokerPatience = 5 * time.Second

// brokers looks at each broker of the enrolment: one that answers will do, and
// without any a gate still works, alone.
func (x *examination) brokers(ctx context.Context) {
	reached := 0
	for _, u := range x.c.Device.Brokers {
		notAfter, err := x.greet(ctx, u)
		switch notice := wire.ExpiryNotice(notAfter, x.now()); {
		case errors.Is(err, errNotPinned):
			x.bad("broker", "enrol this box anew where the broker's key was changed; otherwise somebody stands between", "%s: %v", u, err)
		case err != nil:
			x.warn("broker", "is it running, is its port open, does the name resolve?", "%s: %v", u, err)
		case notice != "":
			reached++
			x.warn("broker", "renew it: nothing stops working for it", "%s: %s", u, notice)
		default:
			reached++
			x.ok("broker", "%s answers", u)
		}
	}
	if n := len(x.c.Device.Brokers); n > 0 && reached == 0 {
		x.bad("network", "the gate admits alone meanwhile, and doubles with other gates are found only later", "no broker of %d can be reached", n)
	}
}

// errNotPinned is returned when a broker has another key than the enrolment says.
var errNotPinned = errors.New("has another key than the enrolment pins")

// greet connects to a broker as a gate does, up to the point where the gate would
// say who it is: the server's first line, then TLS with the pinned key. It gives
// the end of the certificate, if there is one.
func (x *examination) greet(ctx context.Context, broker string) (notAfter time.Time, err error) {
	u, err := url.Parse(broker)
	if err != nil {
		return notAfter, err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	conn, err := x.dial(ctx, u.Host)
	if err != nil {
		return notAfter, err
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return notAfter, err
		}
	}
	line, err := bufio.NewReaderSize(conn, maxInfo).ReadSlice('\n') // the server is silent after it
	if err != nil || !strings.HasPrefix(string(line), "INFO ") {
		return notAfter, fmt.Errorf("what answers there is no broker: %w", cmp.Or(err, errors.New("it greets in other words")))
	}
	if u.Scheme != "tls" {
		return notAfter, nil
	}
	config, err := wire.PinnedTLS(x.c.Device.BrokerKeys, func(c *x509.Certificate) { notAfter = c.NotAfter })
	if err != nil {
		return notAfter, err
	}
	check := config.VerifyConnection
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		if err := check(cs); err != nil {
			return fmt.Errorf("%w: %w", errNotPinned, err)
		}
		return nil
	}
	return notAfter, tls.Client(conn, config).HandshakeContext(ctx)
}

// maxInfo is more than a server's first line has.
const maxInfo = 64 << 10
