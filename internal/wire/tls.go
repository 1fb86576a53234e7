package wire

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// expiryNotice is how long before a certificate's end the end is reported.
const expiryNotice = 30 * 24 * time.Hour

// NewCertificate makes a self-signed Ed25519 certificate, valid from a day before
// now for the given time. Who connects pins its key (Pin) and enforces neither
// names nor dates: a gate's clock may be wrong, and an expired date must not be
// the reason for an outage.
func NewCertificate(name string, now time.Time, life time.Duration) (certPEM, keyPEM []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, pub, priv)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, fmt.Errorf("create certificate: %w", err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return certPEM, keyPEM, nil
}

// Pin gives the pin of the first certificate of a PEM file: the hex SHA-256 of its
// SubjectPublicKeyInfo. A renewed certificate with the same key keeps its pin.
func Pin(certPEM []byte) (string, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return "", errors.New("read certificate: want a PEM file that begins with a CERTIFICATE")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("read certificate: %w", err)
	}
	return pinOf(cert), nil
}

func pinOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// PinnedTLS gives a client's configuration that trusts exactly the servers whose
// key is pinned, whatever the names and dates of their certificates. seen, which
// may be nil, is told the certificate of each accepted handshake.
func PinnedTLS(pins []string, seen func(*x509.Certificate)) (*tls.Config, error) {
	trusted := make(map[string]bool, len(pins))
	for _, p := range pins {
		if raw, err := hex.DecodeString(p); err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("read pinned key %q: want 64 hex digits, the SHA-256 of a public key", p)
		}
		trusted[p] = true
	}
	if len(trusted) == 0 {
		return nil, errors.New("read pinned keys: want at least one")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The pin, checked below in every handshake, is what is trusted.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return errors.New("check server's key: no certificate")
			}
			cert := cs.PeerCertificates[0]
			if pin := pinOf(cert); !trusted[pin] {
				return fmt.Errorf("check server's key: %s is not pinned", pin)
			}
			if seen != nil {
				seen(cert)
			}
			return nil
		},
	}, nil
}

// ExpiryNotice says what is to be told about a certificate's end, from 30 days
// before it; empty: nothing yet.
func ExpiryNotice(notAfter, now time.Time) string {
	left := notAfter.Sub(now)
	switch {
	case notAfter.IsZero() || left > expiryNotice:
		return ""
	case left <= 0:
		return "certificate expired on " + notAfter.UTC().Format(time.DateOnly)
	}
	return fmt.Sprintf("certificate expires on %s, in %d days", notAfter.UTC().Format(time.DateOnly), int(left.Hours()/24))
}
