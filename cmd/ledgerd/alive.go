package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"admitone/internal/alive"
	"admitone/internal/config"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// watchLedger makes what feeds the service manager's watchdog: the store's writer,
// and the API, which reads the store on its way. A connection to the broker that
// is down is told in words and ends nothing: it comes back by itself.
func watchLedger(c config.Ledger, http net.Addr, store func(context.Context) error, conn *wire.NATS, log *slog.Logger) (*alive.Alive, error) {
	manager, err := alive.Systemd()
	if err != nil {
		return nil, err
	}
	return alive.New(alive.Options{
		Manager: manager, Log: log,
		Proofs: []alive.Proof{
			{Name: "the store", Check: store},
			{Name: "the API", Check: healthz(c.HTTP.TLS(), http.String())},
		},
		Status: func() string {
			st := conn.Status()
			switch {
			case !st.Connected:
				return "no broker: " + st.LastError
			case st.CertificateNotice != "":
				return st.CertificateNotice
			}
			return "serves " + http.String()
		},
	})
}

// checkPatience bounds one check: a fresh connection is made for each.
const checkPatience = 5 * time.Second

// healthz asks this process's own API. Its certificate is not looked at: the
// address is the one that this process listens on.
func healthz(secure bool, addr string) func(context.Context) error {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	client := &http.Client{Timeout: checkPatience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
	}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+own(addr)+"/healthz", nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			err = fmt.Errorf("answers %s", res.Status)
		}
		return errors.Join(err, res.Body.Close())
	}
}

// own gives the address of this host that reaches a listener.
func own(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}

// watchBroker makes what feeds the watchdog of a venue's broker: its server greets
// a new connection. An uplink that is down is told in words: the gates here hear
// each other without it.
func watchBroker(b *broker.Broker, log *slog.Logger) (*alive.Alive, error) {
	manager, err := alive.Systemd()
	if err != nil {
		return nil, err
	}
	return alive.New(alive.Options{
		Manager: manager, Log: log,
		Proofs: []alive.Proof{{Name: "the broker", Check: func(ctx context.Context) error { return greets(ctx, b) }}},
		Status: func() string {
			st := b.Status()
			words := []string{fmt.Sprintf("gate list %d", st.ListVersion)}
			if st.Leaves == 0 {
				words = append([]string{"no uplink"}, words...)
			}
			if st.CertificateNotice != "" {
				words = append(words, st.CertificateNotice)
			}
			return strings.Join(words, "; ")
		},
	})
}

// greets returns nil once the server has said its first word to a new connection.
func greets(ctx context.Context, b *broker.Broker) error {
	select {
	case <-b.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := b.InProcessConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(checkPatience)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "INFO ") {
		err = fmt.Errorf("greets with %q", line)
	}
	return err
}
