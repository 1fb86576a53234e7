package wire_test

import (
	"context"
	"crypto/ed25519"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
	"admitone/internal/wire/wiretest"
)

// patience is how long something that must happen may take on a loaded machine.
const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until it is so.
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

// real is an installation over real brokers: a hub, and a venue's behind a line.
type real struct {
	t         *testing.T
	signer    ed25519.PrivateKey
	cert, key string
	pin       string
	list      broker.GateList
	hub, leaf *broker.Broker
	line      *wiretest.Proxy
	ledger    *center
	conns     []*wire.NATS
}

func newReal(t *testing.T) *real {
	t.Helper()
	r := &real{t: t, ledger: &center{process: "main", shelf: newShelf()}}
	var err error
	_, r.signer, err = ed25519.GenerateKey(nil)
	must(t, err)
	certPEM, keyPEM, err := wire.NewCertificate("test", time.Now(), time.Hour)
	must(t, err)
	r.pin, err = wire.Pin(certPEM)
	must(t, err)
	dir := t.TempDir()
	r.cert, r.key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	must(t, os.WriteFile(r.cert, certPEM, 0o600))
	must(t, os.WriteFile(r.key, keyPEM, 0o600))
	return r
}

// enrol makes a device and puts it on the list that the ledger gives out.
func (r *real) enrol(role string) (seed string, id ticket.Source) {
	seed, public, err := wire.NewDeviceKey()
	must(r.t, err)
	id, err = wire.DeviceID(public)
	must(r.t, err)
	r.list.Version++
	r.list.Devices = append(r.list.Devices, broker.Device{Device: id, Key: public, Role: role, State: broker.StateEnrolled})
	signed, err := r.list.Sign(r.signer)
	must(r.t, err)
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.ledger.list = signed
	return seed, id
}

func (r *real) broker(o broker.Options) *broker.Broker {
	r.t.Helper()
	o.Listen, o.CertFile, o.KeyFile, o.Log = "127.0.0.1:0", r.cert, r.key, quiet()
	o.ListKey = r.signer.Public().(ed25519.PublicKey)
	b, err := broker.New(o)
	must(r.t, err)
	w := &world{t: r.t}
	w.run(b.Run)
	select {
	case <-b.Ready():
	case <-time.After(patience):
		r.t.Fatal("broker is not ready")
	}
	return b
}

func (r *real) dial(o wire.NATSOptions) *wire.NATS {
	r.t.Helper()
	o.PinnedKeys, o.Log = []string{r.pin}, quiet()
	c, err := wire.Dial(context.Background(), o)
	must(r.t, err)
	r.t.Cleanup(c.Close)
	r.conns = append(r.conns, c)
	return c
}

// start runs hub, ledger and the venue's broker.
func (r *real) start() {
	r.t.Helper()
	ledgerSeed, public, err := wire.NewDeviceKey()
	must(r.t, err)
	r.hub = r.broker(broker.Options{Name: "hub", LeafListen: "127.0.0.1:0", Ledgers: []string{public}})
	u, err := url.Parse(r.hub.LeafURL())
	must(r.t, err)
	r.line = wiretest.NewProxy(r.t, u.Host)
	leafSeed, _ := r.enrol(broker.RoleBroker)
	r.leaf = r.broker(broker.Options{Name: "venue", Upstream: []string{"tls://" + r.line.Addr()}, UpstreamPins: []string{r.pin}, Seed: leafSeed})
	c := r.ledger
	w := &world{t: r.t, runs: 1000}
	w.startLedgerOn(c, r.dial(wire.NATSOptions{InProcess: r.hub, Seed: ledgerSeed, Name: "ledger"}))
}

func (r *real) gate(b *broker.Broker, run ticket.Run) *gate {
	r.t.Helper()
	seed, id := r.enrol(broker.RoleGate)
	g := &gate{id: id, shelf: newShelf()}
	w := &world{t: r.t, runs: run}
	w.startOn(g, r.dial(wire.NATSOptions{URLs: []string{b.URL()}, Seed: seed, Name: string(id)}))
	return g
}

