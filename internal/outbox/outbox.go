package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"admitone/internal/office"
	"admitone/internal/webhook"
)

// Endpoint is a system that wants to be told.
type Endpoint struct {
	Name    string // in rows, lists and metrics
	URL     string
	Secrets func() []webhook.Secret // asked for each message, so that they may change
	Types   []string                // what it is told; none: everything
	GiveUp  time.Duration           // after the message was made; 0: Options.GiveUp
}

// Options of an outbox. Books, Now and Log are required.
type Options struct {
	Books     office.Books
	Endpoints []Endpoint
	Now       func() time.Time
	Log       *slog.Logger

	Transport http.RoundTripper // default: of its own, through the proxy of the environment
	Every     time.Duration     // how often due rows are looked for; default 1 s
	Timeout   time.Duration     // of one try, from connecting to the answer's end; default 15 s
	GiveUp    time.Duration     // after the message was made, where the endpoint does not say; default 72 h
	Jitter    func() float64    // from 0 to 1, for the back-off; default random
}

// Outbox delivers messages.
type Outbox struct {
	opt    Options
	client *http.Client

	mu     sync.Mutex
	counts map[string]Count
}

// Count is what became of tries at one endpoint since this process started.
type Count struct {
	Delivered uint64
	Failed    uint64 // tries that are followed by another
	GivenUp   uint64 // messages
}

// The bounds of delivering.
const (
	parallel  = 8                   // messages under way at one endpoint
	leaseTime = time.Minute         // longer than any try
	firstTry  = 5 * time.Second     // the wait after the first failure; each further one is 4 times it
	longest   = 4 * time.Hour       // between tries
	keep      = 30 * 24 * time.Hour // how long a settled message is listed
	pruneSome = parallel
)

// New makes an outbox; it starts nothing.
func New(o Options) (*Outbox, error) {
	if o.Books == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("make outbox: books, clock and log are required")
	}
	o.Every, o.Timeout = cmp.Or(o.Every, time.Second), cmp.Or(o.Timeout, 15*time.Second)
	o.GiveUp = cmp.Or(o.GiveUp, 72*time.Hour)
	if o.Timeout >= leaseTime {
		return nil, fmt.Errorf("make outbox: a try of %s outlasts its lease of %s", o.Timeout, leaseTime)
	}
	if o.Jitter == nil {
		o.Jitter = randomJitter
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: parallel, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		}
	}
	return &Outbox{opt: o, counts: map[string]Count{}, client: &http.Client{
		Transport: o.Transport, Timeout: o.Timeout,
		// A message goes where the configuration says, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// randomJitter is uniform enough for spreading retries.
func randomJitter() float64 {
	b := make([]byte, 1)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return float64(b[0]) / 255
}

// message is the body that receivers get (Standard Webhooks, "Payload structure").
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"` // when it happened, RFC 3339
	Data      any    `json:"data"`
}

// Add writes a message, in tx, for every endpoint that wants its type. at is when
// what it tells happened.
func (o *Outbox) Add(tx office.Tx, kind string, at time.Time, data any) error {
	var id, body = "", []byte(nil)
	for _, e := range o.opt.Endpoints {
		if len(e.Types) > 0 && !slices.Contains(e.Types, kind) {
			continue
		}
		if id == "" {
			var err error
			if body, err = json.Marshal(message{Type: kind, Timestamp: at.UTC().Format(time.RFC3339Nano), Data: data}); err != nil {
				return fmt.Errorf("encode message: %w", err)
			}
			id = newID()
		}
		d := Delivery{ID: id, Endpoint: e.Name, Type: kind, State: Pending, Created: at, Due: at, Body: body}
		if err := put(tx, d); err != nil {
			return fmt.Errorf("store message for %s: %w", e.Name, err)
		}
	}
	return nil
}

func newID() string {
	b := make([]byte, 18)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return "msg_" + base64.RawURLEncoding.EncodeToString(b)
}

// Run delivers until ctx is done. Each endpoint has a loop of its own: one that
// hangs keeps nobody else waiting.
func (o *Outbox) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, e := range o.opt.Endpoints {
		wg.Go(func() { o.serve(ctx, e) })
	}
	wg.Wait()
	<-ctx.Done()
	return nil
}

func (o *Outbox) serve(ctx context.Context, e Endpoint) {
	tick := time.NewTicker(o.opt.Every)
	defer tick.Stop()
	for {
		n, err := o.pass(ctx, e)
		if err != nil && ctx.Err() == nil {
			o.opt.Log.Error("webhooks", "endpoint", e.Name, "err", err)
		}
		if n > 0 && err == nil {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass sends what is due at one endpoint, at most parallel messages, and says how
// many that were.
func (o *Outbox) pass(ctx context.Context, e Endpoint) (int, error) {
	due, err := o.lease(ctx, e.Name)
	if err != nil {
		return 0, fmt.Errorf("find due messages: %w", err)
	}
	errs := make([]error, len(due))
	var wg sync.WaitGroup
	for i, d := range due {
		wg.Go(func() { errs[i] = o.try(ctx, e, d) })
	}
	wg.Wait()
	return len(due), errors.Join(errs...)
}

// Counts gives what became of tries, by endpoint.
func (o *Outbox) Counts() map[string]Count {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]Count{}
	for _, e := range o.opt.Endpoints {
		out[e.Name] = o.counts[e.Name]
	}
	return out
}

func (o *Outbox) count(endpoint string, add Count) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.counts[endpoint]
	o.counts[endpoint] = Count{c.Delivered + add.Delivered, c.Failed + add.Failed, c.GivenUp + add.GivenUp}
}
