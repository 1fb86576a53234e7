package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledgerstore"
	"admitone/internal/office"
	"admitone/internal/webhook"
)

// seenRequest is what a receiver got.
type seenRequest struct {
	id, body string
	message  webhook.Message
}

// receiver is a real HTTP server that answers as a test tells it to, and keeps
// what it got. Every request must be well signed.
type receiver struct {
	*httptest.Server
	t      *testing.T
	secret webhook.Secret
	now    func() time.Time

	mu     sync.Mutex
	got    []seenRequest
	answer http.HandlerFunc // nil: 204
}

func testSecret(t *testing.T, n byte) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newReceiver(t *testing.T, now func() time.Time) *receiver {
	t.Helper()
	r := &receiver{t: t, secret: testSecret(t, 1), now: now}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m, verr := webhook.Verify(r.Header, body, []webhook.Secret{v.secret}, v.now())
	if err := errors.Join(err, verr); err != nil || r.Header.Get("Content-Type") != "application/json" {
		v.t.Errorf("a receiver got what it cannot take: %v", err)
	}
	v.mu.Lock()
	v.got = append(v.got, seenRequest{m.ID, string(body), m})
	answer := v.answer
	v.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, r)
}

func (v *receiver) set(answer http.HandlerFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = answer
}

func (v *receiver) all() []seenRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.got)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// bench is an outbox on a store in memory, with a clock that the test sets.
type bench struct {
	*Outbox
	t     *testing.T
	books office.Books
	log   *bytes.Buffer

	mu  sync.Mutex
	now time.Time
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// twice runs what it is given two times, as a database that retries does.
type twice struct{ office.Books }

func (b twice) Update(ctx context.Context, fn func(office.Tx) error) error {
	undo := errors.New("undo")
	err := b.Books.Update(ctx, func(tx office.Tx) error { return errors.Join(fn(tx), undo) })
	if !errors.Is(err, undo) {
		return err
	}
	return b.Books.Update(ctx, fn)
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Unix(1_800_000_000, 0).UTC(), log: &bytes.Buffer{}}
	b.books = twice{ledgerstore.New(kv.NewMem()).Books()}
	b.Outbox = b.another(change)
	return b
}

// another is a second process on the same store.
func (b *bench) another(change func(*Options)) *Outbox {
	b.t.Helper()
	o := Options{
		Books: b.books, Now: b.clock, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Jitter: func() float64 { return 0.5 }, // none
	}
	change(&o)
	out, err := New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) to(v *receiver) Endpoint {
	return Endpoint{Name: "desk", URL: v.URL, Secrets: func() []webhook.Secret { return []webhook.Secret{testSecret(b.t, 2), v.secret} }}
}

func (b *bench) tell(kind string, data any) {
	b.t.Helper()
	if err := b.books.Update(b.t.Context(), func(tx office.Tx) error { return b.Add(tx, kind, b.clock(), data) }); err != nil {
		b.t.Fatal(err)
	}
}

