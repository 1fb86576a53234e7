package broker_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"admitone/internal/wire"
	"admitone/internal/wire/broker"
	"admitone/internal/wire/wiretest"
)

// venue is a hub with a ledger, and a venue's broker behind an uplink that breaks.
type venue struct {
	*site
	hub, leaf *broker.Broker
	uplink    *wiretest.Proxy
	ledger    *wire.NATS
	listFile  string
	leafOpts  broker.Options
	stopLeaf  func()
}

func newVenue(t *testing.T) *venue {
	t.Helper()
	v := &venue{site: newSite(t)}
	ledgerKey, leafKey := newKey(t, broker.RoleGate), v.enrol(t, broker.RoleBroker)
	o := v.options("hub")
	o.LeafListen, o.Ledgers = "127.0.0.1:0", []string{ledgerKey.public}
	v.hub, _ = start(t, o)
	v.ledger = v.dial(t, ledgerKey, v.hub.URL())
	v.uplink = wiretest.NewProxy(t, hostOf(t, v.hub.LeafURL()))
	v.leafOpts = v.options("venue")
	v.listFile = filepath.Join(t.TempDir(), "gates")
	v.leafOpts.Upstream, v.leafOpts.UpstreamPins = []string{"tls://" + v.uplink.Addr()}, []string{v.pin}
	v.leafOpts.Seed, v.leafOpts.ListFile = leafKey.seed, v.listFile
	await(t, v.ledger.Connected(), true)
	return v
}

// serveList answers brokers with the list as it is then.
func (v *venue) serveList(t *testing.T, signed *[]byte) {
	t.Helper()
	must(t, v.ledger.Subscribe("broker.*.gates", "ledger", func(m wire.Msg) { _ = m.Respond(*signed) }))
}

// TestVenue: the venue's broker gets the list over its leaf; gates behind it reach
// the ledger and gates at the hub; with the uplink cut they go on hearing each
// other; restarted then, the broker knows them from its file; after the heal all
// is as before, and nothing arrives twice.
func TestVenue(t *testing.T) {
	v := newVenue(t)
	a, b, far := v.enrol(t, broker.RoleGate), v.enrol(t, broker.RoleGate), v.enrol(t, broker.RoleGate)
	signed := v.list(t)
	v.serveList(t, &signed)
	echo(t, v.ledger, "gate.*.ask", "ledger")
	v.leaf, v.stopLeaf = start(t, v.leafOpts)
	ca, cb, cf := v.dial(t, a, v.leaf.URL()), v.dial(t, b, v.leaf.URL()), v.dial(t, far, v.hub.URL())
	atB, atFar := make(chan string, 100), make(chan string, 100)
	must(t, cb.Subscribe("gate.*.spend", "", func(m wire.Msg) { atB <- string(m.Data) }))
	must(t, cf.Subscribe("gate.*.spend", "", func(m wire.Msg) { atFar <- string(m.Data) }))
	idA, idB, idF := string(a.device.Device), string(b.device.Device), string(far.device.Device)
	echo(t, cb, "gate.*.fetch."+idB, "")
	echo(t, cf, "gate.*.fetch."+idF, "")
	echo(t, ca, "ledger.*.fetch."+idA, "")
	stateA := ca.Connected()
	for _, ch := range []<-chan bool{stateA, cb.Connected(), cf.Connected()} {
		await(t, ch, true)
	}
	whole := func() {
		t.Helper()
		reaches(t, ca, "gate."+idA+".ask")
		reaches(t, ca, "gate."+idA+".fetch."+idF)
		reaches(t, cf, "gate."+idF+".fetch."+idB)
		reaches(t, v.ledger, "ledger.main.fetch."+idA)
	}
	whole()
	spend := func(text string) { must(t, ca.Publish("gate."+idA+".spend", []byte(text))) }
	spend("1")
	if got := receive(t, atB, "spend at b") + receive(t, atFar, "spend at the hub"); got != "11" {
		t.Errorf("got %q", got)
	}

	leafHost := hostOf(t, v.leaf.URL())
	v.uplink.Cut()
	eventually(t, "the leaf is off", func() bool { return v.leaf.Status().Leaves == 0 })
	spend("2")
	if got := receive(t, atB, "spend at b with the uplink cut"); got != "2" {
		t.Errorf("got %q", got)
	}
	v.stopLeaf()
	await(t, stateA, false)
	o := v.leafOpts
	o.Listen = leafHost
	v.leaf, v.stopLeaf = start(t, o)
	if n := v.leaf.Status().ListVersion; n != v.version {
		t.Errorf("list %d after a restart with the uplink cut, want %d from the file", n, v.version)
	}
	await(t, stateA, true)
	reaches(t, ca, "gate."+idA+".fetch."+idB)
	spend("3")
	if got := receive(t, atB, "spend at b after the restart"); got != "3" {
		t.Errorf("got %q", got)
	}

	v.uplink.Heal()
	whole()
	spend("4")
	if got := receive(t, atB, "spend at b after the heal") + receive(t, atFar, "spend at the hub after the heal"); got != "44" {
		t.Errorf("got %q: something came twice, or out of the cut", got)
	}
	whole()
	if len(atB)+len(atFar) > 0 {
		t.Error("spends came twice")
	}
}

