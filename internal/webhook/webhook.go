// Package webhook signs and checks messages as Standard Webhooks 1.0 says: the
// header fields webhook-id, webhook-timestamp and webhook-signature, HMAC-SHA256
// over id, timestamp and body. It adds what its Go library leaves to others: a
// clock that can be set, several secrets at once, and one value for each field.
package webhook

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Window is how far a message's timestamp may be from the receiver's clock,
// either way; its end is exclusive (Standard Webhooks, "Verifying webhook
// authenticity").
const Window = 5 * time.Minute

// MaxID is the longest id of a message that is accepted, in bytes.
const MaxID = 256

// Secret is a key that messages are signed with. It never shows itself in logs.
type Secret struct{ key *standardwebhooks.Webhook }

// prefix is how Standard Webhooks writes secrets.
const prefix = "whsec_"

// The sizes of a secret in bytes that Standard Webhooks allows.
const (
	minSecret = 24
	maxSecret = 64
)

// ParseSecret reads a secret: whsec_ and 24 to 64 bytes in base64. The error does
// not tell it.
func ParseSecret(text string) (Secret, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil || len(b) < minSecret || len(b) > maxSecret || !strings.HasPrefix(text, prefix) || strings.ContainsAny(text, "\r\n") {
		return Secret{}, fmt.Errorf("a secret is %s and %d to %d bytes in base64", prefix, minSecret, maxSecret)
	}
	key, err := standardwebhooks.NewWebhookRaw(b)
	if err != nil {
		return Secret{}, fmt.Errorf("make key of a secret: %w", err)
	}
	return Secret{key}, nil
}

// ReadSecrets reads a file of secrets: one a line, empty lines and those after a #
// do not count. There is at least one; the first signs what is sent, all are
// accepted. Errors name the line.
func ReadSecrets(r io.Reader) ([]Secret, error) {
	var out []Secret
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		s, err := ParseSecret(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	if len(out) == 0 {
		return nil, errors.New("no secret in it")
	}
	return out, nil
}

// String hides the secret.
func (s Secret) String() string { return prefix + "…" }

// GoString hides the secret from %#v, too.
func (s Secret) GoString() string { return s.String() }

// Sign sets the three fields on a message. It is signed with every secret, so
// that a receiver may change from one to another when it likes.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets []Secret) error {
	var all []string
	for _, s := range secrets {
		sig, err := s.key.Sign(id, at, body)
		if err != nil {
			return fmt.Errorf("sign webhook: %w", err)
		}
		all = append(all, sig)
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(all, " "))
	return nil
}

// Message is what the fields of a message say, when they proved to be true.
type Message struct {
	ID string    // the same on every retry; any characters
	At time.Time // when it was signed, to the second
}

// Errors of Verify.
var (
	ErrHeader    = errors.New("the header fields are not those of Standard Webhooks")            // returned when one is missing, there twice or not in its form
	ErrSignature = errors.New("no signature fits: another secret, or something in it changed")   // returned when none of the secrets made any of the signatures
	ErrTime      = errors.New("signed too long ago or too far ahead, or by a clock that is off") // returned when a good signature is outside of the window
)

// Verify checks a message with the secrets that hold and the receiver's clock. A
// time outside of the window is told (ErrTime) only where the signature is good.
//
// What is signed is id.timestamp.body, and an id may have dots in it, so the bytes
// of one message could be cut in another way. A body that is a JSON object rules
// that out: the cut could only move into the id, and then the body would begin with
// digits and a dot. So callers must refuse any other body.
func Verify(h http.Header, body []byte, secrets []Secret, now time.Time) (Message, error) {
	m, err := parse(h)
	if err != nil {
		return Message{}, err
	}
	good := false
	for _, s := range secrets {
		if s.key.VerifyIgnoringTimestamp(body, h) == nil {
			good = true
		}
	}
	if !good {
		return Message{}, ErrSignature
	}
	if d := now.Sub(m.At); d.Abs() >= Window {
		return Message{}, fmt.Errorf("%s, at most %s is accepted: %w", d.Round(time.Second), Window, ErrTime)
	}
	return m, nil
}

// parse holds the fields to one value each and one spelling: the library would
// take the first of several, and a time with a sign or zeros in front.
func parse(h http.Header) (Message, error) {
	one := func(name string) string {
		if v := h.Values(name); len(v) == 1 {
			return v[0]
		}
		return ""
	}
	id, text := one(standardwebhooks.HeaderWebhookID), one(standardwebhooks.HeaderWebhookTimestamp)
	at, err := strconv.ParseInt(text, 10, 64)
	switch {
	case id == "" || len(id) > MaxID:
		return Message{}, fmt.Errorf("%s: one, of 1 to %d bytes: %w", standardwebhooks.HeaderWebhookID, MaxID, ErrHeader)
	case err != nil || strconv.FormatInt(at, 10) != text:
		return Message{}, fmt.Errorf("%s: one, a whole number of seconds: %w", standardwebhooks.HeaderWebhookTimestamp, ErrHeader)
	case one(standardwebhooks.HeaderWebhookSignature) == "":
		return Message{}, fmt.Errorf("%s: one, as v1,BASE64, several apart by spaces: %w", standardwebhooks.HeaderWebhookSignature, ErrHeader)
	}
	return Message{ID: id, At: time.Unix(at, 0).UTC()}, nil
}
