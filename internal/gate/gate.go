package gate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/ticket"
)

// Store is what the loop needs of the gate's store. Each method is one
// transaction; a write returns after its commit.
type Store interface {
	Run() ticket.Run
	Fresh() bool
	Saved() (ticket.Saved, error)
	Claim(ctx context.Context, tmpl ticket.Claim, floor *ticket.Floor, judge ticket.Judge) (ticket.Made, error)
	Revise(ctx context.Context, id ticket.ClaimID, change func(*ticket.Claim) bool) (ticket.Record, bool, error)
	Correct(ctx context.Context, boot ticket.BootID, limit int, change func(*ticket.Stamp)) ([]ticket.Record, error)
	Find(id ticket.ClaimID) (ticket.Claim, bool, error)
	Record(ctx context.Context, e ticket.Event, mode ticket.GateMode) (ticket.Record, error)
	View(u ticket.Unit) (ticket.View, error)
	Learn(ctx context.Context, arrived []ticket.Arrival) (ticket.Learned, error)
	SetFloor(ctx context.Context, f ticket.Floor) error
	SetLastEvent(ctx context.Context, event string) error
	SetCatchingUp(ctx context.Context, on bool) error
	CodeChunks(event string) ([]ticket.FeedCodes, error)
	Prune(ctx context.Context, event string, limit int) (more bool, err error)
}

// Wire is what the loop needs of the network. No method blocks.
type Wire interface {
	Link() ticket.Link
	Publish(ticket.Record)
	Ask(ticket.Claim)       // the answer comes through Answered
	Peek(ticket.Unit)       // what it brings comes through Learn
	Verdict(ticket.Verdict) // for the operators' page only
}

// Marks is the list of claims that fired in this boot.
type Marks interface {
	Fired(ticket.ClaimID) bool
	Mark(ticket.ClaimID) error
}

// Policy says what happens where something cannot be known.
type Policy string

// The policies.
const (
	PolicyAdmit  Policy = "admit"
	PolicyRefuse Policy = "refuse"
	PolicyWait   Policy = "wait" // amnesia only
)

// Options of a gate. Times are as in spec section 2; zero takes the default.
type Options struct {
	Device       ticket.Source
	Place        string
	Lanes        []LaneOptions
	ProgrammeKey ed25519.PublicKey // signs programmes
	Demo         bool              // accept keys marked demo

	LedgerPatience time.Duration // 400 ms
	FireWithin     time.Duration // 10 s
	Rearm          time.Duration // 1.5 s
	LineLook       time.Duration // 10 s: how long a look of a line reader counts
	AmnesiaWait    time.Duration // 60 s
	Offline        Policy        // admit
	UntrustedClock Policy        // admit
	Amnesia        Policy        // admit
	StoreLost      string        // why the store is a new one, where another was set aside; "": it was not

	Clock   *Clock
	Log     *slog.Logger
	Verdict func(ticket.Verdict) // called by the loop for each change; must not block
	Result  func(ticket.Result)  // called by the loop for each claim's end; must not block
}

// LaneOptions describe one turnstile.
type LaneOptions struct {
	Name           string
	Turnstile      Turnstile
	Sensor         bool          // a passage input is wired
	Hold           bool          // hold the relay until passage or timeout rather than pulse it
	Pulse          time.Duration // 500 ms
	HoldAfter      time.Duration // how long a held relay stays on after the passage
	MaxOn          time.Duration // the turnstile's own limit, renewed while free
	PassageTimeout time.Duration // 10 s
	LatePassage    time.Duration // 30 s
	Keep           bool          // on_no_passage = keep
	Credits        int           // 1
}

// Gate is the loop.
type Gate struct {
	o     Options
	store Store
	wire  Wire
	marks Marks
	box   *mailbox
	lanes []*lane

	// Owned by the loop's goroutine.
	mode       ticket.GateMode
	testUntil  time.Time
	fault      string
	amnesia    bool
	amnesiaEnd time.Time
	regained   []ticket.Claim // own claims that came back pending while catching up
	programme  *ticket.Programme
	verifier   *ticket.Verifier
	lastEvent  string
	closed     map[string]bool
	stop       error
	counts     Counts

	arrived arrivals
	learned chan struct{} // kicks correction and pruning
}

// Counts are what the gate did since it started.
type Counts struct {
	Admitted  int `json:"admitted"`
	Refused   int `json:"refused"`
	Waited    int `json:"waited"`
	Annulled  int `json:"annulled"`
	Tailgates int `json:"tailgates"`
}

