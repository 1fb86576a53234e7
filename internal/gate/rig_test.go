package gate_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/gatestore"
	"admitone/internal/kv"
	"admitone/internal/ticket"
)

func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

var (
	ticketKey    = key("tickets")
	programmeKey = key("programme")
)

// fakeWire is a network of which the test says how it stands and what it answers.
type fakeWire struct {
	mu        sync.Mutex
	link      ticket.Link
	answer    func(ticket.Claim) // called in a goroutine of its own
	published []ticket.Record
	asked     []ticket.Claim
	peeks     int
}

func (w *fakeWire) Link() ticket.Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link
}

func (w *fakeWire) Publish(r ticket.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, r)
}

func (w *fakeWire) Ask(c ticket.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, c)
	if w.answer != nil {
		go w.answer(c)
	}
}

func (w *fakeWire) Peek(ticket.Unit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peeks++
}

func (w *fakeWire) Verdict(ticket.Verdict) {}

func (w *fakeWire) claims(s ticket.State) (out []ticket.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.published {
		if r.Claim != nil && r.Claim.State == s {
			out = append(out, *r.Claim)
		}
	}
	return out
}

func (w *fakeWire) events(t ticket.EventType) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.published {
		if r.Event != nil && r.Event.Type == t {
			n++
		}
	}
	return n
}

// fakeTurnstile counts what it is told and lets people through as the test says.
type fakeTurnstile struct {
	mu      sync.Mutex
	events  chan gate.TurnstileEvent
	notSet  bool // not ready
	pulses  int
	opens   int
	idles   int
	signals []gate.Signal
	durable func() // called at each pulse, before anything else
	passage time.Duration
}

func (f *fakeTurnstile) Ready() bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.notSet }

func (f *fakeTurnstile) Pulse(width time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.durable != nil {
		f.durable()
	}
	f.pulses++
	time.AfterFunc(width, func() { f.events <- gate.PulseEnd })
	if f.passage > 0 {
		time.AfterFunc(f.passage, func() { f.events <- gate.PassageIn })
	}
	return nil
}

func (f *fakeTurnstile) Open(time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	return nil
}

func (f *fakeTurnstile) Idle()                              { f.mu.Lock(); f.idles++; f.mu.Unlock() }
func (f *fakeTurnstile) MarkMode(bool)                      {}
func (f *fakeTurnstile) Events() <-chan gate.TurnstileEvent { return f.events }
func (f *fakeTurnstile) Show(s gate.Signal) {
	f.mu.Lock()
	f.signals = append(f.signals, s)
	f.mu.Unlock()
}

// told gives what the turnstile was told so far.
func (f *fakeTurnstile) told() (opens, idles int, signals []gate.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opens, f.idles, slices.Clone(f.signals)
}

func (f *fakeTurnstile) pulsed() int { f.mu.Lock(); defer f.mu.Unlock(); return f.pulses }

type fakeMarks map[ticket.ClaimID]bool

func (m fakeMarks) Fired(id ticket.ClaimID) bool { return m[id] }
func (m fakeMarks) Mark(id ticket.ClaimID) error { m[id] = true; return nil }

// rig is one gate with a real store in memory, in a bubble of virtual time.
type rig struct {
	t     *testing.T
	g     *gate.Gate
	mem   *kv.Mem
	store *gatestore.Store
	wire  *fakeWire
	ts    *fakeTurnstile
	marks fakeMarks
	boot  ticket.BootID
	wall  time.Duration // how far the wall clock is off
	ntp   bool
	bare  bool                              // start with nothing learned
	wrap  func(*gatestore.Store) gate.Store // nil: the store as it is
	o     gate.Options
	born  time.Time

	mu       sync.Mutex
	verdicts []ticket.Verdict
	results  []ticket.Result
	stopped  chan error
	cancel   context.CancelFunc
}

// begin makes a rig whose gate stands in mode normal with a programme, knows what
// it admitted, and trusts its clock.
func begin(t *testing.T, change func(*rig)) *rig {
	r := &rig{
		t: t, mem: kv.NewMem(), wire: &fakeWire{link: ticket.Link{Alone: true}}, marks: fakeMarks{}, boot: ticket.BootID{1},
		ts: &fakeTurnstile{events: make(chan gate.TurnstileEvent, 16), passage: 200 * time.Millisecond}, ntp: true, born: time.Now(),
	}
	r.o = gate.Options{Device: "a", Place: "North", Lanes: []gate.LaneOptions{{Name: "1", Sensor: true, Turnstile: r.ts}}}
	if change != nil {
		change(r)
	}
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.store, err = gatestore.New(r.t.Context(), r.mem, gatestore.Options{Device: "a"}); err != nil {
		r.t.Fatal(err)
	}
	o := r.o
	o.ProgrammeKey = programmeKey.Public().(ed25519.PublicKey)
	o.Log = slog.New(slog.DiscardHandler)
	o.Clock = gate.NewClock(gate.ClockOptions{
		Wall: func() time.Time { return time.Now().Add(r.wall) },
		Up:   func() time.Duration { return time.Since(r.born) + time.Minute }, Boot: r.boot,
		Synced: func() (bool, time.Duration) { return r.ntp, 10 * time.Millisecond },
	})
	o.Verdict = func(v ticket.Verdict) { r.mu.Lock(); r.verdicts = append(r.verdicts, v); r.mu.Unlock() }
	o.Result = func(v ticket.Result) { r.mu.Lock(); r.results = append(r.results, v); r.mu.Unlock() }
	var store gate.Store = r.store
	if r.wrap != nil {
		store = r.wrap(r.store)
	}
	if r.g, err = gate.New(store, r.marks, o); err != nil {
		r.t.Fatal(err)
	}
	r.g.Connect(r.wire)
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.stopped = cancel, make(chan error, 1)
	go func() { r.stopped <- r.g.Run(ctx) }()
	synctest.Wait()
	if r.store.Fresh() && !r.bare {
		r.learn(r.programme(1))
		r.g.CaughtUp()
		synctest.Wait()
	}
}

