package simtest

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/gate"
	"admitone/internal/ticket"
	"admitone/internal/wire/wiretest"
)

// today and tomorrow are the events of the programme that every world begins with.
const (
	today    = "today"
	tomorrow = "tomorrow"
)

// setup says what a world consists of.
type setup struct {
	gates   int
	ledgers int                          // processes on one store; 0: 1
	lanes   int                          // of each gate; 0: one
	sites   []string                     // where gates stand; "" is the hub
	link    wiretest.Link                // of every node, to begin with
	disk    time.Duration                // the most that a commit takes; 0: 2 ms
	day     time.Duration                // from one event's opening to the next one's; 0: 24 h
	options func(i int, o *gate.Options) // changes a gate's
}

// World is one simulated venue with its ledger.
type World struct {
	t      *testing.T
	setup  setup
	seed   uint64
	dice   *dice // for the test's own goroutine
	net    *wiretest.Net
	ledger *Ledger
	gates  []*Gate
	notes  notes
	minted []Ticket
	signer ticket.Signer
	born   time.Time

	crowded  bool                      // several tickets wait at one lane: amber is not one person's
	released map[ticket.ClaimID]uint32 // by a supervisor, at this rev
}

// Ticket is a ticket that was sold.
type Ticket struct {
	Text string
	Unit ticket.Unit
}

// dice are a seeded source of chance that goroutines may share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

// newDice gives the dice of one user, so that what one draws changes nothing for
// another.
func newDice(seed, user uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, user))} }

// The users: the schedule, the ledger, and each gate.
const schedule, center, firstGate = 2, 3, 10

// N gives 0 to n-1.
func (d *dice) N(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// Span gives a time from 0 to most.
func (d *dice) Span(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most) + 1))
}

// Hit is true with the probability of one in n.
func (d *dice) Hit(n int) bool { return d.N(n) == 0 }

func (d *dice) run() ticket.Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return ticket.Run(d.r.Uint64() | 1)
}

func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// simulate runs f in a world in virtual time. Everything is up, and every gate has
// the programme and knows that it has forgotten nothing, when f begins.
func simulate(t *testing.T, seed uint64, s setup, f func(w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, s)
		defer w.end()
		w.ready()
		f(w)
	})
}

func newWorld(t *testing.T, seed uint64, s setup) *World {
	s.lanes = max(s.lanes, 1)
	if s.disk == 0 {
		s.disk = 2 * time.Millisecond
	}
	if s.day == 0 {
		s.day = 24 * time.Hour
	}
	w := &World{t: t, setup: s, released: map[ticket.ClaimID]uint32{}, seed: seed, dice: newDice(seed, schedule), net: wiretest.NewNet(seed), born: time.Now(), signer: ticket.NewSigner(key("tickets"))}
	w.notes.begin(w)
	w.ledger = newLedger(w)
	w.ledger.Up()
	w.ledger.UpTwin()
	w.PushProgramme(1)
	for i := range s.gates {
		site := ""
		if i < len(s.sites) {
			site = s.sites[i]
		}
		w.AddGate(site)
	}
	return w
}

// AddGate puts up another gate with a fresh store.
func (w *World) AddGate(site string) *Gate {
	g := newGate(w, len(w.gates), site)
	w.gates = append(w.gates, g)
	g.Up()
	return g
}

// end stops everything.
func (w *World) end() {
	for _, g := range w.gates {
		g.Kill()
	}
	w.ledger.KillTwin()
	w.ledger.Kill()
	w.net.Close()
	time.Sleep(time.Second) // people who held tickets up go away
}

// Wait lets time pass.
func (w *World) Wait(d time.Duration) {
	time.Sleep(d) // virtual: the bubble's clock
	synctest.Wait()
}

// ready waits until every gate has the programme, knows what it admitted, and has
// the ledger's answers.
func (w *World) ready() {
	w.t.Helper()
	for _, g := range w.gates {
		g.WaitReady(time.Minute)
		for end := time.Now().Add(time.Minute); g.Status().Link != "up"; w.Wait(50 * time.Millisecond) {
			if time.Now().After(end) {
				w.t.Fatalf("the link of %s is %s", g.id, g.Status().Link)
			}
		}
	}
}

// Errorf reports a violation, with what is needed to find it again.
func (w *World) Errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("after %s: %s", time.Since(w.born).Round(time.Microsecond), fmt.Sprintf(format, args...))
}

// Programme is what is on: today, open since an hour, and tomorrow, which opens a
// day later. Each closes half an hour before the next day begins.
func (w *World) Programme() ticket.Programme {
	day := func(id string, from time.Time) ticket.ProgrammeEvent {
		return ticket.ProgrammeEvent{
			ID: id, Open: from, Close: from.Add(w.setup.day - 30*time.Minute), Forget: from.Add(1000 * time.Hour), Formats: []string{"a1"},
			Keys: []ticket.ProgrammeKey{{ID: w.signer.KeyID(), Public: hex.EncodeToString(w.signer.Public())}},
		}
	}
	from := w.born.Add(-time.Hour).UTC()
	return ticket.Programme{Events: []ticket.ProgrammeEvent{day(today, from), day(tomorrow, from.Add(w.setup.day))}}
}

// PushProgramme has the ledger sign and send the programme under a version.
func (w *World) PushProgramme(version uint64) {
	w.t.Helper()
	p := w.Programme()
	p.Version = version
	if _, err := w.ledger.PushProgramme(context.Background(), p); err != nil {
		w.t.Fatal(err)
	}
}

// Mint sells a ticket for today.
func (w *World) Mint() Ticket { return w.MintFor(today) }

// MintFor sells a ticket of an event.
func (w *World) MintFor(event string) Ticket {
	w.t.Helper()
	tk := ticket.Ticket{Format: ticket.FormatA1, Event: event}
	binary.BigEndian.PutUint64(tk.ID[8:], uint64(len(w.minted)+1))
	text, err := w.signer.Mint(tk)
	if err != nil {
		w.t.Fatal(err)
	}
	w.minted = append(w.minted, Ticket{Text: text, Unit: tk.Unit()})
	return w.minted[len(w.minted)-1]
}

// Heal puts everything up and right again, and gives it time to become level.
func (w *World) Heal() {
	w.t.Helper()
	for _, g := range w.gates {
		w.net.SetUplink(g.site, wiretest.Link{})
	}
	w.ledger.Heal()
	w.ledger.Up()
	w.ledger.UpTwin()
	for _, g := range w.gates {
		g.Heal()
		g.Clock(0, true)
		g.Up()
	}
	w.Wait(levelWithin)
	w.ready()
}

// levelWithin is how long after a heal everything must be level: two hellos, a
// fetch that was put off, and the end of every claim that was open.
const levelWithin = 100 * time.Second

// logger gives a log that is thrown away, or printed where SIM_LOG is set.
func (w *World) logger(node string) *slog.Logger {
	if os.Getenv("SIM_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", node)
}
