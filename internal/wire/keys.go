package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/nats-io/nkeys"

	"admitone/internal/ticket"
)

// NewDeviceKey makes a device's key pair: an NKey of the user kind. The seed
// ("SU…") stays on the device; the public key ("U…") is what is enrolled.
func NewDeviceKey() (seed, public string, err error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("create device key: %w", err)
	}
	s, err := kp.Seed()
	if err != nil {
		return "", "", fmt.Errorf("create device key: %w", err)
	}
	public, err = kp.PublicKey()
	if err != nil {
		return "", "", fmt.Errorf("create device key: %w", err)
	}
	return string(s), public, nil
}

// PublicKey gives the public key of a device's seed; white space around the seed
// is ignored.
func PublicKey(seed string) (public string, err error) {
	_, public, err = readSeed(seed)
	return public, err
}

// DeviceID gives the id of the device whose public NKey it is: the lower-case
// base32 (RFC 4648, unpadded) of the first 10 bytes of the SHA-256 of the 32-byte
// Ed25519 public key; 16 characters.
func DeviceID(publicNKey string) (ticket.Source, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(publicNKey))
	if err != nil {
		return "", fmt.Errorf("read device key %q: want a public NKey, U and 55 more characters: %w", publicNKey, err)
	}
	sum := sha256.Sum256(raw)
	id := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10])
	return ticket.Source(strings.ToLower(id)), nil
}

// SigningKey gives the Ed25519 key within a device's seed, for what the device signs
// itself.
func SigningKey(seed string) (ed25519.PrivateKey, error) {
	kp, _, err := readSeed(seed)
	if err != nil {
		return nil, err
	}
	text, err := kp.Seed()
	if err != nil {
		return nil, fmt.Errorf("read device seed: %w", err)
	}
	_, raw, err := nkeys.DecodeSeed(text)
	if err != nil {
		return nil, fmt.Errorf("read device seed: %w", err)
	}
	return ed25519.NewKeyFromSeed(raw), nil
}

// VerifyingKey gives the Ed25519 key within a device's public NKey.
func VerifyingKey(publicNKey string) (ed25519.PublicKey, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(publicNKey))
	if err != nil {
		return nil, fmt.Errorf("read device key %q: %w", publicNKey, err)
	}
	return raw, nil
}

// InboxPrefix is the first token of the subjects on which a device gets its
// replies; the broker lets nobody else listen there.
func InboxPrefix(device ticket.Source) string { return "_INBOX_" + string(device) }

func readSeed(seed string) (kp nkeys.KeyPair, public string, err error) {
	kp, err = nkeys.FromSeed([]byte(strings.TrimSpace(seed)))
	if err != nil {
		return nil, "", fmt.Errorf("read device seed: %w", err)
	}
	public, err = kp.PublicKey()
	if err != nil {
		return nil, "", fmt.Errorf("read device seed: %w", err)
	}
	if _, err := DeviceID(public); err != nil {
		return nil, "", fmt.Errorf("read device seed: want one of the user kind, SU and 56 more characters: %w", err)
	}
	return kp, public, nil
}
