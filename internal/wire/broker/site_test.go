package broker_test

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// patience is how long something that must happen may take on a loaded machine.
const patience = 30 * time.Second

// key is a device's key pair with its id.
type key struct {
	seed, public string
	device       broker.Device
}

func newKey(t *testing.T, role string) key {
	t.Helper()
	seed, public, err := wire.NewDeviceKey()
	must(t, err)
	id, err := wire.DeviceID(public)
	must(t, err)
	return key{seed, public, broker.Device{Device: id, Key: public, Place: "North", Role: role, State: broker.StateEnrolled}}
}

// site is the material of one installation.
type site struct {
	signer            ed25519.PrivateKey
	certFile, keyFile string
	pin               string
	version           uint64
	devices           []broker.Device
}

func newSite(t *testing.T) *site {
	t.Helper()
	_, signer, err := ed25519.GenerateKey(nil)
	must(t, err)
	s := &site{signer: signer}
	s.certFile, s.keyFile, s.pin = writeCertificate(t, time.Now(), 365*24*time.Hour)
	return s
}

func writeCertificate(t *testing.T, now time.Time, life time.Duration) (certFile, keyFile, pin string) {
	t.Helper()
	certPEM, keyPEM, err := wire.NewCertificate("broker", now, life)
	must(t, err)
	pin, err = wire.Pin(certPEM)
	must(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(certFile, certPEM, 0o600))
	must(t, os.WriteFile(keyFile, keyPEM, 0o600))
	return certFile, keyFile, pin
}

// list signs the devices as the next version.
func (s *site) list(t *testing.T) []byte {
	t.Helper()
	s.version++
	signed, err := broker.GateList{Version: s.version, Devices: s.devices}.Sign(s.signer)
	must(t, err)
	return signed
}

func (s *site) enrol(t *testing.T, role string) key {
	k := newKey(t, role)
	s.devices = append(s.devices, k.device)
	return k
}

func (s *site) options(name string) broker.Options {
	return broker.Options{Name: name, Listen: "127.0.0.1:0", CertFile: s.certFile, KeyFile: s.keyFile,
		ListKey: s.signer.Public().(ed25519.PublicKey), Log: quiet()}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// start runs a broker until the test, or stop, ends it.
func start(t *testing.T, o broker.Options) (b *broker.Broker, stop func()) {
	t.Helper()
	b, err := broker.New(o)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			must(t, receive(t, done, "the broker's end"))
		}
	}
	t.Cleanup(stop)
	select {
	case <-b.Ready():
	case err := <-done:
		t.Fatalf("broker did not start: %v", err)
	case <-time.After(patience):
		t.Fatal("broker is not ready")
	}
	return b, stop
}

func hostOf(t *testing.T, s string) string {
	t.Helper()
	u, err := url.Parse(s)
	must(t, err)
	return u.Host
}

// dial connects; the caller waits for it.
func (s *site) dial(t *testing.T, k key, urls ...string) *wire.NATS {
	t.Helper()
	c, err := wire.Dial(context.Background(), wire.NATSOptions{URLs: urls, Seed: k.seed, PinnedKeys: []string{s.pin},
		Name: "test", PingInterval: 200 * time.Millisecond, Log: quiet()})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s never came", what)
		panic("unreachable")
	}
}

func await(t *testing.T, ch <-chan bool, want bool) {
	t.Helper()
	for receive(t, ch, "a change of the connection") != want {
	}
}

// eventually asks until it is so: for what another process's state becomes.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !so(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never so: %s", what)
		}
	}
}

// reaches waits until a request is answered: interest takes a moment to be known.
func reaches(t *testing.T, c wire.Conn, subject string) {
	t.Helper()
	eventually(t, "answer on "+subject, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Request(ctx, subject, []byte("there?"))
		return err == nil
	})
}

func echo(t *testing.T, c wire.Conn, subject, queue string) {
	t.Helper()
	must(t, c.Subscribe(subject, queue, func(m wire.Msg) { _ = m.Respond(m.Data) }))
}
