package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"admitone/internal/acquirer"
	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// openOffice makes the box office, whose rows are in the ledger's own store.
func openOffice(c config.Ledger, l *ledger.Ledger, books office.Books, log *slog.Logger) (*office.Office, error) {
	o := office.Options{
		Books: books, Ledger: counter{l}, Answer: ledgerhttp.Answer, Process: c.Process, Now: time.Now, Log: log,
		Forget: forget(c), Timeout: time.Duration(c.Acquirer.Timeout), CardByDefault: c.Acquirer.Default,
	}
	if c.TicketKey != "" {
		key, err := config.ReadKey(c.TicketKey)
		if err != nil {
			return nil, err
		}
		signer := ticket.NewSigner(key)
		o.Signer = &signer
	}
	if c.Acquirer.URL != "" {
		client := acquirer.Client{URL: c.Acquirer.URL, HTTP: &http.Client{}} // each request has its own time
		if c.Acquirer.Key != "" {
			b, err := os.ReadFile(c.Acquirer.Key)
			if err != nil {
				return nil, fmt.Errorf("read acquirer's key: %w", err)
			}
			client.Bearer = strings.TrimSpace(string(b))
		}
		o.Acquirer = &client
	}
	return office.New(o)
}

// forget names the endpoints of the seen table whose rows go when their time is
// over.
func forget(c config.Ledger) []string {
	endpoints := config.PolicyEndpoints()
	for _, w := range c.Webhooks {
		endpoints = append(endpoints, hookEndpoint(w.Source))
	}
	return endpoints
}

// policies are the configured rows of the policy table.
func policies(c config.Ledger) ledgerhttp.Policies {
	rows := ledgerhttp.Policies{}
	for _, p := range c.Policies {
		rows[p.Endpoint] = ledgerhttp.Policy{
			Policy:       seen.Policy{Endpoint: p.Endpoint, OnRepeat: seen.Repeat(p.OnRepeat), Remember: time.Duration(p.Remember)},
			RepeatStatus: p.RepeatStatus,
		}
	}
	return rows
}

// counter is the ledger as the office sees it.
type counter struct{ *ledger.Ledger }

// Programme is office.Ledger.Programme: before there is one, nothing is on.
func (c counter) Programme(ctx context.Context) (ticket.Programme, error) {
	p, err := c.Ledger.Programme(ctx)
	if errors.Is(err, ledger.ErrNotFound) {
		return ticket.Programme{}, nil
	}
	return p, err
}

// Within is office.Ledger.Within: the stores' transactions are both the ledger's
// and the office's.
func (c counter) Within(ctx context.Context, fn func(office.Tx, office.Gates) error) error {
	return c.Ledger.Within(ctx, func(w *ledger.Within) error {
		tx, ok := w.Tx().(office.Tx)
		if !ok {
			return fmt.Errorf("a ledger's store without the office's rows: %T", w.Tx())
		}
		return fn(tx, gates{w})
	})
}

type gates struct{ w *ledger.Within }

// Revoke is office.Gates.Revoke.
func (g gates) Revoke(id ticket.ID, by string) error {
	return g.w.Revoke(ticket.FormatA1, id, true, by)
}

// Used is office.Gates.Used.
func (g gates) Used(event string, id ticket.ID) (bool, error) {
	return g.w.Held(event, ticket.FormatA1, id)
}
