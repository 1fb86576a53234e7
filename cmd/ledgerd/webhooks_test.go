package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
	"admitone/internal/webhook"
)

// certificate writes a self-signed pair for this host, and adds it to roots.
func certificate(t *testing.T, dir string, serial int64, roots *x509.CertPool) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(nil, tmpl, tmpl, public, key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, filepath.Join(dir, "cert.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})))
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// front is a real ledgerd with TLS, a shop and a box office.
type front struct {
	t      *testing.T
	dir    string
	url    string
	sign   ed25519.PrivateKey
	secret []webhook.Secret
	roots  *x509.CertPool
	log    *said
	ended  chan error
}

func (f *front) config(keys ...string) string {
	text := "data_dir = \"data\"\nticket_key = \"tickets.key\"\n[http]\nlisten = \"127.0.0.1:0\"\ncert = \"cert.pem\"\nkey = \"cert.key\"\n" +
		"[nats]\nlisten = \"127.0.0.1:0\"\nplain_loopback = true\n" + head[strings.Index(head, "[[webhook]]"):] +
		fmt.Sprintf("[[signer]]\nname = \"boss\"\npublic = %q\nscopes = [\"admin\"]\n", hex.EncodeToString(f.sign.Public().(ed25519.PublicKey)))
	for _, k := range keys {
		text += fmt.Sprintf("[[caller]]\nname = \"till\"\nkey_sha256 = \"%x\"\nscopes = [\"orders\"]\n", sha256.Sum256([]byte(k)))
	}
	return writeFile(f.t, filepath.Join(f.dir, "ledgerd.toml"), text)
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{t: t, dir: t.TempDir(), roots: x509.NewCertPool(), log: newSaid(), ended: make(chan error, 1)}
	var err error
	if _, f.sign, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	_, tickets, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := config.WriteKey(filepath.Join(f.dir, "tickets.key"), tickets); err != nil {
		t.Fatal(err)
	}
	if f.secret, err = webhook.ReadSecrets(strings.NewReader(secretA)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(f.dir, "shop.secrets"), secretA)
	certificate(t, f.dir, 1, f.roots)
	cmd := exec.Command(build(t), "-config", f.config("one", "two"))
	cmd.Stderr = f.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := <-f.ended; err != nil || t.Failed() {
			t.Errorf("ledgerd ended with %v:\n%s", err, f.log)
		}
	})
	line := f.log.await(t, "ledger serves", f.ended)
	m := regexp.MustCompile(`http=(127\.0\.0\.1:\d+)`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("no address in %s", line)
	}
	f.url = "https://" + m[1]
	return f
}

// client begins with a new connection each time.
func (f *front) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.roots}, DisableKeepAlives: true}}
}

// get gives the status, the body and the certificate's serial number.
func (f *front) get(path, key string) (int, string, string) {
	f.t.Helper()
	r, err := http.NewRequest("GET", f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := f.client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.TLS.PeerCertificates[0].SerialNumber.String()
}

// TestAShopAndItsKeysOnARealLedger: a webhook's order gets its tickets; then the
// certificate is replaced and a key is taken out, and the process goes on.
func TestAShopAndItsKeysOnARealLedger(t *testing.T) {
	f := newFront(t)
	c, err := ledgerhttp.NewClient(f.url, "", f.sign)
	if err != nil {
		t.Fatal(err)
	}
	c.HTTP = f.client()
	now := time.Now()
	if _, err := c.PushProgramme(context.Background(), ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: "fair", Open: now.Add(-time.Hour).UTC().Truncate(time.Second), Close: now.Add(time.Hour).UTC().Truncate(time.Second),
		Forget: now.Add(24 * time.Hour).UTC().Truncate(time.Second), Formats: []string{"a1"},
	}}}); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"type":"order.paid","data":{"order":"S-1","count":2,"amount":3000,"currency":"EUR"}}`)
	for i, want := range []string{"accepted", "duplicate"} {
		r, err := http.NewRequest("POST", f.url+"/v1/webhooks/shop", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		if err := webhook.Sign(r.Header, "msg_1", time.Now(), body, f.secret); err != nil {
			t.Fatal(err)
		}
		resp, err := f.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var got ledgerhttp.WebhookReply
		err = json.NewDecoder(resp.Body).Decode(&got)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(got.Status) != want {
			t.Fatalf("webhook %d: %d %+v, %v, want %s", i, resp.StatusCode, got, err, want)
		}
	}
	status, text, serial := f.get("/v1/webhooks/shop/orders/S-1", "one")
	if status != 200 || strings.Count(text, `"token":"A1:`) != 2 || serial != "1" {
		t.Errorf("the shop's order: %d %s with certificate %s", status, text, serial)
	}
	certificate(t, f.dir, 2, f.roots)
	f.config("two")
	for status == 200 || serial != "2" { // within a second; the test's own time bounds it
		status, _, serial = f.get("/v1/orders", "one")
	}
	if status != 401 && status != 429 { // refused so often that it is told to wait
		t.Errorf("a key that was taken out: %d", status)
	}
	if status, text, _ := f.get("/v1/orders", "two"); status != 200 {
		t.Errorf("the other key: %d %s", status, text)
	}
	if strings.Contains(f.log.String(), "whsec_") || strings.Contains(f.log.String(), "A1:") {
		t.Errorf("a secret is in the log:\n%s", f.log)
	}
}
