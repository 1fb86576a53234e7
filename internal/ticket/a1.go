package ticket

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits of an a1 ticket. A text of 221 characters is what a QR code of version
// 8 at level M holds in alphanumeric mode (ISO/IEC 18004, table 7); larger
// symbols are too fine for a phone at arm's length. A plain ticket (entry 0)
// with names of MaxNames bytes and both times is exactly that long.
const (
	MaxA1    = 221 // characters of a text
	MaxNames = 24  // bytes of event, session and zone or product together
)

const a1Prefix = "A1:"

// errA1 is returned when a text is not a well-formed a1 ticket.
var errA1 = errors.New("not an a1 ticket")

// a1Claims is the CWT claims set (RFC 8392) of a ticket.
type a1Claims struct {
	Expires   uint64 `cbor:"4,keyasint,omitempty"` // exp, Unix seconds
	NotBefore uint64 `cbor:"5,keyasint,omitempty"` // nbf, Unix seconds
	ID        []byte `cbor:"7,keyasint"`           // cti, 16 bytes
	// Pass is the private claim, in CDDL (RFC 8610):
	//   [event: tstr, ? session: tstr, ? admission: tstr, ? (flags: uint, ? entry: uint)]
	// Of the texts and of the numbers, what is empty or 0 at the end is left out.
	// The admission is the zone, or with flagProduct the product.
	Pass []any `cbor:"-65537,keyasint"`
}

// The flags of the private claim.
const (
	flagTest    = 1 << 0
	flagProduct = 1 << 1
)

// Signer mints a1 tickets with one key.
type Signer struct {
	priv ed25519.PrivateKey
}

// NewSigner makes a signer of a whole private key (64 bytes, as ParsePrivateKey
// gives it).
func NewSigner(priv ed25519.PrivateKey) Signer { return Signer{priv: priv} }

// Public is the half of the key that programmes carry.
func (s Signer) Public() ed25519.PublicKey { return s.priv.Public().(ed25519.PublicKey) }

// KeyID is the id that programmes list the key under, see KeyID.
func (s Signer) KeyID() string { return KeyID(s.Public()) }

// Mint gives the ticket's text. It is an error when the ticket is not one that
// would be read back as it is: see the limits of CheckA1.
func (s Signer) Mint(t Ticket) (string, error) {
	if err := CheckA1(t); err != nil {
		return "", fmt.Errorf("mint ticket: %w", err)
	}
	payload, err := encodeClaims(t)
	if err != nil {
		return "", fmt.Errorf("mint ticket: %w", err)
	}
	b, err := seal("", payload, s.priv)
	if err != nil {
		return "", fmt.Errorf("mint ticket: %w", err)
	}
	text := a1Prefix + encodeBase45(b)
	if len(text) > MaxA1 {
		return "", fmt.Errorf("mint ticket: %d characters, at most %d: use shorter names or a smaller entry", len(text), MaxA1)
	}
	return text, nil
}

// CheckA1 returns every reason why the ticket cannot be minted: another format,
// no id, a name that CheckName refuses, names of more than MaxNames bytes, a
// zone and a product at once, or times that are not whole seconds from 1970 to
// 2106 in the right order.
func CheckA1(t Ticket) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.Format != FormatA1 {
		bad("format is %s, want a1", t.Format)
	}
	if t.ID == (ID{}) {
		bad("id is zero, want 16 random bytes")
	}
	if err := CheckName(t.Event); err != nil {
		bad("event: %w", err)
	}
	for _, n := range []struct{ what, name string }{{"session", t.Session}, {"zone", t.Zone}, {"product", t.Product}} {
		if n.name != "" {
			if err := CheckName(n.name); err != nil {
				bad("%s: %w", n.what, err)
			}
		}
	}
	if t.Zone != "" && t.Product != "" {
		bad("zone and product are both set, want at most one of them")
	}
	if n := len(t.Event) + len(t.Session) + len(t.Zone) + len(t.Product); n > MaxNames {
		bad("event, session and zone or product have %d bytes together, want at most %d", n, MaxNames)
	}
	if !fitsSeconds(t.NotBefore) || !fitsSeconds(t.Expires) {
		bad("not_before and expires: want whole seconds from 1970 to 2106")
	}
	if !t.NotBefore.IsZero() && !t.Expires.IsZero() && !t.NotBefore.Before(t.Expires) {
		bad("expires is not after not_before")
	}
	return errors.Join(errs...)
}

