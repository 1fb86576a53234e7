package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
	"admitone/internal/outbox"
	"admitone/internal/reload"
)

// parts are what the HTTP side is made of.
type parts struct {
	ledger    *ledger.Ledger
	books     office.Books
	box       *office.Office
	out       *outbox.Outbox
	keys      *live
	enrolment ledgerhttp.Enrolment
}

// httpSide is the API on its port.
type httpSide struct {
	server *ledgerhttp.Server
	ln     net.Listener
	cert   *reload.Watcher // nil: no TLS
}

func openHTTP(c config.Ledger, p parts, log *slog.Logger) (*httpSide, error) {
	hooks, err := openShop(p.ledger, p.box, p.books, log)
	if err != nil {
		return nil, err
	}
	server, err := ledgerhttp.New(ledgerhttp.Options{
		Ledger: p.ledger, Now: time.Now, Log: log, Enrolment: p.enrolment, Office: p.box, Policies: policies(c),
		Sources: sources(c, p.keys), Shop: hooks, Outbox: p.out,
		Limits: ledgerhttp.Limits{
			Rate: float64(c.HTTP.Limits.Rate), Burst: c.HTTP.Limits.Burst, Failures: float64(c.HTTP.Limits.Failures),
		},
	})
	if err != nil {
		return nil, err
	}
	p.keys.serve(server.SetAccess)
	ln, cert, err := listen(c.HTTP, log)
	if err != nil {
		return nil, err
	}
	return &httpSide{server, ln, cert}, nil
}

// run serves until ctx is done.
func (h *httpSide) run(ctx context.Context) error {
	eg, ctx := errgroup.WithContext(ctx)
	eg.Go(func() error { return h.server.Run(ctx, h.ln) })
	if h.cert != nil {
		eg.Go(func() error { return h.cert.Run(ctx) })
	}
	return eg.Wait()
}

// listen opens the API's port, over TLS where the configuration has a
// certificate, which the watcher then keeps up to date.
func listen(c config.HTTP, log *slog.Logger) (net.Listener, *reload.Watcher, error) {
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	if !c.TLS() {
		return ln, nil, nil
	}
	pair := reload.NewCertificate(c.Cert, c.Key)
	w, err := reload.New(reload.Options{Name: "HTTP certificate", Load: pair.Load, Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.Get}), w, nil
}
