package crashtest

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/control"
	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// event is what the rig has on.
const event = "rig"

// rig is a ledger and gates, each with its files on a disk of ours.
type rig struct {
	t      *testing.T
	dir    string
	url    string
	nats   string
	signer ed25519.PrivateKey
	bearer string
	mint   ticket.Signer
	client *ledgerhttp.Client
	ledger *program
	gates  []*gate
	lossy  bool // the gates' disks are
}

// gate is a gated with a simulated turnstile and a line reader.
type gate struct {
	*program
	device  ticket.Source
	tap     *Tap
	line    string
	control *control.Client
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func free(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// bare makes a ledger that has never been started; change changes its configuration.
// slow is how long its disk's flushes take.
func bare(t *testing.T, slow time.Duration, change func(*config.Ledger)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), bearer: rand.Text(), nats: free(t)}
	var err error
	_, r.signer, err = ed25519.GenerateKey(nil)
	r.must(err)
	addr := free(t)
	r.url = "http://" + addr
	r.ledger = newProgram(t, r.dir, "ledger", Options{Slow: slow})
	sum := sha256.Sum256([]byte(r.bearer))
	conf := config.Ledger{
		Role: config.RoleAll, DataDir: filepath.Join(r.ledger.disk.Dir, "data"), MaxSize: 16e6,
		HTTP: config.HTTP{Listen: addr}, NATS: config.NATS{Listen: r.nats, PlainLoopback: true},
		Callers: []config.Caller{{Name: "rig", KeySHA256: hex.EncodeToString(sum[:]), Scopes: []config.Scope{config.ScopeRead}}},
		Signers: []config.Signer{{Name: "rig", Public: hex.EncodeToString(r.signer.Public().(ed25519.PublicKey)), Scopes: []config.Scope{config.ScopeAdmin}}},
	}
	if change != nil {
		change(&conf)
	}
	r.must(config.Write(filepath.Join(r.dir, "ledgerd.toml"), conf))
	r.ledger.argv = []string{filepath.Join(bin, "ledgerd"), "-config", filepath.Join(r.dir, "ledgerd.toml")}
	r.client, err = ledgerhttp.NewClient(r.url, r.bearer, r.signer)
	r.must(err)
	return r
}

// stand makes a ledger, starts it, and tells it what is on.
func stand(t *testing.T, slow time.Duration) *rig {
	t.Helper()
	r := bare(t, slow, nil)
	r.startLedger()
	r.programme()
	return r
}

// programme tells the ledger what is on.
func (r *rig) programme() {
	r.t.Helper()
	_, mint, err := ed25519.GenerateKey(nil)
	r.must(err)
	r.mint = ticket.NewSigner(mint)
	now := time.Now().UTC().Truncate(time.Second)
	_, err = r.client.PushProgramme(r.t.Context(), ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: event, Name: "Rig", Open: now.Add(-time.Hour), Close: now.Add(100 * time.Hour), Forget: now.Add(200 * time.Hour),
		Formats: []string{ticket.FormatA1.String()},
		Keys:    []ticket.ProgrammeKey{{ID: r.mint.KeyID(), Public: hex.EncodeToString(mint.Public().(ed25519.PublicKey))}},
	}}})
	r.must(err)
}

// startLedger starts the ledger and waits until it answers.
func (r *rig) startLedger() {
	r.t.Helper()
	r.ledger.start()
	r.eventually("the ledger", func() bool { return r.ledger.ended() || r.healthy() })
	if r.ledger.ended() {
		r.t.Fatal("the ledger ended")
	}
}

// healthy reports whether the ledger answers.
func (r *rig) healthy() bool {
	res, err := http.Get(r.url + "/healthz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// eventually waits for something that takes a moment.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			r.t.Fatalf("%s: not within a minute", what)
		case <-every.C:
		}
	}
}

