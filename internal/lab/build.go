package lab

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// HandPlace is where the lab's hand-held scanner stands, whose bearer key is in
// DIR/keys/hand-held.
const HandPlace = "Tent"

// keys makes all of the lab's keys and gives the ledger's callers and signers.
func (l *Lab) keys() (callers []config.Caller, signers []config.Signer, err error) {
	for _, k := range []struct {
		file, place string
		scope       config.Scope
	}{{l.at.readKey(), "", config.ScopeRead}, {l.at.orderKey(), "", config.ScopeOrders}, {l.at.handKey(), HandPlace, config.ScopeClaims}} {
		key := rand.Text()
		if err := os.WriteFile(k.file, []byte(key+"\n"), 0o600); err != nil {
			return nil, nil, fmt.Errorf("write key: %w", err)
		}
		h := sha256.Sum256([]byte(key))
		callers = append(callers, config.Caller{Name: filepath.Base(k.file), KeySHA256: hex.EncodeToString(h[:]), Scopes: []config.Scope{k.scope}, Place: k.place})
	}
	sign, err := config.EnsureKey(l.at.signKey())
	if err != nil {
		return nil, nil, err
	}
	if l.o.TicketKey != nil {
		err = config.WriteKey(l.at.mintKey(), l.o.TicketKey)
	} else {
		_, err = config.EnsureKey(l.at.mintKey())
	}
	public := hex.EncodeToString(sign.Public().(ed25519.PublicKey))
	return callers, []config.Signer{{Name: "admin", Public: public, Scopes: []config.Scope{config.ScopeAdmin}}}, err
}

// unlimited is for rehearsals of load and of bad requests: nobody is slowed down.
const unlimited = 1_000_000

// buildLedger writes the ledger's configuration and starts it.
func (l *Lab) buildLedger(ctx context.Context) error {
	callers, signers, err := l.keys()
	if err != nil {
		return err
	}
	var addr [3]string
	for i := range addr {
		if addr[i], err = freePort(); err != nil {
			return err
		}
	}
	l.url = "http://" + addr[0]
	if l.uplink, err = newProxy(addr[2]); err != nil {
		return err
	}
	if l.bank, err = openBank(); err != nil {
		return err
	}
	c := config.Ledger{
		Role: config.RoleAll, Acquirer: config.Acquirer{URL: l.bank.url}, DataDir: l.at.path("ledger"), TicketKey: l.at.mintKey(), Demo: l.o.Demo,
		HTTP: config.HTTP{Listen: addr[0], Limits: config.Limits{Rate: unlimited, Burst: unlimited, Failures: unlimited}}, NATS: config.NATS{Listen: addr[1], Leaf: addr[2]},
		Callers: callers, Signers: signers,
	}
	if err := add(l, "ledger", "ledgerd", c); err != nil {
		return err
	}
	if err := l.procs["ledger"].start(); err != nil {
		return err
	}
	if err := l.awaitLedger(ctx); err != nil {
		return err
	}
	return os.WriteFile(l.at.url(), []byte(l.url+"\n"), 0o644)
}

func (l *Lab) awaitLedger(ctx context.Context) error {
	return await(ctx, "the ledger", func(ctx context.Context) error {
		if err := l.procs["ledger"].dead(ctx); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/healthz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("healthz: %s", res.Status)
		}
		return nil
	})
}

// Client is a client of the lab's ledger with all of its keys.
func (l *Lab) Client() (*ledgerhttp.Client, error) {
	bearer, err := os.ReadFile(l.at.readKey())
	if err != nil {
		return nil, err
	}
	sign, err := config.ReadKey(l.at.signKey())
	if err != nil {
		return nil, err
	}
	return ledgerhttp.NewClient(l.url, strings.TrimSpace(string(bearer)), sign)
}

// programme is what is on: one event, from now on.
func (l *Lab) programme() (ticket.Programme, error) {
	if l.o.Programme != nil {
		return *l.o.Programme, nil
	}
	key, err := config.ReadKey(l.at.mintKey())
	if err != nil {
		return ticket.Programme{}, err
	}
	public := key.Public().(ed25519.PublicKey)
	now := time.Now().UTC().Truncate(time.Second)
	return ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: Event, Name: "Rehearsal", Open: now.Add(-24 * time.Hour), Close: now.Add(365 * 24 * time.Hour), Forget: now.Add(400 * 24 * time.Hour),
		Formats: []string{ticket.FormatA1.String()},
		Keys:    []ticket.ProgrammeKey{{ID: ticket.NewSigner(key).KeyID(), Public: hex.EncodeToString(public)}},
	}}}, nil
}

