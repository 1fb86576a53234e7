package main

import (
	"fmt"
	"log/slog"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
	"admitone/internal/outbox"
	"admitone/internal/seen"
	"admitone/internal/shop"
)

// hookEndpoint is a source's endpoint in the seen table.
func hookEndpoint(source string) string { return "webhook/" + source }

// sources are those who may send webhooks, each with its row of the policy table.
func sources(c config.Ledger, keys *live) (out []ledgerhttp.Source) {
	for _, w := range c.Webhooks {
		out = append(out, ledgerhttp.Source{
			Name: w.Source, Secrets: keys.secretsOf(w.Secrets), Kept: w.Timestamp == config.Kept,
			Policy: ledgerhttp.Policy{
				Policy:       seen.Policy{Endpoint: hookEndpoint(w.Source), OnRepeat: seen.Refuse, Remember: time.Duration(w.Remember)},
				RepeatStatus: w.RepeatStatus,
			},
		})
	}
	return out
}

// openShop makes what webhooks of shops work on.
func openShop(l *ledger.Ledger, box *office.Office, books office.Books, log *slog.Logger) (*shop.Shop, error) {
	return shop.New(shop.Options{Office: box, Books: books, Within: counter{l}.Within, Now: time.Now, Log: log})
}

// openOutbox makes what tells other systems.
func openOutbox(c config.Ledger, keys *live, books office.Books, log *slog.Logger) (*outbox.Outbox, error) {
	o := outbox.Options{Books: books, Now: time.Now, Log: log}
	for _, n := range c.Notify {
		o.Endpoints = append(o.Endpoints, outbox.Endpoint{
			Name: n.Name, URL: n.URL, Secrets: keys.secretsOf(n.Secrets), Types: n.Types, GiveUp: time.Duration(n.GiveUp),
		})
	}
	return outbox.New(o)
}

// tell writes the ledger's news into the outbox, in the ledger's own transaction.
func tell(out *outbox.Outbox) func(ledger.Tx, ledger.News) error {
	return func(tx ledger.Tx, n ledger.News) error {
		rows, ok := tx.(office.Tx)
		if !ok {
			return fmt.Errorf("a ledger's store without the office's rows: %T", tx)
		}
		return out.Add(rows, string(n.Type), n.At, n.Data)
	}
}
