package broker_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"admitone/internal/wire"
	"admitone/internal/wire/broker"
	"admitone/internal/wire/wiretest"
)

// TestConn: NATS with the broker passes the suite, each node over a line that can
// be cut.
func TestConn(t *testing.T) {
	wiretest.RunConn(t, func(t *testing.T) wiretest.Parties {
		s := newSite(t)
		ledger := newKey(t, broker.RoleGate)
		o := s.options("hub")
		o.Ledgers = []string{ledger.public}
		b, _ := start(t, o)
		node := func(t *testing.T, k key, id string) wiretest.Node {
			p := wiretest.NewProxy(t, hostOf(t, b.URL()))
			c := s.dial(t, k, "tls://"+p.Addr())
			return wiretest.Node{Conn: c, ID: id, Cut: p.Cut, Heal: p.Heal, Close: c.Close}
		}
		return wiretest.Parties{
			Gate: func(t *testing.T) wiretest.Node {
				k := s.enrol(t, broker.RoleGate)
				must(t, b.SetGates(s.list(t)))
				return node(t, k, string(k.device.Device))
			},
			Ledger: func(t *testing.T) wiretest.Node { return node(t, ledger, "main") },
		}
	})
}

// TestOnlyAsOneself: a gate can publish as no other, listen in on no other, and
// reach nobody by trying; the broker tells the client, which counts it.
func TestOnlyAsOneself(t *testing.T) {
	s := newSite(t)
	ledgerKey, good, bad := newKey(t, broker.RoleGate), s.enrol(t, broker.RoleGate), s.enrol(t, broker.RoleGate)
	o := s.options("hub")
	o.Ledgers = []string{ledgerKey.public}
	b, _ := start(t, o)
	must(t, b.SetGates(s.list(t)))
	ledger, g, m := s.dial(t, ledgerKey, b.URL()), s.dial(t, good, b.URL()), s.dial(t, bad, b.URL())
	for _, c := range []*wire.NATS{ledger, g, m} {
		await(t, c.Connected(), true)
	}
	goodID, badID := string(good.device.Device), string(bad.device.Device)
	heard := make(chan string, 100)
	must(t, ledger.Subscribe("gate.>", "", func(msg wire.Msg) {
		heard <- msg.Subject
		if msg.Respond != nil {
			_ = msg.Respond([]byte("first"))
		}
	}))
	reaches(t, g, "gate."+goodID+".ask")
	overheard := make(chan string, 100)
	for _, subject := range []string{"gate." + goodID + ".ask", "gate.>", "gate.*.fetch." + goodID, "ledger.>", wire.InboxPrefix(good.device.Device) + ".>", ">"} {
		must(t, m.Subscribe(subject, "", func(msg wire.Msg) { overheard <- msg.Subject }))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := m.Request(ctx, "gate."+goodID+".ask", []byte("forged"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asking as another: %v, want a time-out", err)
	}
	for _, subject := range []string{"gate." + goodID + ".spend", "ledger.main.spend", "ledger.main.gates", "broker.x.gates", "_INBOX_x.y"} {
		must(t, m.Publish(subject, []byte("forged")))
	}
	eventually(t, "12 violations counted", func() bool { return m.Status().Violations >= 12 })
	for range 20 {
		reaches(t, g, "gate."+goodID+".ask")
	}
	reaches(t, m, "gate."+badID+".ask")
	for len(heard) > 0 {
		if subject := <-heard; subject != "gate."+goodID+".ask" && subject != "gate."+badID+".ask" {
			t.Errorf("a forged message arrived: %s", subject)
		}
	}
	if n := len(overheard); n > 0 {
		t.Errorf("%d messages overheard, the first %s", n, <-overheard)
	}
	if v := g.Status().Violations + ledger.Status().Violations; v != 0 {
		t.Errorf("%d violations by those who did nothing", v)
	}
}

// TestUnknownKeys: no key, an unlisted key, another's key id without its seed, an
// unpinned server: none gets in, and none is given up.
func TestUnknownKeys(t *testing.T) {
	s := newSite(t)
	b, _ := start(t, s.options("hub"))
	late := newKey(t, broker.RoleGate)
	c := s.dial(t, late, b.URL())
	leaf := s.enrol(t, broker.RoleBroker) // a broker's key is no client's
	must(t, b.SetGates(s.list(t)))
	asLeaf := s.dial(t, leaf, b.URL())
	other := newSite(t)
	unpinned := other.dial(t, late, b.URL())

	for conn, why := range map[*wire.NATS]string{c: "uthorization", asLeaf: "uthorization", unpinned: "not pinned"} {
		eventually(t, "refused: "+why, func() bool { return strings.Contains(conn.Status().LastError, why) })
	}
	s.devices = append(s.devices, late.device)
	must(t, b.SetGates(s.list(t))) // enrolled while the broker runs
	await(t, c.Connected(), true)
}

// TestRevoked: a replaced device is cut, and back it may hand in its records, and
// nothing else; one that is off the list is refused.
func TestRevoked(t *testing.T) {
	s := newSite(t)
	ledgerKey, k, peer := newKey(t, broker.RoleGate), s.enrol(t, broker.RoleGate), s.enrol(t, broker.RoleGate)
	o := s.options("hub")
	o.Ledgers = []string{ledgerKey.public}
	b, _ := start(t, o)
	must(t, b.SetGates(s.list(t)))
	ledger, c, p := s.dial(t, ledgerKey, b.URL()), s.dial(t, k, b.URL()), s.dial(t, peer, b.URL())
	id := string(k.device.Device)
	echo(t, ledger, "gate.*.upload", "ledger")
	spends := make(chan string, 10)
	must(t, p.Subscribe("gate.*.spend", "", func(m wire.Msg) { spends <- string(m.Data) }))
	state := c.Connected()
	await(t, state, true)
	await(t, p.Connected(), true)
	reaches(t, c, "gate."+id+".upload")

	s.devices[0].State = broker.StateRevoked
	must(t, b.SetGates(s.list(t)))
	await(t, state, false)
	await(t, state, true)
	reaches(t, c, "gate."+id+".upload")
	must(t, c.Publish("gate."+id+".spend", []byte("again")))
	eventually(t, "a violation", func() bool { return c.Status().Violations > 0 })
	if len(spends) > 0 {
		t.Error("a revoked device's spend reached a peer")
	}
	s.devices = s.devices[1:]
	must(t, b.SetGates(s.list(t)))
	await(t, state, false)
	eventually(t, "peer alone is there", func() bool { return b.Status().Clients == 3 }) // peer, ledger, the broker itself
	eventually(t, "refused again and again", func() bool { return c.Status().Refused >= 3 })
	s.devices = append(s.devices, k.device)
	must(t, b.SetGates(s.list(t)))
	await(t, state, true) // it was refused many times, and has not given up
	if n := c.Status().Rebuilt; n != 0 {
		t.Errorf("the library gave the connection up %d times", n)
	}
}

// TestComesBack: the broker goes and comes back on the same address; connections
// come back by themselves, and with them their subscriptions.
func TestComesBack(t *testing.T) {
	s := newSite(t)
	a, z := s.enrol(t, broker.RoleGate), s.enrol(t, broker.RoleGate)
	signed := s.list(t)
	b, stop := start(t, s.options("hub"))
	must(t, b.SetGates(signed))
	host := hostOf(t, b.URL())
	ca, cz := s.dial(t, a, b.URL()), s.dial(t, z, b.URL())
	stateA, stateZ := ca.Connected(), cz.Connected()
	subject := "gate." + string(a.device.Device) + ".fetch." + string(z.device.Device)
	echo(t, cz, "gate.*.fetch."+string(z.device.Device), "")
	await(t, stateA, true)
	await(t, stateZ, true)
	reaches(t, ca, subject)
	stop()
	await(t, stateA, false)
	await(t, stateZ, false)
	o := s.options("hub")
	o.Listen = host
	b, _ = start(t, o)
	must(t, b.SetGates(signed))
	await(t, stateA, true)
	await(t, stateZ, true)
	reaches(t, ca, subject)
	if r := ca.Status().Reconnects; r == 0 {
		t.Error("no reconnect counted")
	}
}

// TestHangIsNoticed: a line that accepts and says nothing is given up within a few
// ping intervals, for connected clients and for those that connect into it.
func TestHangIsNoticed(t *testing.T) {
	s := newSite(t)
	k := s.enrol(t, broker.RoleGate)
	b, _ := start(t, s.options("hub"))
	must(t, b.SetGates(s.list(t)))
	p := wiretest.NewProxy(t, hostOf(t, b.URL()))
	c := s.dial(t, k, "tls://"+p.Addr())
	state := c.Connected()
	await(t, state, true)
	p.Hang()
	await(t, state, false)
	p.Heal()
	await(t, state, true)
}

// TestSecondAddress: with the preferred broker away the next one is used.
func TestSecondAddress(t *testing.T) {
	s := newSite(t)
	k := s.enrol(t, broker.RoleGate)
	b, _ := start(t, s.options("hub"))
	must(t, b.SetGates(s.list(t)))
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, dead.Close())
	c := s.dial(t, k, "tls://"+dead.Addr().String(), b.URL())
	await(t, c.Connected(), true)
}

// TestExpiredCertificate: dates are reported, not enforced.
func TestExpiredCertificate(t *testing.T) {
	s := newSite(t)
	s.certFile, s.keyFile, s.pin = writeCertificate(t, time.Now().AddDate(-1, 0, 0), 24*time.Hour)
	k := s.enrol(t, broker.RoleGate)
	b, _ := start(t, s.options("hub"))
	must(t, b.SetGates(s.list(t)))
	c := s.dial(t, k, b.URL())
	await(t, c.Connected(), true)
	if c.Status().CertificateNotice == "" || b.Status().CertificateNotice == "" {
		t.Error("nobody said that the certificate has expired")
	}
}

// TestAddressInUse: Run says so, instead of ending the process or serving nobody.
func TestAddressInUse(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	o := s.options("hub")
	o.Listen = l.Addr().String()
	b, err := broker.New(o)
	must(t, err)
	if err := b.Run(t.Context()); err == nil {
		t.Error("no error for an address in use")
	}
}