// TestVenueLearnsOfGates: a gate enrolled while the venue's broker runs is let in
// on the ledger's word, published or asked for.
func TestVenueLearnsOfGates(t *testing.T) {
	v := newVenue(t)
	signed := v.list(t)
	v.serveList(t, &signed)
	v.leaf, _ = start(t, v.leafOpts)
	eventually(t, "first list", func() bool { return v.leaf.Status().ListVersion == v.version })
	k := v.enrol(t, broker.RoleGate)
	c := v.dial(t, k, v.leaf.URL())
	must(t, v.ledger.Publish("ledger.main.gates", v.list(t)))
	await(t, c.Connected(), true)
	// The list is in force before its file is written.
	eventually(t, "the list on disk", func() bool {
		kept, err := os.ReadFile(v.listFile)
		must(t, err)
		l, err := broker.OpenGateList(kept, v.leafOpts.ListKey)
		must(t, err)
		return l.Version == v.version
	})
}

// TestLeafCannotSpeakForTheLedger: a venue's broker carries its gates' messages
// up, and none in the ledger's name.
func TestLeafCannotSpeakForTheLedger(t *testing.T) {
	v := newVenue(t)
	far, forger := v.enrol(t, broker.RoleGate), newKey(t, broker.RoleGate)
	signed := v.list(t)
	v.serveList(t, &signed)
	o := v.leafOpts
	o.Ledgers = []string{forger.public} // as if somebody had taken the box over
	v.leaf, _ = start(t, o)
	cf, evil := v.dial(t, far, v.hub.URL()), v.dial(t, forger, v.leaf.URL())
	heard := make(chan string, 10)
	must(t, cf.Subscribe("ledger.*.spend", "", func(m wire.Msg) { heard <- string(m.Data) }))
	idF := string(far.device.Device)
	echo(t, cf, "gate.*.fetch."+idF, "")
	await(t, cf.Connected(), true)
	await(t, evil.Connected(), true)
	k := v.enrol(t, broker.RoleGate)
	signed = v.list(t)
	must(t, v.leaf.SetGates(signed))
	a := v.dial(t, k, v.leaf.URL())
	await(t, a.Connected(), true)
	reaches(t, a, "gate."+string(k.device.Device)+".fetch."+idF) // the leaf carries
	must(t, evil.Publish("ledger.main.spend", []byte("forged")))
	eventually(t, "the ledger's own word", func() bool {
		must(t, v.ledger.Publish("ledger.main.spend", []byte("true")))
		return len(heard) > 0
	})
	reaches(t, a, "gate."+string(k.device.Device)+".fetch."+idF)
	for len(heard) > 0 {
		if text := <-heard; text != "true" {
			t.Errorf("heard %q in the ledger's name", text)
		}
	}
}

// TestNothingLeftBehind: a hub with a leaf and clients, all closed, leaves no
// goroutine of theirs.
func TestNothingLeftBehind(t *testing.T) {
	t.Run("run", func(t *testing.T) {
		v := newVenue(t)
		signed := v.list(t)
		v.serveList(t, &signed)
		v.leaf, _ = start(t, v.leafOpts)
		eventually(t, "the list", func() bool { return v.leaf.Status().ListVersion == v.version })
	})
	buf := make([]byte, 1<<20)
	var left string
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		left = ""
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "nats-io/") || strings.Contains(g, "internal/wire.") || strings.Contains(g, "internal/wire/broker.(") {
				left = g
			}
		}
		if left == "" {
			return
		}
	}
	t.Errorf("left behind:\n%s", left)
}
