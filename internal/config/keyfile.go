package config

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

// A private key file is PEM with one Ed25519 key in PKCS #8 (RFC 5958, RFC
// 8410), as `openssl genpkey -algorithm ed25519` writes it, mode 0600.
const pemType = "PRIVATE KEY"

// ReadKey reads a private key file. It returns an error when the file is not
// such a key; the error never has the key in it.
func ReadKey(file string) (ed25519.PrivateKey, error) {
	b, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", file, err)
	}
	block, rest := pem.Decode(b)
	if block == nil || block.Type != pemType || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, fmt.Errorf("read key %s: want one PEM block %q", file, pemType)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read key %s: no key in PKCS #8", file)
	}
	ed, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read key %s: not an Ed25519 key", file)
	}
	return ed, nil
}

// WriteKey writes a new private key file with mode 0600. It returns an error
// when the file is already there: a key is never overwritten.
func WriteKey(file string, k ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return WriteNew(file, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), 0o600)
}

// EnsureKey reads a private key file, and makes it first where there is none.
func EnsureKey(file string) (ed25519.PrivateKey, error) {
	if exists(file) {
		return ReadKey(file)
	}
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return k, WriteKey(file, k)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !os.IsNotExist(err)
}

func (r *report) keyFile(key, file string) {
	if file == "" {
		return
	}
	if _, err := ReadKey(file); err != nil {
		r.add(key, strings.TrimPrefix(err.Error(), "read key "), "make one with `gatectl key new`")
		return
	}
	r.secret(key, file)
}

func (r *report) seedFile(key, file string) {
	b, err := readFile(file)
	if err != nil {
		r.addf(key, "name a file with a seed, SU…", "%s: %s", file, err)
		return
	}
	r.seed(key, strings.TrimSpace(string(b)))
	r.secret(key, file)
}

// certificate checks that the API could be served with the two files.
func (r *report) certificate(certKey, cert, keyKey, key string) {
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		r.add(certKey, err.Error(), "name a PEM certificate and its key")
		return
	}
	r.secret(keyKey, key)
}

func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
