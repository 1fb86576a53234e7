package broker_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// TestImpostor: who names a gate's key and signs the nonce with another, or not at
// all, or signs another nonce, is refused; only the key's own signature counts.
func TestImpostor(t *testing.T) {
	s := newSite(t)
	victim, thief := s.enrol(t, broker.RoleGate), newKey(t, broker.RoleGate)
	b, _ := start(t, s.options("hub"))
	must(t, b.SetGates(s.list(t)))
	for _, c := range []struct {
		name string
		key  string
		seed string
		old  bool
		in   bool
	}{
		{"its own key", victim.public, victim.seed, false, true},
		{"another's signature", victim.public, thief.seed, false, false},
		{"no signature", victim.public, "", false, false},
		{"an old signature", victim.public, victim.seed, true, false},
		{"no key", "", victim.seed, false, false},
	} {
		if answer := greet(t, s, b.URL(), c.key, c.seed, c.old); (answer == "PONG") != c.in {
			t.Errorf("%s: the broker answered %q", c.name, answer)
		}
	}
}

// greet speaks the protocol by hand up to the first answer.
func greet(t *testing.T, s *site, address, key, seed string, old bool) string {
	t.Helper()
	plain, err := net.Dial("tcp", hostOf(t, address))
	must(t, err)
	defer plain.Close()
	line, err := bufio.NewReader(plain).ReadString('\n')
	must(t, err)
	var info struct{ Nonce string }
	must(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info))
	config, err := wire.PinnedTLS([]string{s.pin}, nil)
	must(t, err)
	conn := tls.Client(plain, config)
	if old {
		info.Nonce = "AAAAAAAAAAAAAAA"
	}
	sig := ""
	if seed != "" {
		kp, err := nkeys.FromSeed([]byte(seed))
		must(t, err)
		raw, err := kp.Sign([]byte(info.Nonce))
		must(t, err)
		sig = base64.RawURLEncoding.EncodeToString(raw)
	}
	_, err = fmt.Fprintf(conn, "CONNECT {\"nkey\":%q,\"sig\":%q,\"protocol\":1,\"verbose\":false}\r\nPING\r\n", key, sig)
	must(t, err)
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(line, "INFO") {
			return strings.TrimSpace(line)
		}
	}
}