// fitsSeconds reports whether a time is unset or a positive number of seconds of
// 32 bits, which is what the symbol has room for.
func fitsSeconds(t time.Time) bool {
	return t.IsZero() || t.Nanosecond() == 0 && t.Unix() > 0 && t.Unix() <= math.MaxUint32
}

func seconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.Unix())
}

func fromSeconds(n uint64) time.Time {
	if n == 0 || n > math.MaxUint32 {
		return time.Time{}
	}
	return time.Unix(int64(n), 0).UTC()
}

// encodeClaims writes the payload of a ticket.
func encodeClaims(t Ticket) ([]byte, error) {
	flags := uint64(0)
	if t.Test {
		flags |= flagTest
	}
	if t.Product != "" {
		flags |= flagProduct
	}
	pass := trimEnd([]any{t.Event, t.Session, t.Zone + t.Product}, "")
	pass = append(pass, trimEnd([]any{flags, uint64(t.Entry)}, uint64(0))...)
	return encMode.Marshal(a1Claims{
		Expires: seconds(t.Expires), NotBefore: seconds(t.NotBefore), ID: t.ID[:], Pass: pass,
	})
}

// trimEnd leaves out empty items at the end.
func trimEnd(items []any, empty any) []any {
	for len(items) > 0 && items[len(items)-1] == empty {
		items = items[:len(items)-1]
	}
	return items
}

// readA1 reads a text strictly, without verifying its signature: it gives a
// ticket only if encoding that ticket gives the same bytes again.
func readA1(text string) (Ticket, sealed, error) {
	if len(text) > MaxA1 || !strings.HasPrefix(text, a1Prefix) {
		return Ticket{}, sealed{}, errA1
	}
	b, err := decodeBase45(text[len(a1Prefix):])
	if err != nil {
		return Ticket{}, sealed{}, errA1
	}
	s, err := unseal("", b)
	if err != nil {
		return Ticket{}, sealed{}, errA1
	}
	t, err := decodeClaims(s.payload)
	if err != nil || CheckA1(t) != nil {
		return Ticket{}, sealed{}, errA1
	}
	again, err := encodeClaims(t)
	if err != nil || !bytes.Equal(again, s.payload) {
		return Ticket{}, sealed{}, errA1
	}
	return t, s, nil
}

func decodeClaims(payload []byte) (Ticket, error) {
	var c a1Claims
	if err := decMode.Unmarshal(payload, &c); err != nil {
		return Ticket{}, errA1
	}
	t := Ticket{Format: FormatA1, NotBefore: fromSeconds(c.NotBefore), Expires: fromSeconds(c.Expires)}
	if len(c.ID) != len(t.ID) {
		return Ticket{}, errA1
	}
	copy(t.ID[:], c.ID)
	texts, numbers, err := splitPass(c.Pass)
	if err != nil {
		return Ticket{}, err
	}
	flags, entry := numbers[0], numbers[1] // what does not fit into the ticket does not survive readA1
	t.Event, t.Session, t.Test, t.Entry = texts[0], texts[1], flags&flagTest != 0, uint32(entry)
	if flags&flagProduct != 0 {
		t.Product = texts[2]
	} else {
		t.Zone = texts[2]
	}
	return t, nil
}

// splitPass gives the up to three texts and then up to two numbers of the
// private claim.
func splitPass(pass []any) (texts [3]string, numbers [2]uint64, err error) {
	var nt, nn int
	for _, item := range pass {
		switch v := item.(type) {
		case string:
			if nt == len(texts) || nn > 0 {
				return texts, numbers, errA1
			}
			texts[nt] = v
			nt++
		case uint64:
			if nn == len(numbers) {
				return texts, numbers, errA1
			}
			numbers[nn] = v
			nn++
		default:
			return texts, numbers, errA1
		}
	}
	return texts, numbers, nil
}
