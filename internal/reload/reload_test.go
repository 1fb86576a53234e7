package reload_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/reload"
)

// rig loads the words of a file; the word "bad" cannot be used.
type rig struct {
	t     *testing.T
	file  string
	word  string
	loads int
	log   bytes.Buffer
	w     *reload.Watcher
}

func (r *rig) load() ([]string, error) {
	r.loads++
	b, err := os.ReadFile(r.file)
	if err == nil && strings.HasPrefix(string(b), "bad") {
		err = errors.New(string(b))
	}
	if err != nil {
		return []string{r.file}, err
	}
	r.word = string(b)
	return []string{r.file}, nil
}

func (r *rig) write(s string) {
	r.t.Helper()
	if err := os.WriteFile(r.file+".new", []byte(s), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		r.t.Fatal(err)
	}
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, file: filepath.Join(t.TempDir(), "f")}
	r.write("one")
	w, err := reload.New(reload.Options{Name: "word", Load: r.load, Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r.w = w
	w.Look() // the first one always loads
	return r
}

func TestAChangeIsReadOnce(t *testing.T) {
	r := newRig(t)
	before := r.loads
	r.w.Look()
	r.w.Look()
	if r.loads != before {
		t.Errorf("loaded %d times without a change", r.loads-before)
	}
	r.write("two") // as long as the first, perhaps within one tick of the file system's clock
	r.w.Look()
	r.w.Look()
	if r.word != "two" || r.loads != before+1 {
		t.Errorf("word %q after %d loads", r.word, r.loads-before)
	}
	if got := strings.Count(r.log.String(), "read anew"); got != 1 {
		t.Errorf("said %d times, want once: %s", got, &r.log)
	}
}

// TestTheOldStaysInForce: what cannot be used changes nothing, is told once, and is
// tried again without a change, as a file may be half written.
func TestTheOldStaysInForce(t *testing.T) {
	r := newRig(t)
	for _, bad := range []string{"bad", "bad", "bad again"} {
		r.write(bad)
		before := r.loads
		r.w.Look()
		r.w.Look()
		if r.word != "one" || r.loads != before+2 {
			t.Errorf("%s: word %q after %d loads, want the old one and two", bad, r.word, r.loads-before)
		}
	}
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.w.Look()
	if got := strings.Count(r.log.String(), "level=ERROR"); r.word != "one" || got != 3 {
		t.Errorf("word %q; told %d times, want each of the 3 once: %s", r.word, got, &r.log)
	}
	r.write("two")
	r.w.Look()
	if r.word != "two" {
		t.Errorf("word %q after it was mended", r.word)
	}
}

// TestRunLooksEverySecond in virtual time.
func TestRunLooksEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.w.Run(ctx) }()
		synctest.Wait()
		r.write("two")
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		if r.word != "two" {
			t.Errorf("word %q a second after the change", r.word)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestNewTellsWhatIsWrong(t *testing.T) {
	if _, err := reload.New(reload.Options{}); err == nil {
		t.Error("made of nothing")
	}
	_, err := reload.New(reload.Options{Name: "word", Log: slog.New(slog.DiscardHandler), Load: func() ([]string, error) { return nil, errors.New("bad word") }})
	if err == nil || !strings.Contains(err.Error(), "bad word") {
		t.Errorf("got %v", err)
	}
}

// pair writes a self-signed certificate of a serial number, and its key.
func pair(t *testing.T, serial int64, cert, key string) *x509.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint(serial)}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: b}} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestACertificateIsReplacedWhileItServes: new connections get the new pair, those
// that stand go on, and a pair that does not fit is not used.
func TestACertificateIsReplacedWhileItServes(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	roots := x509.NewCertPool()
	roots.AddCert(pair(t, 1, cert, key))
	c := reload.NewCertificate(cert, key)
	var log bytes.Buffer
	w, err := reload.New(reload.Options{Name: "certificate", Load: c.Load, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.Get})
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-ended })
	client := func() *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	}
	serial := func(c *http.Client) string {
		t.Helper()
		resp, err := c.Get("https://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	stands := client()
	if got := serial(stands); got != "1" {
		t.Fatalf("certificate %s", got)
	}
	second := pair(t, 2, cert, "") // the certificate without its key
	w.Look()
	if got := serial(client()); got != "1" || !strings.Contains(log.String(), "the old stays in force") {
		t.Errorf("half a pair: certificate %s, log %s", got, &log)
	}
	roots.AddCert(second)
	roots.AddCert(pair(t, 3, cert, key))
	w.Look()
	if got := serial(client()); got != "3" {
		t.Errorf("certificate %s, want the new one", got)
	}
	if got := serial(stands); got != "1" {
		t.Errorf("a connection that stands was begun anew: certificate %s", got)
	}
}