// step is one pass over the first endpoint; it gives how many messages were tried.
func (b *bench) step() int {
	b.t.Helper()
	n, err := b.Outbox.pass(b.t.Context(), b.opt.Endpoints[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// only gives the one delivery there is.
func (b *bench) only() Delivery {
	b.t.Helper()
	list, _, err := b.Deliveries(b.t.Context(), "", "", "", 10)
	if err != nil || len(list) != 1 {
		b.t.Fatalf("deliveries %+v, %v, want one", list, err)
	}
	return list[0]
}

func TestDeliveredOnce(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v), {Name: "other", URL: v.URL, Types: []string{"alarm.raised"}, Secrets: b.to(v).Secrets}}
	b.tell("conflict.announced", map[string]string{"id": "c1"})
	if n := b.step(); n != 1 {
		t.Fatalf("%d messages, want one", n)
	}
	for range 3 {
		b.pass(time.Hour)
		if n := b.step(); n != 0 {
			t.Fatalf("tried again after it was delivered: %d", n)
		}
	}
	got := v.all()
	want := `{"type":"conflict.announced","timestamp":"2027-01-15T08:00:00Z","data":{"id":"c1"}}`
	if len(got) != 1 || got[0].body != want || !strings.HasPrefix(got[0].id, "msg_") {
		t.Errorf("got %+v, want one with %s", got, want)
	}
	if d := b.only(); d.State != Delivered || d.Attempts != 1 || d.Status != 204 || d.Error != "" || d.Body != nil {
		t.Errorf("listed as %+v", d)
	}
	if c := b.Counts()["desk"]; c != (Count{Delivered: 1}) {
		t.Errorf("counted %+v", c)
	}
}

// TestAMessageIsPartOfItsTransaction: what was undone is not told.
func TestAMessageIsPartOfItsTransaction(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v)}
	undo := errors.New("undo")
	err := b.books.Update(t.Context(), func(tx office.Tx) error { return errors.Join(b.Add(tx, "x", b.clock(), 1), undo) })
	if !errors.Is(err, undo) || b.step() != 0 || len(v.all()) != 0 {
		t.Errorf("update: %v; %d requests, want none", err, len(v.all()))
	}
}

// TestRetriedUntilItComesBack: a receiver that fails in every way there is, then
// works. Id and bytes stay, the time of the signature does not, and the waits grow.
func TestRetriedUntilItComesBack(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Timeout = 2 * time.Second })
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v)}
	b.tell("alarm.raised", 1)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the receiver's own cleanup, which waits for its requests
	elsewhere := newReceiver(t, b.clock)
	faults := []struct {
		answer http.HandlerFunc
		status int
		text   string
	}{
		{status(500), 500, "answered 500"},
		{status(404), 404, "answered 404"},
		{func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, 0, "EOF"},
		{func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}, 0, "Timeout"},
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 307, "answered 307"},
		{status(503), 503, "answered 503"},
	}
	wait := firstTry
	for i, f := range faults {
		v.set(f.answer)
		if n := b.step(); n != 1 {
			t.Fatalf("fault %d: %d tries, want one", i, n)
		}
		d := b.only()
		if d.State != Pending || d.Attempts != i+1 || d.Status != f.status || !strings.Contains(d.Error, f.text) || strings.Contains(d.Error, v.URL) {
			t.Errorf("fault %d: %+v", i, d)
		}
		if got := d.Due.Sub(b.clock()); got != min(wait, longest) {
			t.Errorf("fault %d: next try in %s, want %s", i, got, wait)
		}
		b.pass(d.Due.Sub(b.clock()) - time.Second)
		if n := b.step(); n != 0 {
			t.Errorf("fault %d: tried before its time", i)
		}
		b.pass(time.Second)
		wait *= 4
	}
	v.set(nil)
	if n := b.step(); n != 1 || b.only().State != Delivered {
		t.Errorf("after it came back: %+v", b.only())
	}
	got := v.all()
	for i := range got {
		if got[i].id != got[0].id || got[i].body != got[0].body || i > 0 && !got[i].message.At.After(got[i-1].message.At) {
			t.Errorf("try %d is %+v, the first was %+v", i, got[i], got[0])
		}
	}
	if len(got) != len(faults)+1 || len(elsewhere.all()) != 0 {
		t.Errorf("%d requests, %d of them elsewhere", len(got), len(elsewhere.all()))
	}
	if c := b.Counts()["desk"]; c != (Count{Delivered: 1, Failed: uint64(len(faults))}) {
		t.Errorf("counted %+v", c)
	}
}