// TestOverNATS: gates and ledger at work over real brokers, each with its own key
// and no more rights than it needs: two gates at a venue, one at the hub. With the
// uplink cut the venue's gates hear each other; healed, everybody is level.
func TestOverNATS(t *testing.T) {
	r := newReal(t)
	r.start()
	a, b, c := r.gate(r.leaf, 1), r.gate(r.leaf, 2), r.gate(r.hub, 3)
	gates := []*gate{a, b, c}
	for _, g := range gates {
		eventually(t, "link up", func() bool { return g.wire.Link().Up && g.wire.Link().Peers })
	}
	for i := range 20 {
		for n, g := range gates {
			g.claim(byte(3*i + n))
			g.event()
		}
		r.ledger.feed(wire.LedgerSource("main"), revoke(byte(i), 1))
	}
	level := func(when string) {
		t.Helper()
		feeds := r.ledger.has(wire.LedgerSource("main"), r.ledger.run)
		for _, owner := range gates {
			head := owner.has(owner.id, owner.run)
			eventually(t, when+": the ledger has it all", func() bool { return r.ledger.has(owner.id, owner.run) == head })
			for _, g := range gates {
				eventually(t, when+": every gate has it all", func() bool { return g.has(owner.id, owner.run) == head })
			}
			eventually(t, when+": every gate has the feeds", func() bool {
				return owner.has(wire.LedgerSource("main"), r.ledger.run) == feeds
			})
		}
	}
	level("at first")
	for _, g := range gates {
		eventually(t, "20 answers", func() bool { return see(g, func() int { return len(g.answers) }) == 20 })
		eventually(t, "caught up", g.wire.CaughtUp)
		g.wire.Peek(unit(1))
	}
	a.wire.PublishVerdict([]byte(`{"verdict":"admit"}`))
	eventually(t, "verdict", func() bool { r.ledger.mu.Lock(); defer r.ledger.mu.Unlock(); return r.ledger.verdicts == 1 })

	r.line.Cut()
	eventually(t, "link down", func() bool { a.claim(99); return !a.wire.Link().Up })
	a.event()
	eventually(t, "b hears a with the uplink cut", func() bool { return b.has(a.id, a.run) == a.has(a.id, a.run) })
	c.event()
	r.ledger.feed(wire.LedgerSource("main"), revoke(77, 1))
	r.line.Heal()
	level("after the heal")
	for _, conn := range r.conns {
		if s := conn.Status(); s.Violations != 0 || s.Dropped != 0 {
			t.Errorf("%d subjects refused, %d times messages dropped", s.Violations, s.Dropped)
		}
	}
	// Those that came with an ask before need no upload.
	times, _, _ := r.ledger.uploaded(c.id, c.run)
	for pos, n := range times {
		if n != 1 {
			t.Errorf("position %d of the gate at the hub was uploaded %d times", pos, n)
		}
	}
	if len(times) < 21 {
		t.Errorf("%d records of the gate at the hub uploaded, want its 21 events at least", len(times))
	}
}

// TestBuiltAgain: when the library has closed a connection for good, it is built
// again, its subscriptions with it, and those who watch are told.
func TestBuiltAgain(t *testing.T) {
	r := newReal(t)
	seed, id := r.enrol(broker.RoleGate)
	otherSeed, other := r.enrol(broker.RoleGate)
	r.hub = r.broker(broker.Options{Name: "hub"})
	must(t, r.hub.SetGates(r.ledger.list))
	c := r.dial(wire.NATSOptions{URLs: []string{r.hub.URL()}, Seed: seed})
	asker := r.dial(wire.NATSOptions{URLs: []string{r.hub.URL()}, Seed: otherSeed})
	must(t, c.Subscribe("gate.*.fetch."+string(id), "", func(m wire.Msg) { _ = m.Respond(m.Data) }))
	state := c.Connected()
	for !<-state {
	}
	wire.CloseForGood(c)
	if <-state {
		t.Error("not told that the connection was gone")
	}
	for !<-state {
	}
	eventually(t, "the subscription is back", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := asker.Request(ctx, "gate."+string(other)+".fetch."+string(id), nil)
		return err == nil
	})
	if n := c.Status().Rebuilt; n != 1 {
		t.Errorf("built again %d times", n)
	}
}

// TestDialRefuses what cannot work, and never waits for the network.
func TestDialRefuses(t *testing.T) {
	seed, public, err := wire.NewDeviceKey()
	must(t, err)
	pin := strings.Repeat("ab", 32)
	for name, o := range map[string]wire.NATSOptions{
		"no seed":            {URLs: []string{"tls://h:1"}, PinnedKeys: []string{pin}},
		"a public key":       {URLs: []string{"tls://h:1"}, PinnedKeys: []string{pin}, Seed: public},
		"no address":         {PinnedKeys: []string{pin}, Seed: seed},
		"no host":            {URLs: []string{"h"}, PinnedKeys: []string{pin}, Seed: seed},
		"no pin":             {URLs: []string{"tls://h:1"}, Seed: seed},
		"a short pin":        {URLs: []string{"tls://h:1"}, PinnedKeys: []string{"abcd"}, Seed: seed},
		"plain off the host": {URLs: []string{"nats://192.0.2.1:4222"}, Plain: true, Seed: seed},
	} {
		if c, err := wire.Dial(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	c, err := wire.Dial(t.Context(), wire.NATSOptions{URLs: []string{"tls://192.0.2.1:4222"}, PinnedKeys: []string{pin}, Seed: seed, Log: quiet()})
	must(t, err)
	if err := c.Publish("x", nil); err != wire.ErrNotConnected {
		t.Errorf("publish before connecting: %v", err)
	}
	c.Close() // ends the dialling into nowhere, too
}

// TestBackOff starts at 100 ms, doubles up to 2 s, and is spread.
func TestBackOff(t *testing.T) {
	for attempt, most := range []time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 1000: 2 * time.Second} {
		if most == 0 {
			continue
		}
		seen := make(map[time.Duration]bool)
		for range 50 {
			d := wire.BackOff(attempt)
			if d < most/2 || d > most {
				t.Errorf("attempt %d: %s, want %s to %s", attempt, d, most/2, most)
			}
			seen[d] = true
		}
		if len(seen) < 25 {
			t.Errorf("attempt %d: only %d different delays of 50", attempt, len(seen))
		}
	}
}

// TestDeviceID is fixed: ids stand in records for good.
func TestDeviceID(t *testing.T) {
	id, err := wire.DeviceID("UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4")
	must(t, err)
	if id != "kyln5plqotfdakqp" {
		t.Errorf("got %s", id)
	}
	for _, bad := range []string{"", "UDXU", "ADXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF5"} {
		if id, err := wire.DeviceID(bad); err == nil {
			t.Errorf("%q: accepted as %s", bad, id)
		}
	}
}