func newMem() *kv.Mem { return kv.NewMem() }

// stop ends the gate and says what Run returned.
func (r *rig) stop() error {
	r.cancel()
	return <-r.stopped
}

// crash keeps only what is durable, and starts again.
func (r *rig) crash() {
	r.cancel()
	<-r.stopped
	r.mem = r.mem.Crash()
	r.start()
}

func (r *rig) programme(version uint64) ticket.Record {
	signer := ticket.NewSigner(ticketKey)
	now := time.Now()
	day := func(id string, from time.Time) ticket.ProgrammeEvent {
		return ticket.ProgrammeEvent{
			ID: id, Open: from, Close: from.Add(20 * time.Hour), Forget: from.Add(40 * time.Hour), Formats: []string{"a1"},
			Keys: []ticket.ProgrammeKey{{ID: signer.KeyID(), Public: hexOf(signer.Public())}},
		}
	}
	p := ticket.Programme{Version: version, Events: []ticket.ProgrammeEvent{
		day("e", now.Add(-time.Hour)), day("f", now.Add(23*time.Hour)),
	}}
	signed, err := ticket.SignProgramme(p, programmeKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return ticket.Record{Source: "ledger/1", Run: 7, Pos: version, Feed: &ticket.Feed{
		Subject: ticket.ProgrammeSubject, Version: version, At: 1, Programme: &ticket.FeedProgramme{Signed: signed}}}
}

func (r *rig) learn(recs ...ticket.Record) {
	r.t.Helper()
	var as []ticket.Arrival
	for _, rec := range recs {
		raw, err := rec.Encode()
		if err != nil {
			r.t.Fatal(err)
		}
		as = append(as, ticket.Arrival{Stream: rec.Stream(), Pos: rec.Pos, Raw: raw, Record: &rec})
	}
	if err := r.g.Learn(r.t.Context(), true, as); err != nil {
		r.t.Error(err)
	}
	synctest.Wait()
}

func (r *rig) mint(n byte, change ...func(*ticket.Ticket)) string {
	r.t.Helper()
	tk := ticket.Ticket{Format: ticket.FormatA1, ID: ticket.ID{n}, Event: "e"}
	for _, c := range change {
		c(&tk)
	}
	text, err := ticket.NewSigner(ticketKey).Mint(tk)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// line shows a ticket once, as a scanner module does.
func (r *rig) line(text string) {
	r.g.Look(0, gate.Look{Text: text, At: time.Now(), Line: true})
	synctest.Wait()
}

// hold shows tickets to the camera in turn, ten frames a second.
func (r *rig) hold(d time.Duration, texts ...string) {
	for i := 0; time.Duration(i)*100*time.Millisecond < d; i++ {
		r.g.Look(0, gate.Look{Text: texts[i%len(texts)], At: time.Now()})
		r.wait(100 * time.Millisecond)
	}
}

func (r *rig) wait(d time.Duration) {
	time.Sleep(d) // virtual: the bubble's clock
	synctest.Wait()
}

func (r *rig) reasons() (out []ticket.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.verdicts {
		out = append(out, v.Reason)
	}
	return out
}

func (r *rig) last() ticket.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.verdicts) == 0 {
		return ticket.Verdict{}
	}
	return r.verdicts[len(r.verdicts)-1]
}

func (r *rig) ends() (out []ticket.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.results {
		out = append(out, v.Result)
	}
	return out
}

func (r *rig) want(what string, got []ticket.Reason, want ...ticket.Reason) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Fatalf("%s: verdicts %v, want %v", what, got, want)
	}
}

func (r *rig) wantEnds(want ...ticket.State) {
	r.t.Helper()
	if got := r.ends(); !slices.Equal(got, want) {
		r.t.Fatalf("results %v, want %v", got, want)
	}
}

// inBubble runs a test in virtual time with a rig that is stopped at its end.
func inBubble(t *testing.T, change func(*rig), f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, change)
		f(t, r)
		if err := r.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// peer is another gate's claim on a unit.
func peer(n byte, pos uint64, rev uint32, s ticket.State, at time.Time) ticket.Record {
	id := ticket.ClaimID{Gate: "b", Run: 5, Pos: 1}
	return ticket.Record{Source: "b", Run: 5, Pos: pos, Claim: &ticket.Claim{
		ID: id, Rev: rev, Unit: ticket.Unit{Event: "e", Format: ticket.FormatA1, Ticket: ticket.ID{n}}, State: s,
		Claimed: ticket.Stamp{Wall: at.UnixNano()}, Place: "South", Lease: 25 * time.Second}}
}
