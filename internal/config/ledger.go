package config

import "path/filepath"

// Ledger is the configuration of ledgerd.
type Ledger struct {
	Role    Role   `toml:"role,omitempty"`     // default all
	DataDir string `toml:"data_dir,omitempty"` // default /var/lib/ledgerd
	Process string `toml:"process,omitempty"`  // this process among several on one store; default 1
	MaxSize Size   `toml:"max_size,omitempty"` // of the file of driver bolt; default 4GB
	Demo    bool   `toml:"demo,omitempty"`     // accept keys that are marked demo: their private halves are public

	// Enrolment is what makes a venue's broker: its key, and the brokers it is a
	// leaf of. Role broker only, and required there.
	Enrolment string    `toml:"enrolment,omitempty"`
	Device    Enrolment `toml:"-"` // what the enrolment file says

	// TicketKey is the private key file that tickets are signed with; its public
	// half enters the programme. Optional: without it nothing is minted here.
	TicketKey string `toml:"ticket_key,omitempty"`

	// ProgrammeKey is the private key file that programmes and gate lists are
	// signed with; default DATA_DIR/programme.key, made at the first start.
	ProgrammeKey string `toml:"programme_key,omitempty"`

	Store   Store    `toml:"store"`
	HTTP    HTTP     `toml:"http"`
	NATS    NATS     `toml:"nats"`
	Callers []Caller `toml:"caller,omitempty"`
	Signers []Signer `toml:"signer,omitempty"`

	Webhooks []Webhook `toml:"webhook,omitempty"` // who sends webhooks here
	Notify   []Notify  `toml:"notify,omitempty"`  // who is sent webhooks

	Acquirer Acquirer    `toml:"acquirer"`         // what charges cards
	Policies []PolicyRow `toml:"policy,omitempty"` // how endpoints answer a repeat

	File string `toml:"-"` // where all this was read from

	named string `toml:"-"` // the programme key, as the file names it
}

// HTTP is the API, the page and the metrics.
type HTTP struct {
	Listen string `toml:"listen,omitempty"` // default 127.0.0.1:8080
	Cert   string `toml:"cert,omitempty"`   // PEM; required with key where listen leaves this host
	Key    string `toml:"key,omitempty"`    // PEM; both are read anew when they change
	Limits Limits `toml:"limits"`
}

// TLS reports whether the API is served over TLS.
func (h HTTP) TLS() bool { return h.Cert != "" && h.Key != "" }

// NATS is the embedded broker, or the way to an external one.
type NATS struct {
	Listen        string   `toml:"listen,omitempty"`         // roles all and broker; default 127.0.0.1:4222
	Leaf          string   `toml:"leaf,omitempty"`           // where venues' brokers join; "": nowhere
	PlainLoopback bool     `toml:"plain_loopback,omitempty"` // no TLS on listen and leaf, which must then be loopback addresses
	Advertise     []string `toml:"advertise,omitempty"`      // what enrolments name as the broker; default: what it listens on
	AdvertiseLeaf string   `toml:"advertise_leaf,omitempty"` // what enrolments of venues' brokers name; default: leaf
	Upstream      []string `toml:"upstream,omitempty"`       // role ledger: the external NATS; role broker: default the enrolment's brokers
	UpstreamKeys  []string `toml:"upstream_keys,omitempty"`  // SHA-256 of their SubjectPublicKeyInfo, 64 hex digits each
	UpstreamSeed  string   `toml:"upstream_seed,omitempty"`  // role ledger: a file with this process's NKey seed
}

// Plain reports whether the upstream brokers are on this host and spoken to
// without TLS.
func (n NATS) Plain() bool { return plain(n.Upstream) }

func (l *Ledger) setDefaults() {
	*l = Ledger{Role: RoleAll, DataDir: "/var/lib/ledgerd", Process: "1", MaxSize: 4e9}
	l.Store.setDefaults()
	l.HTTP.setDefaults()
	l.NATS.setDefaults()
	l.Acquirer.setDefaults()
}

func (h *HTTP) setDefaults() {
	*h = HTTP{Listen: "127.0.0.1:8080"}
	h.Limits.setDefaults()
}

func (n *NATS) setDefaults() { *n = NATS{Listen: "127.0.0.1:4222"} }

// LoadLedger reads ledgerd's configuration, and looks into the files that it
// names. An error is of type Problems and has everything that is wrong.
func LoadLedger(file string) (Ledger, error) {
	var l Ledger
	r := decode(file, &l)
	l.File = file
	if r.unread {
		return l, r.err()
	}
	l.complete(r.dir)
	l.check(r)
	if l.Role == RoleBroker && l.Enrolment != "" {
		er := decode(l.Enrolment, &l.Device)
		l.Device.check(er)
		r.list = append(r.list, er.list...)
		if len(l.NATS.Upstream) == 0 {
			l.NATS.Upstream, l.NATS.UpstreamKeys = l.Device.Brokers, l.Device.BrokerKeys
		}
	}
	return l, r.err()
}

