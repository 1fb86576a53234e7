package office

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a sale.
const (
	MaxTickets = 500               // of one order
	MaxAmount  = 1_000_000_000_000 // minor units of one charge
	maxText    = 200               // bytes of an invoice and of a note
)

// Payment says how a charge is paid.
type Payment string

// The payments. At the till the charge is a row of ours; a card is charged by the
// acquirer; a shop took the money before we hear of it.
const (
	Cash    Payment = "cash"
	Invoice Payment = "invoice"
	Card    Payment = "card"
	Shop    Payment = "shop"
)

// Sale is what somebody wants to buy in one go: the body of POST /v1/orders.
type Sale struct {
	Tickets  int     `json:"tickets"`
	Amount   *int64  `json:"amount"`            // of the whole, in minor units of the currency; 0: for nothing
	Currency string  `json:"currency"`          // ISO 4217
	Invoice  string  `json:"invoice,omitempty"` // the seller's own reference; on the charge
	Payment  Payment `json:"payment,omitempty"` // cash, invoice or card; absent: Options.CardByDefault, or at the till
	Event    string  `json:"event,omitempty"`   // required where several are on sale
	Session  string  `json:"session,omitempty"` // required where the event has several
	Product  string  `json:"product,omitempty"` // likewise
}

// Sell sells tickets: the charge, the order, its signed tickets and the answer are
// one transaction. A card is charged by the acquirer first, under the order's id;
// what it declines is a result, too. The errors are of type *Error where the request
// is wrong, or cannot be done now, and then nothing of it stays.
func (o *Office) Sell(ctx context.Context, in Intent, s Sale) (Reply, error) {
	if !slices.Contains([]Payment{"", Cash, Invoice, Card}, s.Payment) {
		return Reply{}, refuse(Invalid, "payment", "payment is cash, invoice or card")
	}
	if err := s.check(); err != nil {
		return Reply{}, err
	}
	// Whether it can be sold now is nothing to a repeat: that gets its answer.
	s, refused := o.offer(ctx, s)
	var e *Error
	if refused != nil && !errors.As(refused, &e) {
		return Reply{}, refused
	}
	if refused == nil && s.Payment == Card && *s.Amount > 0 {
		if o.opt.Acquirer != nil {
			return o.sellByCard(ctx, in, s)
		}
		refused = refuse(Unavailable, "payment", "no acquirer is configured, so cards cannot be charged: pay cash or by invoice")
	}
	return o.once(ctx, o.booksOnly, in, func(tx Tx, _ Gates) (Result, error) {
		if refused != nil {
			return Result{}, refused
		}
		d, err := o.mint(newID("ord"), in.Caller, s)
		if err != nil {
			return Result{}, err
		}
		return Result{Sold: &d}, d.Book(tx)
	})
}

// sellByCard has the acquirer charge what a sale costs. Its tickets are drawn when
// the money is there: signed tickets that are kept would be tickets for nothing.
func (o *Office) sellByCard(ctx context.Context, in Intent, s Sale) (Reply, error) {
	id, one := newID("ord"), s
	one.Tickets = 1
	return o.begin(ctx, o.booksOnly, in, func(Tx, Gates) (work, error) {
		_, err := o.mint(id, in.Caller, one) // whether it can be
		return work{ID: id, Sale: &s}, err
	})
}

// check returns an *Error for what no programme could make right.
func (s Sale) check() error {
	switch {
	case s.Tickets < 1 || s.Tickets > MaxTickets:
		return refuse(Invalid, "tickets", "tickets is a number from 1 to %d", MaxTickets)
	case s.Amount == nil:
		return refuse(Invalid, "amount", "amount is required: of the whole order, in minor units (4900 for 49.00)")
	case *s.Amount < 0 || *s.Amount > MaxAmount:
		return refuse(Invalid, "amount", "amount is a number of minor units from 0 to %d", int64(MaxAmount))
	case !knownCurrency(s.Currency):
		return refuse(Invalid, "currency", "currency is an ISO 4217 code in capitals, as in EUR")
	case !plainText(s.Invoice):
		return refuse(Invalid, "invoice", "invoice is at most %d bytes of printable text", maxText)
	}
	return nil
}

// plainText reports whether a text can stand in a line of a list.
func plainText(s string) bool {
	return len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// currencies are the codes of ISO 4217 (list one, 2026-01-01) that things are paid
// in: without funds, metals and codes for tests.
const currencies = "" +
	"AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP " +
	"CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD " +
	"JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN " +
	"NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN " +
	"SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG "

func knownCurrency(code string) bool {
	return len(code) == 3 && strings.Contains(currencies, code+" ") && !strings.Contains(code, " ")
}