// New makes a gate that starts with Run. The wire may be given later through
// Connect, before Run.
func New(store Store, marks Marks, o Options) (*Gate, error) {
	defaults(&o)
	if len(o.Lanes) == 0 || o.Clock == nil || o.Log == nil || o.Place == "" || o.Device == "" {
		return nil, fmt.Errorf("make gate: device, place, clock, log and at least one lane are needed")
	}
	g := &Gate{o: o, store: store, marks: marks, box: newMailbox(), closed: map[string]bool{}, learned: make(chan struct{}, 1)}
	g.arrived.known = map[ticket.ClaimID]time.Time{}
	g.arrived.byUnit = map[ticket.Unit][]ticket.Claim{}
	g.arrived.answers = map[ticket.ClaimID]ticket.Answered{}
	for _, lo := range o.Lanes {
		laneDefaults(&lo)
		g.lanes = append(g.lanes, &lane{LaneOptions: lo, shown: map[shownKey]*presentation{}})
	}
	return g, nil
}

func defaults(o *Options) {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.LedgerPatience, 400*time.Millisecond)
	set(&o.FireWithin, 10*time.Second)
	set(&o.Rearm, 1500*time.Millisecond)
	set(&o.LineLook, 10*time.Second)
	set(&o.AmnesiaWait, time.Minute)
	for _, p := range []*Policy{&o.Offline, &o.UntrustedClock, &o.Amnesia} {
		if *p == "" {
			*p = PolicyAdmit
		}
	}
	if o.Verdict == nil {
		o.Verdict = func(ticket.Verdict) {}
	}
	if o.Result == nil {
		o.Result = func(ticket.Result) {}
	}
}

func laneDefaults(o *LaneOptions) {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Pulse, 500*time.Millisecond)
	set(&o.PassageTimeout, 10*time.Second)
	set(&o.LatePassage, 30*time.Second)
	set(&o.MaxOn, 15*time.Second)
	o.Credits = max(o.Credits, 1)
	if o.Name == "" {
		o.Name = "1"
	}
}

// Connect gives the gate its wire.
func (g *Gate) Connect(w Wire) { g.wire = w }

// lease is how long after it became known a pending claim of this lane is overdue.
func (g *Gate) lease(l *lane) time.Duration {
	return l.PassageTimeout + g.o.FireWithin + 5*time.Second
}

// Run settles what an earlier process left open, then decides until ctx ends. It
// returns an error only where the store can no longer be trusted; the process
// must then end and start anew.
func (g *Gate) Run(ctx context.Context) error {
	if err := g.start(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	outer := ctx
	eg, ctx := errgroup.WithContext(ctx)
	for _, l := range g.lanes {
		eg.Go(func() error { return g.forward(ctx, l) })
	}
	eg.Go(func() error { return g.keepUp(ctx) })
	eg.Go(func() error {
		err := g.loop(ctx)
		g.quiet()
		return err
	})
	return unlessEnded(outer, eg.Wait())
}

// unlessEnded gives nil for an error that only says that ctx ended: the store did
// not begin what was asked of it, and nothing is unknown.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// tick is how often the loop looks at its deadlines: fine enough for the amber's
// half second and the patience of a decision, which sets a timer of its own.
const tick = 50 * time.Millisecond

func (g *Gate) loop(ctx context.Context) error {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for g.stop == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-g.box.ready:
			for _, f := range g.box.take() {
				f(ctx)
				if g.stop != nil {
					return g.stop
				}
			}
		case <-timer.C:
		}
		g.due(ctx)
		timer.Reset(g.nextDue())
	}
	return g.stop
}

// mailbox hands functions to the loop without ever blocking the sender. What is
// sent is bounded by its senders: readers, one turnstile a lane, the wire, people.
type mailbox struct {
	mu    sync.Mutex
	queue []func(context.Context)
	ready chan struct{}
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (m *mailbox) put(f func(context.Context)) {
	m.mu.Lock()
	m.queue = append(m.queue, f)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() []func(context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue
	m.queue = nil
	return q
}

// call runs f in the loop and waits for it.
func (g *Gate) call(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	g.box.put(func(c context.Context) { done <- f(c) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail latches that the store could not be written: nothing opens any more and
// the process ends.
func (g *Gate) fail(err error) {
	if g.stop == nil {
		g.stop = err
		g.fault = "the store cannot be written"
	}
}

func (g *Gate) quiet() {
	for _, l := range g.lanes {
		l.Turnstile.Idle()
	}
}
