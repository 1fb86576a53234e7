package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"admitone/internal/ledgerhttp"
	"admitone/internal/office"
)

func orderCommands() []command {
	const key = "It is retried by itself under one idempotency key; where it gave\nup, the same command with -idempotency-key finds out, and cannot do it twice."
	return []command{{
		name: "order sell", args: "TICKETS", about: "Sell so many tickets and print their texts", min: 1, max: 1, uses: reads, flags: sellFlags,
		help: "-amount is that of the whole order, in minor units: 4900 for 49.00.\n" + key,
	}, {
		name: "order refund", args: "ORDER [TICKET]...", about: "Give money back for tickets of an order, by default all, and revoke them", min: 1, max: -1, uses: reads, flags: refundFlags,
		help: "Without -amount it is the tickets' share of what is left.\n" + key,
	}, {
		name: "order show", args: "ORDER", about: "Show an order with its charge, refunds and tickets", min: 1, max: 1, uses: reads, flags: noFlags(showOrder),
	}, {
		name: "order list", about: "List all orders, oldest first", uses: reads, flags: ordersFlags,
		help: "-csv exports every movement of money, a line each.",
	}}
}

// intentFlag declares the key of what must not be done twice.
func intentFlag(fs *flag.FlagSet) *string {
	return fs.String("idempotency-key", "", "the `KEY` of an earlier try; default a new one")
}

// again tells how to go on after an error that leaves open what happened.
func again(err error, key string) error {
	if !ledgerhttp.Unsure(err) {
		return err
	}
	return hint(err, "to find out, or to try again: the same command with -idempotency-key %s", key)
}

func sellFlags(fs *flag.FlagSet) action {
	var b office.Sale
	amount := fs.Int64("amount", -1, "what it costs, in minor units, a `NUMBER`; needed")
	fs.StringVar(&b.Currency, "currency", "EUR", "its `CURRENCY`, ISO 4217")
	fs.StringVar(&b.Invoice, "invoice", "", "a reference of your own, a `TEXT`")
	fs.StringVar((*string)(&b.Payment), "payment", "", "`HOW`: cash, invoice or card; default as the ledger is configured")
	fs.StringVar(&b.Event, "event", "", "the `EVENT`, where several are on sale")
	fs.StringVar(&b.Session, "session", "", "the `SESSION`, where the event has several")
	fs.StringVar(&b.Product, "product", "", "the `PRODUCT`, where the event has several")
	key := intentFlag(fs)
	return func(ctx context.Context, c *call) error {
		n, err := strconv.Atoi(c.args[0])
		if err != nil {
			return wrongUsage("%q is no number of tickets", c.args[0])
		}
		if *amount < 0 {
			return hint(wrongUsage("-amount is needed"), "in minor units: gatectl order sell 4 -amount 4900 is 49.00 for the four")
		}
		b.Tickets, b.Amount = n, amount
		client, err := c.ledgerFor(reads)
		if err != nil {
			return err
		}
		k := or(*key, ledgerhttp.NewIdempotencyKey())
		sold, replayed, err := client.Order(ctx, k, b)
		if err != nil {
			return again(err, k)
		}
		if c.out.json {
			return c.out.object(sold)
		}
		for _, t := range sold.Tickets {
			fmt.Fprintln(c.out.raw(), t.Token)
		}
		note(c.env.stderr, fmt.Sprintf("%s: %s, %s%s", sold.Order, count(len(sold.Tickets), "ticket"), money(sold.Charge.Amount, sold.Charge.Currency), before(replayed)))
		return nil
	}
}

// money shows an amount as it is counted: what a minor unit is, is the currency's.
func money(amount int64, currency string) string {
	return fmt.Sprintf("%d %s in minor units", amount, currency)
}

func before(replayed bool) string {
	if replayed {
		return ", as an earlier try had it already"
	}
	return ""
}

func refundFlags(fs *flag.FlagSet) action {
	var b office.Return
	amount := fs.Int64("amount", -1, "what is given back, in minor units, a `NUMBER`; default the tickets' share")
	fs.StringVar(&b.Note, "note", "", "why, a `TEXT`")
	fs.BoolVar(&b.Force, "force", false, "also tickets that were used")
	key := intentFlag(fs)
	return func(ctx context.Context, c *call) error {
		for _, a := range c.args[1:] {
			id, err := ticketID(a)
			if err != nil {
				return err
			}
			b.Tickets = append(b.Tickets, id)
		}
		fs.Visit(func(f *flag.Flag) {
			if f.Name == "amount" {
				b.Amount = amount // one that cannot be is told by the ledger, not taken for none
			}
		})
		client, err := c.ledgerFor(reads)
		if err != nil {
			return err
		}
		k := or(*key, ledgerhttp.NewIdempotencyKey())
		r, replayed, err := client.Refund(ctx, k, c.args[0], b)
		if err != nil {
			return again(err, k)
		}
		return c.out.say(r, cell{"✓ refunded", good}, text(r.ID), text(count(len(r.Tickets), "ticket")), text(money(r.Amount, r.Currency)+before(replayed)))
	}
}

func showOrder(ctx context.Context, c *call) error {
	client, err := c.ledgerFor(reads)
	if err != nil {
		return err
	}
	o, err := client.OrderOf(ctx, c.args[0])
	if err != nil {
		return err
	}
	if c.out.json {
		return c.out.object(o)
	}
	if err := c.out.fields(o,
		field{"order", text(o.Order)}, field{"time", text(o.Time)}, field{"by", text(o.Caller)},
		field{"for", text(strings.Join(nonEmpty(o.Event, o.Session, o.Product), " · "))},
		field{"charge", text(strings.Join(nonEmpty(money(o.Charge.Amount, o.Charge.Currency), string(o.Charge.Payment), o.Charge.Invoice, o.Charge.Reference), ", "))},
		field{"left", text(money(o.Left, o.Charge.Currency))},
	); err != nil {
		return err
	}
	return table(c.out, all(o.Tickets, nil), "no tickets", []string{"ticket", "refund", "text"}, func(t ledgerhttp.SoldTicket) []cell {
		return []cell{text(t.ID.String()), text(or(t.Refund, "-")), text(t.Token)}
	})
}

func ordersFlags(fs *flag.FlagSet) action {
	csv := fs.Bool("csv", false, "export as CSV")
	return func(ctx context.Context, c *call) error {
		client, err := c.ledgerFor(reads)
		if err != nil {
			return err
		}
		if *csv {
			return client.OrdersCSV(ctx, c.out.raw())
		}
		head := []string{"time", "order", "tickets", "amount", "left", "currency", "payment", "invoice", "event"}
		return table(c.out, client.AllOrders(ctx), "no orders", head, func(o ledgerhttp.Order) []cell {
			return []cell{
				text(o.Time), text(o.Order), text(strconv.Itoa(o.Count)), text(strconv.FormatInt(o.Charge.Amount, 10)),
				text(strconv.FormatInt(o.Left, 10)), text(o.Charge.Currency), text(string(o.Charge.Payment)), text(or(o.Charge.Invoice, "-")), text(o.Event),
			}
		})
	}
}
