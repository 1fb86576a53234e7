package ticket

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// The PEM types (RFC 7468) of key files, which every other tool reads too.
const (
	pemPrivate = "PRIVATE KEY" // PKCS #8 (RFC 5958, RFC 8410)
	pemPublic  = "PUBLIC KEY"  // SubjectPublicKeyInfo (RFC 5280, RFC 8410)
)

// FormatPrivateKey gives the contents of a private key's file. The file is for
// its owner's eyes only.
func FormatPrivateKey(priv ed25519.PrivateKey) ([]byte, error) {
	if len(priv) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("format private key: %d bytes, want %d", len(priv), ed25519.PrivateKeySize)
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, fmt.Errorf("format private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivate, Bytes: der}), nil
}

// ParsePrivateKey reads a private key's file: one PEM block of the type PRIVATE
// KEY with an Ed25519 key, and nothing else. No error quotes the contents.
func ParsePrivateKey(file []byte) (ed25519.PrivateKey, error) {
	der, err := onePEM(file, pemPrivate)
	if err != nil {
		return nil, fmt.Errorf("parse private key: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parse private key: not PKCS #8")
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parse private key: a %T, want an Ed25519 key", key)
	}
	return priv, nil
}

// FormatPublicKey gives the contents of a public key's file.
func FormatPublicKey(pub ed25519.PublicKey) ([]byte, error) {
	if len(pub) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("format public key: %d bytes, want %d", len(pub), ed25519.PublicKeySize)
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("format public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}), nil
}

// ParsePublicKey reads a public key's file: one PEM block of the type PUBLIC KEY
// with an Ed25519 key, and nothing else.
func ParsePublicKey(file []byte) (ed25519.PublicKey, error) {
	der, err := onePEM(file, pemPublic)
	if err != nil {
		return nil, fmt.Errorf("parse public key: %w", err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("parse public key: %w", err)
	}
	pub, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("parse public key: a %T, want an Ed25519 key", key)
	}
	return pub, nil
}

func onePEM(file []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(file)
	switch {
	case block == nil:
		return nil, fmt.Errorf("no PEM block, want -----BEGIN %s-----", kind)
	case block.Type != kind:
		return nil, fmt.Errorf("a PEM block %q, want %q", shorten(block.Type), kind)
	case len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(bytes.TrimSpace(file), []byte("-----BEGIN ")):
		return nil, fmt.Errorf("something besides the one PEM block")
	}
	return block.Bytes, nil
}

// ProgrammeKeyOf is the entry of a programme for a public key.
func ProgrammeKeyOf(pub ed25519.PublicKey, demo bool) ProgrammeKey {
	return ProgrammeKey{ID: KeyID(pub), Public: fmt.Sprintf("%x", []byte(pub)), Demo: demo}
}