func (l *Ledger) complete(dir string) {
	for _, p := range []*string{&l.DataDir, &l.Enrolment, &l.TicketKey, &l.ProgrammeKey, &l.HTTP.Cert, &l.HTTP.Key, &l.NATS.UpstreamSeed, &l.Acquirer.Key, &l.Store.URLFile} {
		resolve(p, dir)
	}
	for i := range l.Webhooks {
		l.Webhooks[i].complete()
		resolve(&l.Webhooks[i].Secrets, dir)
	}
	for i := range l.Notify {
		resolve(&l.Notify[i].Secrets, dir)
	}
	if l.named = l.ProgrammeKey; l.named == "" {
		l.ProgrammeKey = filepath.Join(l.DataDir, "programme.key")
	}
}

func (l *Ledger) check(r *report) {
	r.required("data_dir", l.DataDir, "name a folder on a disk")
	if !token(l.Process) {
		r.addf("process", "write 1 to 32 of a-z, 0-9 and -", "%s cannot stand in a NATS subject", show(l.Process))
	}
	if l.MaxSize < minStore {
		r.addf("max_size", "set it to at least "+minStore.String(), "%s is too small for a store", l.MaxSize)
	}
	if l.Role != RoleBroker {
		l.checkStore(r)
		l.checkHTTP(r)
		r.keyFile("ticket_key", l.TicketKey)
		r.keyFile("programme_key", l.existing(l.ProgrammeKey))
		l.checkWebhooks(r)
		l.checkOffice(r)
	}
	l.checkNATS(r)
	l.checkCallers(r)
	l.checkSigners(r)
}

// existing gives the default programme key only where it is there already: it is
// made at the first start.
func (l *Ledger) existing(file string) string {
	if file == filepath.Join(l.DataDir, "programme.key") && !exists(file) {
		return ""
	}
	return file
}

func (l *Ledger) checkHTTP(r *report) {
	h := l.HTTP
	h.Limits.check(r)
	host, ok := r.address("http.listen", h.Listen)
	switch {
	case (h.Cert == "") != (h.Key == ""):
		r.add("http.cert", "cert and key belong together, and one is missing", "name both, or neither")
	case ok && !loopback(host) && !h.TLS():
		r.addf("http.listen", "set http.cert and http.key, or listen on 127.0.0.1", "%s leaves this host without TLS", h.Listen)
	case h.TLS():
		r.certificate("http.cert", h.Cert, "http.key", h.Key)
	}
}

func (l *Ledger) checkNATS(r *report) {
	n := l.NATS
	if l.Role != RoleLedger {
		l.checkListen(r, "nats.listen", n.Listen)
		if n.Leaf != "" {
			l.checkListen(r, "nats.leaf", n.Leaf)
		}
	}
	r.links("nats.upstream", n.Upstream, "nats.upstream_keys", n.UpstreamKeys)
	switch l.Role {
	case RoleAll:
		r.absent("nats.upstream", len(n.Upstream) > 0, "role all has its own broker", "remove it, or set role to \"ledger\"")
		r.absent("enrolment", l.Enrolment != "", "only a venue's broker has one", "remove it, or set role to \"broker\"")
	case RoleLedger:
		if len(n.Upstream) == 0 {
			r.add("nats.upstream", "missing: role ledger has no broker of its own", "list the external NATS servers")
		}
		r.absent("enrolment", l.Enrolment != "", "only a venue's broker has one", "remove it, or set role to \"broker\"")
	case RoleBroker:
		r.required("enrolment", l.Enrolment, "name the file that `gatectl gate add -broker PLACE` wrote")
	}
	if n.UpstreamSeed != "" {
		r.absent("nats.upstream_seed", l.Role != RoleLedger, "only role ledger has one", "remove it")
		r.seedFile("nats.upstream_seed", n.UpstreamSeed)
	}
}

func (l *Ledger) checkListen(r *report, key, addr string) {
	host, ok := r.address(key, addr)
	if ok && l.NATS.PlainLoopback && !loopback(host) {
		r.addf(key, "set nats.plain_loopback to false, or listen on 127.0.0.1", "%s leaves this host without TLS", addr)
	}
}

func (r *report) absent(key string, there bool, wrong, right string) {
	if there {
		r.add(key, wrong, right)
	}
}