// TestBackOffSpreads: the waits are exponential, spread by a quarter each way, and
// end at the longest.
func TestBackOffSpreads(t *testing.T) {
	for jitter, share := range map[float64]float64{0: 0.75, 0.5: 1, 1: 1.25} {
		b := newBench(t, func(o *Options) { o.Jitter = func() float64 { return jitter } })
		full := float64(firstTry)
		for n := 1; n < 40; n++ {
			if got := b.backOff(n); got != time.Duration(min(full, float64(longest))*share) {
				t.Errorf("after %d tries %s, want %v of %s", n, got, share, time.Duration(full))
			}
			full *= 4
		}
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v)}
	for text, want := range map[string]time.Duration{"600": 10 * time.Minute, "1": firstTry, "999999": longest, "soon": firstTry} {
		b.tell("x", 1)
		v.set(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(429)
		})
		b.step()
		if got := b.only().Due.Sub(b.clock()); got != want {
			t.Errorf("Retry-After %s: next in %s, want %s", text, got, want)
		}
		v.set(nil)
		b.pass(longest)
		b.step()
		b.pass(keep + time.Second)
		b.step() // forgets it
	}
}

func TestGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		code, tries int
		giveUp      time.Duration
	}{"gone": {410, 1, 0}, "down for days": {500, 24, 0}, "down for an hour": {500, 6, time.Hour}} {
		b := newBench(t, func(*Options) {})
		v := newReceiver(t, b.clock)
		b.opt.Endpoints = []Endpoint{b.to(v)}
		b.opt.Endpoints[0].GiveUp = c.giveUp
		b.tell("conflict.announced", 1)
		v.set(status(c.code))
		began := b.clock()
		for b.only().State == Pending {
			b.step()
			b.pass(max(0, b.only().Due.Sub(b.clock())))
		}
		d := b.only()
		if d.State != GivenUp || d.Attempts != c.tries || d.Status != c.code || b.clock().Sub(began) > cmp.Or(c.giveUp, b.opt.GiveUp) {
			t.Errorf("%s: %+v after %s, want given up after %d tries within %s", name, d, b.clock().Sub(began), c.tries, b.opt.GiveUp)
		}
		if !strings.Contains(b.log.String(), `level=ERROR msg="webhook given up"`) || b.Counts()["desk"].GivenUp != 1 {
			t.Errorf("%s: nobody was told: %+v, %s", name, b.Counts(), b.log)
		}
		v.set(nil)
		var again Delivery
		err := b.books.Update(t.Context(), func(tx office.Tx) (err error) { again, err = b.Retry(tx, "desk", d.ID); return err })
		if err != nil || again.State != Pending || b.step() != 1 || b.only().State != Delivered {
			t.Errorf("%s: taken up again: %+v, %v, then %+v", name, again, err, b.only())
		}
		got := v.all()
		if last := got[len(got)-1]; last.id != got[0].id {
			t.Errorf("%s: the id changed", name)
		}
		err = b.books.Update(t.Context(), func(tx office.Tx) (err error) { _, err = b.Retry(tx, "desk", d.ID); return err })
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: a delivered one was taken up again: %v", name, err)
		}
	}
}

