package office_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"admitone/internal/acquirer"
	"admitone/internal/config"
	"admitone/internal/ledgerhttp"
	"admitone/internal/pgtest"
	"admitone/internal/ticket"
)

// TestKills: real ledgers on a file and on PostgreSQL, killed at random while fifty
// callers send one order, an acquirer outside of them that does anything, and no
// charge too many, no half order, and the same bytes for every caller.
func TestKills(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "ledgerd")
	build := exec.Command("go", "build", "-o", exe, "admitone/cmd/ledgerd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("file", func(t *testing.T) {
		newCentre(t, exe, 1, config.Store{}).rounds(rounds(t, 16))
	})
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start() // one that flushes, as ledgerd demands
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		newCentre(t, exe, 2, config.Store{Driver: config.DriverPostgres, URL: s.Database(t)}).rounds(rounds(t, 10))
	})
}

// centre is some ledgerd processes on one store, and an acquirer.
type centre struct {
	t    *testing.T
	sim  *acquirer.Sim
	rand *rand.Rand
	all  []*ledgerd
	key  string

	kills int
}

// ledgerd is one process, which may be dead.
type ledgerd struct {
	argv []string
	url  string
	log  *os.File
	cmd  *exec.Cmd
}

func newCentre(t *testing.T, exe string, n int, store config.Store) *centre {
	t.Helper()
	c := &centre{t: t, sim: acquirer.NewSim(1500 * time.Millisecond), rand: rand.New(rand.NewPCG(1, 2)), key: "order-me"}
	pay := httptest.NewServer(c.sim)
	t.Cleanup(pay.Close)
	dir := t.TempDir()
	sign := key()
	for _, name := range []string{"programme.key", "ticket.key"} {
		must(t, config.WriteKey(filepath.Join(dir, name), key()))
	}
	for i := range n {
		home := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.Mkdir(home, 0o700))
		conf := config.Ledger{
			Process: fmt.Sprint(i), DataDir: home, TicketKey: filepath.Join(dir, "ticket.key"), ProgrammeKey: filepath.Join(dir, "programme.key"),
			HTTP: config.HTTP{Listen: freePort(t)}, NATS: config.NATS{Listen: freePort(t), PlainLoopback: true}, Store: store,
			Acquirer: config.Acquirer{URL: pay.URL, Timeout: config.Duration(time.Second)},
			Callers:  []config.Caller{{Name: "desk", KeySHA256: digest(c.key), Scopes: []config.Scope{config.ScopeOrders}}},
			Signers:  []config.Signer{{Name: "boss", Public: hex.EncodeToString(sign.Public().(ed25519.PublicKey)), Scopes: []config.Scope{config.ScopeAdmin}}},
		}
		file := filepath.Join(home, "ledgerd.toml")
		must(t, config.Write(file, conf))
		log, err := os.Create(filepath.Join(home, "log"))
		must(t, err)
		l := &ledgerd{argv: []string{exe, "-config", file}, url: "http://" + conf.HTTP.Listen, log: log}
		c.all = append(c.all, l)
		must(t, l.start())
		t.Cleanup(func() { c.end(l) })
	}
	api, err := ledgerhttp.NewClient(c.all[0].url, "", sign)
	must(t, err)
	c.eventually("a ledger that serves", func() bool {
		resp, err := http.Get(c.all[0].url + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	_, err = api.PushProgramme(context.Background(), ticket.Programme{Events: []ticket.ProgrammeEvent{event("gala")}})
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digest(key string) string {
	h := sha256.Sum256([]byte(key))
	return hex.EncodeToString(h[:])
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

func (l *ledgerd) start() error {
	l.cmd = exec.Command(l.argv[0], l.argv[1:]...)
	l.cmd.Stderr = l.log
	return l.cmd.Start()
}

// kill ends the process as a power cut would, and waits until it is gone.
func (l *ledgerd) kill() {
	_ = l.cmd.Process.Kill() // it may have ended by itself
	_ = l.cmd.Wait()
}

func (c *centre) end(l *ledgerd) {
	l.kill()
	defer l.log.Close()
	if b, err := os.ReadFile(l.log.Name()); c.t.Failed() && err == nil {
		c.t.Logf("%s:\n%s", l.url, b[max(0, len(b)-4000):])
	}
}

func (c *centre) eventually(what string, ok func() bool) {
	c.t.Helper()
	(&stage{t: c.t}).eventually(what, ok)
}

// spoken is one final answer.
type spoken struct {
	status int
	body   string
}

// send orders under a key until there is an answer to it, from whichever ledger
// lives.
func (c *centre) send(ctx context.Context, caller int, key, body string) (spoken, error) {
	for try := caller; ; try++ {
		s, err := c.once(ctx, c.all[try%len(c.all)].url, key, body)
		unsure := err != nil || s.status >= 500 || s.status == http.StatusConflict
		if !unsure {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("no answer to %s: last %d %s, %w", key, s.status, s.body, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *centre) once(ctx context.Context, url, key, body string) (spoken, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/orders", bytes.NewReader([]byte(body)))
	if err != nil {
		return spoken{}, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return spoken{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return spoken{resp.StatusCode, string(b)}, err
}

// rounds sends one order a round by fifty callers at once, and kills a ledger
// meanwhile in two of three.
func (c *centre) rounds(n int) {
	var mu sync.Mutex // of rand
	pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return c.rand.IntN(n) }
	hows := acquirer.Behaviours()
	c.sim.Behave(func(string) acquirer.Behaviour { return hows[pick(len(hows))] })
	sold := map[string]bool{}
	for k := range n {
		key, body := fmt.Sprintf("round-%d", k), `{"tickets":2,"amount":2450,"currency":"EUR"}`
		if k%2 == 1 {
			body = `{"tickets":2,"amount":2450,"currency":"EUR","payment":"card"}`
		}
		if id := c.round(pick, key, body); id != "" {
			sold[id] = true
		}
		if c.t.Failed() {
			return
		}
	}
	c.audit(sold)
	resumed := 0
	for _, l := range c.all {
		b, err := os.ReadFile(l.log.Name())
		must(c.t, err)
		resumed += bytes.Count(b, []byte(`msg="payment resumed"`))
	}
	if c.t.Logf("%d kills, %d payments resumed", c.kills, resumed); c.kills == 0 || resumed == 0 {
		c.t.Error("nothing was killed in between: this proved nothing")
	}
}

func (c *centre) round(pick func(int) int, key, body string) (order string) {
	const callers = 50
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	var replies [callers]spoken
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			var err error
			if replies[i], err = c.send(ctx, i, key, body); err != nil {
				c.t.Error(err)
			}
		})
	}
	if pick(3) > 0 {
		c.kills++
		wg.Go(func() {
			<-time.After(time.Duration(pick(40_000)) * time.Microsecond)
			l := c.all[pick(len(c.all))]
			l.kill()
			if err := l.start(); err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, r := range replies {
		if r != replies[0] {
			c.t.Fatalf("%s: one caller got %d %s, another %d %s", key, replies[0].status, replies[0].body, r.status, r.body)
		}
	}
	if replies[0].status == http.StatusPaymentRequired {
		return ""
	}
	var o ledgerhttp.Sold
	if err := json.Unmarshal([]byte(replies[0].body), &o); err != nil || replies[0].status != 201 || len(o.Tickets) != 2 {
		c.t.Fatalf("%s: %d %s", key, replies[0].status, replies[0].body)
	}
	return o.Order
}

// audit holds the books against what callers were told and what the acquirer did.
func (c *centre) audit(sold map[string]bool) {
	c.t.Helper()
	api, err := ledgerhttp.NewClient(c.all[0].url, c.key, nil)
	must(c.t, err)
	c.eventually("a ledger", func() bool { _, err := api.OrderOf(context.Background(), first(sold)); return err == nil })
	paid := map[string]string{}
	for _, m := range c.sim.Movements() {
		if m.Answer.State == acquirer.Approved {
			paid[m.Answer.ID] = m.Key
		}
	}
	orders := 0
	for short, err := range api.AllOrders(c.t.Context()) {
		must(c.t, err)
		o, err := api.OrderOf(c.t.Context(), short.Order)
		must(c.t, err)
		orders++
		if !sold[o.Order] || len(o.Tickets) != 2 || o.Charge.Amount != 2450 {
			c.t.Errorf("order %+v was told nobody, or is a half one", o)
		}
		if o.Charge.Reference != "" {
			if paid[o.Charge.Reference] != o.Order {
				c.t.Errorf("order %s has the charge of %q", o.Order, paid[o.Charge.Reference])
			}
			delete(paid, o.Charge.Reference)
		}
	}
	if orders != len(sold) || len(paid) != 0 {
		c.t.Errorf("%d orders, %d were told; charges without one: %v", orders, len(sold), paid)
	}
}

func first(set map[string]bool) string {
	for k := range set {
		return k
	}
	return ""
}