// addGate enrols a gate behind a tap; change changes its configuration.
func (r *rig) addGate(slow time.Duration, change func(*config.Gate)) *gate {
	r.t.Helper()
	name := strconv.Itoa(len(r.gates) + 1)
	g := &gate{program: newProgram(r.t, r.dir, "gate-"+name, Options{Slow: slow, Lossy: r.lossy}), line: filepath.Join(r.dir, "line-"+name)}
	var err error
	g.tap, err = NewTap(r.nats, g.log, r.ledger.log)
	r.must(err)
	r.t.Cleanup(g.tap.Close)
	seed, public, err := wire.NewDeviceKey()
	r.must(err)
	g.device, err = wire.DeviceID(public)
	r.must(err)
	_, err = r.client.AddGate(r.t.Context(), name, public, "gate")
	r.must(err)
	e, err := r.client.Enrolment(r.t.Context())
	r.must(err)
	enrolment := filepath.Join(r.dir, name+".enrolment.toml")
	r.must(config.WriteEnrolment(enrolment, config.Enrolment{
		Place: name, Seed: seed, Brokers: []string{"nats://" + g.tap.Addr}, ProgrammeKey: e.ProgrammeKey,
		Issued: time.Now().UTC().Truncate(time.Second),
	}))
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("crash-%d-%s-%s", os.Getpid(), name, filepath.Base(filepath.Dir(r.dir))))
	r.t.Cleanup(func() { os.Remove(socket) })
	out := func(s string) string { return filepath.Join(g.disk.Dir, "out", s) }
	conf := config.Gate{
		Enrolment: enrolment, DataDir: filepath.Join(g.disk.Dir, "data"), RunDir: filepath.Join(g.disk.Dir, "run"), Control: socket,
		Verdicts: out("verdicts.jsonl"), Results: out("results.jsonl"), MaxSize: 16e6,
		Rearm: config.Duration(50 * time.Millisecond),
		Lanes: []config.Lane{{
			PassageTimeout: config.Duration(time.Second), ReleaseTime: config.Duration(50 * time.Millisecond),
			Turnstile: config.Turnstile{
				Driver: "sim", File: out("turnstile.jsonl"), Inputs: []string{config.PassageIn, config.Ready},
				Pulse: config.Duration(50 * time.Millisecond), Gap: config.Duration(10 * time.Millisecond),
			},
			Readers: []config.Reader{{Driver: "line", Path: g.line}},
		}},
	}
	if change != nil {
		change(&conf)
	}
	file := filepath.Join(r.dir, name+".gated.toml")
	r.must(config.Write(file, conf))
	r.must(syscall.Mkfifo(g.line, 0o600))
	g.argv = []string{filepath.Join(bin, "gated"), "-config", file}
	g.control = control.NewClient(socket)
	r.gates = append(r.gates, g)
	return g
}

// gateState is what the rig reads of a gate's status.
type gateState struct {
	Programme uint64 `json:"programme"`
	Amnesia   bool   `json:"amnesia"`
	Link      string `json:"link"`
	Lanes     []struct {
		Ready bool     `json:"ready"`
		Open  []string `json:"open"`
	} `json:"lanes"`
}

func (g *gate) state() (s gateState, err error) {
	raw, err := g.control.Status(g.t.Context())
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(raw, &s)
}

// ready waits until a gate can work, or has ended by itself.
func (r *rig) ready(g *gate, linked bool) bool {
	r.t.Helper()
	r.eventually("gate "+g.name, func() bool {
		s, err := g.state()
		return g.ended() || err == nil && s.Programme > 0 && !s.Amnesia && s.Lanes[0].Ready && (!linked || s.Link == "up")
	})
	return !g.ended()
}

// ticket makes a new ticket's text and id.
func (r *rig) ticket() (text string, id ticket.ID) {
	r.t.Helper()
	tk := ticket.Ticket{Format: ticket.FormatA1, Event: event}
	rand.Read(tk.ID[:])
	text, err := r.mint.Mint(tk)
	r.must(err)
	return text, tk.ID
}

// look shows a text once; it is an error where the gate is not there.
func (g *gate) look(text string) error {
	f, err := os.OpenFile(g.line, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// verdicts reads what a gate has said about a ticket.
func (g *gate) verdicts(id ticket.ID) (out []ticket.Verdict) {
	for _, v := range readLines[ticket.Verdict](g.t, g.disk.Back("out", "verdicts.jsonl")) {
		if v.Ticket == id.String() {
			out = append(out, v)
		}
	}
	return out
}

// visit shows a ticket and waits for a final verdict, and for the turnstile to be
// free again; false where the gate ended.
func (r *rig) visit(g *gate, text string, id ticket.ID) (v ticket.Verdict, ok bool) {
	r.t.Helper()
	before := len(g.verdicts(id))
	if g.look(text) != nil {
		return v, false
	}
	r.eventually("a verdict at "+g.name, func() bool {
		all := g.verdicts(id)
		if len(all) > before {
			v = all[len(all)-1]
		}
		if g.ended() {
			return true
		}
		if len(all) == before || v.Verdict == ticket.Wait {
			return false
		}
		s, err := g.state()
		return err == nil && len(s.Lanes[0].Open) == 0
	})
	return v, v.Verdict != "" && !g.ended()
}

// readLines reads a file of JSON objects; a last line that is not whole is left out.
func readLines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return out
		}
		out = append(out, v)
	}
	return out
}