// buildBroker enrols the venue's broker and starts it.
func (l *Lab) buildBroker(ctx context.Context, c *ledgerhttp.Client, e ledgerhttp.Enrolment) error {
	dir := l.at.path("broker")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	cert, key, err := wire.NewCertificate("lab broker", time.Now(), 10*365*24*time.Hour)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "broker.crt"), cert, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "broker.key"), key, 0o600); err != nil {
		return err
	}
	if l.brokerPin, err = wire.Pin(cert); err != nil {
		return err
	}
	if l.brokerAddr, err = freePort(); err != nil {
		return err
	}
	enrolment := config.Enrolment{
		Place: "broker", Brokers: []string{"tls://" + l.uplink.addr}, BrokerKeys: e.BrokerKeys, ProgrammeKey: e.ProgrammeKey,
	}
	if err := l.enrol(ctx, c, filepath.Join(dir, "enrolment.toml"), enrolment, "broker"); err != nil {
		return err
	}
	conf := config.Ledger{
		Role: config.RoleBroker, DataDir: dir, Enrolment: filepath.Join(dir, "enrolment.toml"),
		NATS: config.NATS{Listen: l.brokerAddr},
	}
	if err := add(l, "broker", "ledgerd", conf); err != nil {
		return err
	}
	return l.procs["broker"].start()
}

// enrol makes a device's key, registers it at the ledger and writes its file.
func (l *Lab) enrol(ctx context.Context, c *ledgerhttp.Client, file string, e config.Enrolment, role string) error {
	seed, public, err := wire.NewDeviceKey()
	if err != nil {
		return err
	}
	if _, err := c.AddGate(ctx, e.Place, public, role); err != nil {
		return fmt.Errorf("enrol %s: %w", e.Place, err)
	}
	e.Seed, e.Issued = seed, time.Now().UTC().Truncate(time.Second)
	return config.WriteEnrolment(file, e)
}

// buildGate enrols gate k and starts it.
func (l *Lab) buildGate(ctx context.Context, k int, c *ledgerhttp.Client, e ledgerhttp.Enrolment) error {
	name := strconv.Itoa(k)
	for _, dir := range []string{l.at.gate(k, "run"), l.at.gate(k, "camera")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	link, err := newProxy(l.brokerAddr)
	if err != nil {
		return err
	}
	l.links = append(l.links, link)
	enrolment := config.Enrolment{
		Place: name, Brokers: []string{"tls://" + link.addr}, BrokerKeys: []string{l.brokerPin}, ProgrammeKey: e.ProgrammeKey,
	}
	if err := l.enrol(ctx, c, l.at.gate(k, "enrolment.toml"), enrolment, "gate"); err != nil {
		return err
	}
	lane := config.Lane{
		Turnstile: config.Turnstile{Driver: "sim", File: l.at.gate(k, "turnstile.jsonl"), Inputs: []string{
			config.PassageIn, config.PassageOut, config.Ready, config.Alarm, config.Emergency, config.Staff}},
		Readers: []config.Reader{{Driver: "line", Path: l.at.gate(k, "line")}},
	}
	if l.o.Cameras {
		lane.Camera = &config.Camera{Driver: "folder", Dir: l.at.gate(k, "camera"), FPS: 10}
	}
	if l.o.Lane != nil {
		l.o.Lane(&lane)
	}
	conf := config.Gate{
		Enrolment: l.at.gate(k, "enrolment.toml"), DataDir: l.at.gate(k, "data"), RunDir: l.at.gate(k, "run"),
		Control: l.at.gateSocket(k), Demo: l.o.Demo, Verdicts: l.at.gate(k, "verdicts.jsonl"), Results: l.at.gate(k, "results.jsonl"),
		Lanes: []config.Lane{lane}, Sim: config.Sim{ClockOffsetFile: l.at.gate(k, "clock")},
	}
	if l.o.Gate != nil {
		l.o.Gate(k, &conf)
	}
	if err := add(l, "gate-"+name, "gated", conf); err != nil {
		return err
	}
	return l.procs["gate-"+name].start()
}

// add writes a program's configuration and registers it.
func add[T config.Gate | config.Ledger](l *Lab, name, program string, conf T) error {
	dir := l.at.path(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	file := filepath.Join(dir, program+".toml")
	if err := config.Write(file, conf); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	l.procs[name] = &process{
		name: name, log: filepath.Join(dir, "log"), forker: l.forker,
		argv: []string{filepath.Join(l.o.Bin, program), "-config", file},
	}
	return nil
}
