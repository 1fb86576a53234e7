package config

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/pelletier/go-toml/v2"
)

// Enrolment is what makes a fresh box a gate (or a venue's broker): its key, the
// place it stands at, and whom it trusts. The file is a secret: mode 0600.
type Enrolment struct {
	Seed         string    `toml:"seed"`                  // the device's NKey, user kind: SU…
	Place        string    `toml:"place"`                 // the name that people read
	Brokers      []string  `toml:"brokers"`               // tls://HOST:PORT, or nats://HOST:PORT on this host; tried in turn
	BrokerKeys   []string  `toml:"broker_keys,omitempty"` // SHA-256 of the brokers' SubjectPublicKeyInfo, 64 hex digits each
	ProgrammeKey string    `toml:"programme_key"`         // the public key that programmes are signed with, 64 hex digits
	Issued       time.Time `toml:"issued"`
}

func (*Enrolment) setDefaults() {}

// Plain reports whether the brokers are on this host and spoken to without TLS.
func (e Enrolment) Plain() bool { return plain(e.Brokers) }

func plain(urls []string) bool {
	return len(urls) > 0 && strings.HasPrefix(urls[0], "nats://") // a list is of one kind: see links
}

// LoadEnrolment reads an enrolment file. An error is of type Problems.
func LoadEnrolment(file string) (Enrolment, error) {
	var e Enrolment
	r := decode(file, &e)
	e.check(r)
	return e, r.err()
}

// WriteEnrolment writes a new enrolment file with mode 0600. It returns an error
// when the file is already there: an enrolment is never overwritten.
func WriteEnrolment(file string, e Enrolment) error {
	var b bytes.Buffer
	b.WriteString("# The key of one device. Keep it secret, and give it to one box only.\n")
	if err := toml.NewEncoder(&b).Encode(e); err != nil {
		return fmt.Errorf("encode enrolment: %w", err)
	}
	return WriteNew(file, b.Bytes(), 0o600)
}

func (e *Enrolment) check(r *report) {
	if r.unread {
		return
	}
	r.secret("", r.file)
	r.seed("seed", e.Seed)
	r.name("place", e.Place)
	if len(e.Brokers) == 0 {
		r.add("brokers", "missing", "list at least one broker, as in \"tls://ledger.example:4222\"")
	}
	r.links("brokers", e.Brokers, "broker_keys", e.BrokerKeys)
	r.hex32("programme_key", e.ProgrammeKey, "the programme's public key")
	if e.Issued.IsZero() {
		r.add("issued", "missing", "write the file anew with `gatectl gate add`")
	}
}

// secret checks that nobody but its owner can read a file.
func (r *report) secret(key, file string) {
	st, err := os.Stat(file)
	if err != nil {
		return // reading it told why
	}
	if st.Mode().Perm()&0o077 != 0 {
		r.addf(key, "chmod 600 "+file, "mode %04o lets others read a secret", st.Mode().Perm())
	}
}

// seed checks a device's key without ever printing it.
func (r *report) seed(key, s string) {
	if s == "" {
		r.add(key, "missing", "write the file anew with `gatectl gate add`")
		return
	}
	kind, _, err := nkeys.DecodeSeed([]byte(s))
	if err != nil || kind != nkeys.PrefixByteUser {
		r.add(key, "is not the seed of a user's NKey", "it begins with SU and has 58 characters; write the file anew with `gatectl gate add`")
	}
}

// links checks a list of broker addresses and the keys that are pinned for them:
// what leaves this host needs TLS and a pinned key.
func (r *report) links(key string, urls []string, pinKey string, pins []string) {
	pinned, plain := false, false
	for i, s := range urls {
		at := fmt.Sprintf("%s[%d]", key, i)
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "" || u.Port() == "" || u.Path != "" || u.User != nil ||
			u.Scheme != "tls" && u.Scheme != "nats":
			r.addf(at, "write it as in \"tls://ledger.example:4222\"", "%s is not the address of a broker", show(s))
		case u.Scheme == "tls":
			pinned = true
		case !loopback(u.Hostname()):
			r.addf(at, "write tls:// instead of nats://", "%s leaves this host without TLS", show(s))
		default:
			plain = true
		}
	}
	if pinned && plain {
		r.add(key, "some are tls://, some nats://", "write tls:// for all, or use the broker of this host alone")
	}
	if pinned && len(pins) == 0 {
		r.add(pinKey, "missing", "list the SHA-256 of the broker's public key, as `gatectl gate add` does")
	}
	for i, p := range pins {
		r.hex32(fmt.Sprintf("%s[%d]", pinKey, i), p, "the SHA-256 of a public key")
	}
}

func (r *report) hex32(key, s, what string) {
	if b, err := hex.DecodeString(s); err != nil || len(b) != 32 {
		if s == "" {
			r.add(key, "missing", "write 64 hex digits: "+what)
			return
		}
		r.addf(key, "write 64 hex digits: "+what, "%s is not 64 hex digits", show(s))
	}
}

// loopback reports whether a host's name or address cannot leave this machine.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// address checks HOST:PORT; an empty host is every interface.
func (r *report) address(key, s string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		r.addf(key, "write it as in \"127.0.0.1:8080\"", "%s is not HOST:PORT", show(s))
		return "", false
	}
	return host, true
}