// TestAHangingEndpointKeepsNobodyWaiting: with one receiver that never answers, the
// other gets what it should.
func TestAHangingEndpointKeepsNobodyWaiting(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Every = time.Millisecond })
	hangs, works := newReceiver(t, b.clock), newReceiver(t, b.clock)
	release, came := make(chan struct{}), make(chan struct{}, 64)
	hangs.set(func(http.ResponseWriter, *http.Request) { <-release })
	works.set(func(http.ResponseWriter, *http.Request) { came <- struct{}{} })
	one, two := b.to(hangs), b.to(works)
	one.Name = "hangs"
	b.opt.Endpoints = []Endpoint{one, two}
	for range 3 * parallel {
		b.tell("x", 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	for range 3 * parallel {
		<-came
	}
	close(release)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	if n := len(hangs.all()); n > parallel {
		t.Errorf("%d requests at once at one endpoint, want at most %d", n, parallel)
	}
}

// TestTwoProcessesSendOnce: two outboxes on one store share the work.
func TestTwoProcessesSendOnce(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v)}
	const messages = 100
	for i := range messages {
		b.tell("x", i)
	}
	other := b.another(func(o *Options) { o.Endpoints = b.opt.Endpoints })
	var wg sync.WaitGroup
	for _, o := range []*Outbox{b.Outbox, other} {
		wg.Go(func() {
			for {
				n, err := o.pass(t.Context(), o.opt.Endpoints[0])
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	ids := map[string]int{}
	for _, r := range v.all() {
		ids[r.id]++
	}
	if len(ids) != messages || len(v.all()) != messages {
		t.Errorf("%d messages in %d requests, want %d once each", len(ids), len(v.all()), messages)
	}
}

// TestALeaseEnds: what a process took and never sent is sent by another when the
// lease is over, and what the first then says changes nothing.
func TestALeaseEnds(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	b.opt.Endpoints = []Endpoint{b.to(v)}
	b.tell("x", 1)
	died, err := b.lease(t.Context(), "desk")
	if err != nil || len(died) != 1 {
		t.Fatalf("lease: %+v, %v", died, err)
	}
	other := &bench{Outbox: b.another(func(o *Options) { o.Endpoints = b.opt.Endpoints }), t: t}
	b.pass(leaseTime - time.Second)
	if n := other.step(); n != 0 {
		t.Error("a leased message was sent by another")
	}
	b.pass(time.Second)
	v.set(status(500))
	if n := other.step(); n != 1 {
		t.Error("nobody took the message over")
	}
	late := died[0]
	late.State = Delivered
	if err := b.settle(t.Context(), late); err != nil || b.only().State != Pending || b.only().Attempts != 2 {
		t.Errorf("the late result of an earlier holder counted: %+v, %v", b.only(), err)
	}
}

func TestPagesOfDeliveries(t *testing.T) {
	b := newBench(t, func(*Options) {})
	v := newReceiver(t, b.clock)
	second := b.to(v)
	second.Name = "archive"
	b.opt.Endpoints = []Endpoint{b.to(v), second}
	for i := range 5 {
		b.tell("x", i)
		if i == 2 {
			b.step() // the first three are delivered to the first endpoint
		}
		b.pass(time.Second)
	}
	var got []string
	for after := ""; ; {
		page, next, err := b.Deliveries(t.Context(), "", "", after, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			got = append(got, string(d.State)+"/"+d.Endpoint)
		}
		if len(page) == 0 {
			if next != after {
				t.Errorf("of no more the cursor is %q, want %q", next, after)
			}
			break
		}
		after = next
	}
	want := slices.Concat(slices.Repeat([]string{"pending/desk"}, 2), slices.Repeat([]string{"pending/archive"}, 5), slices.Repeat([]string{"delivered/desk"}, 3))
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if page, _, err := b.Deliveries(t.Context(), Delivered, "desk", "", 9); err != nil || len(page) != 3 {
		t.Errorf("delivered at one: %d, %v", len(page), err)
	}
	for _, bad := range []string{"x", "pending/desk", "pending/nobody~00", "pending/desk~zz"} {
		if _, _, err := b.Deliveries(t.Context(), "", "", bad, 9); !errors.Is(err, office.ErrCursor) {
			t.Errorf("cursor %q: %v, want ErrCursor", bad, err)
		}
	}
	if b, err := json.Marshal(Delivery{}); err != nil || strings.Contains(string(b), "body") {
		t.Errorf("an absent body is written: %s, %v", b, err)
	}
}

func TestNewChecks(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("made of nothing")
	}
	b := newBench(t, func(*Options) {})
	if _, err := New(Options{Books: b.books, Now: b.clock, Log: b.opt.Log, Timeout: leaseTime}); err == nil {
		t.Error("a try may outlast its lease")
	}
	if j := b.another(func(o *Options) { o.Jitter = nil }).opt.Jitter(); j < 0 || j > 1 {
		t.Errorf("jitter %v", j)
	}
}
