package reload

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// Certificate is a TLS certificate and its key, read from two PEM files.
type Certificate struct {
	cert, key string
	pair      atomic.Pointer[tls.Certificate]
}

// NewCertificate names the files; Load reads them.
func NewCertificate(cert, key string) *Certificate { return &Certificate{cert: cert, key: key} }

// Load reads the pair and puts it in force; a pair that does not belong together is
// an error. It is for Options.Load.
func (c *Certificate) Load() (files []string, err error) {
	files = []string{c.cert, c.key}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return files, fmt.Errorf("read certificate: %w", err)
	}
	c.pair.Store(&pair)
	return files, nil
}

// Get is for tls.Config.GetCertificate: connections that stand keep what they
// began with, new ones get the pair in force.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }
