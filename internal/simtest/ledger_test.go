package simtest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing/synctest"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/wiretest"
)

const process = "main"

// Ledger is the centre: its disk outlives its process.
type Ledger struct {
	*ledger.Ledger // of the process that runs, or ran last
	w              *World
	dice           *dice
	mem            *kv.Mem
	link           wiretest.Link
	conn           *wiretest.Conn
	up             bool
	restored       bool // put back to an earlier state at least once
	stop           context.CancelFunc
	ended          chan error
	twin           *twin // nil: none runs

	mu        sync.Mutex
	announced map[string]int                   // lines that announce a conflict, by its id
	uploads   map[ticket.Stream]map[uint64]int // how often each position was uploaded
	answers   map[ticket.ClaimID]ticket.Answer // that left, since the store was last put back
	hold      func(from ticket.Source) bool    // asks that are decided, and whose answers are lost
	deaf      func(from ticket.Source) bool    // asks that never come in
	terse     bool                             // answers carry no records
}

func newLedger(w *World) *Ledger {
	return &Ledger{w: w, dice: newDice(w.seed, center), mem: kv.NewMem(), link: w.setup.link, announced: map[string]int{}, uploads: map[ticket.Stream]map[uint64]int{},
		answers: map[ticket.ClaimID]ticket.Answer{}}
}

// Up starts the ledger, unless it runs.
func (l *Ledger) Up() {
	if l.up {
		return
	}
	w := l.w
	l.mem.OnCommit(func(int) kv.Fate { time.Sleep(time.Microsecond + l.dice.Span(w.setup.disk)); return kv.Durable })
	var err error
	l.Ledger, err = ledger.New(ledgerstore.New(l.mem), ledger.Options{
		Process: process, Now: time.Now, Log: slog.New(conflictLines{l, w.logger("ledger").Handler()}), ProgrammeKey: key("programme"), NewRun: l.dice.run,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	l.conn = w.net.Conn("ledger")
	l.conn.SetLink(l.link)
	serving, err := wire.NewLedger(l.conn, service{l.Ledger, l}, wire.LedgerOptions{Process: process, Log: w.logger("ledger")})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.up, l.stop, l.ended = true, cancel, make(chan error, 2)
	go func(led *ledger.Ledger, ended chan error) { ended <- led.Run(ctx) }(l.Ledger, l.ended)
	go func(ended chan error) { ended <- serving.Run(ctx) }(l.ended)
	synctest.Wait()
}

// Kill ends the process at once; what was committed stays.
func (l *Ledger) Kill() {
	if !l.up {
		return
	}
	if l.up = false; l.twin == nil {
		l.mem = l.mem.Crash()
	}
	l.stop()
	l.conn.Close()
	for range 2 {
		if err := <-l.ended; err != nil && !errors.Is(err, ledger.ErrUnknown) {
			l.w.Errorf("ledger ended with %v", err)
		}
	}
}

// Backup copies the store as it is now.
func (l *Ledger) Backup() *kv.Mem { return l.mem.Copy() }

// Restore puts a copy of the store back and starts on it.
func (l *Ledger) Restore(backup *kv.Mem) {
	l.KillTwin()
	l.Kill()
	l.mem, l.restored = backup.Copy(), true
	l.mu.Lock()
	clear(l.answers)
	l.mu.Unlock()
	l.Up()
	l.UpTwin()
}

// SetLink changes the ledger's link, also that of its later processes.
func (l *Ledger) SetLink(k wiretest.Link) {
	l.link = k
	l.conn.SetLink(k)
	if l.twin != nil {
		l.twin.conn.SetLink(k)
	}
}

// Cut takes the ledger off the network, Hang lets nothing pass without anybody's
// noticing, and Heal gives the link back that it began with.
func (l *Ledger) Cut()  { l.SetLink(wiretest.Link{Cut: true}) }
func (l *Ledger) Hang() { l.SetLink(wiretest.Link{Hang: true}) }
func (l *Ledger) Heal() { l.SetLink(l.w.setup.link) }

// Store gives the tables, to be looked at.
func (l *Ledger) Store() ledger.Store { return ledgerstore.New(l.mem) }

// Claims gives what the ledger knows of a unit.
func (l *Ledger) Claims(u ticket.Unit) (rows []ledger.ClaimRow) {
	err := l.Store().View(context.Background(), func(tx ledger.Tx) (err error) {
		rows, err = tx.Claims(u)
		return err
	})
	if err != nil {
		l.w.t.Fatal(err)
	}
	return rows
}

// Streams gives how far the ledger has every run.
func (l *Ledger) Streams() map[ticket.Stream]ledger.StreamRow {
	out := map[ticket.Stream]ledger.StreamRow{}
	err := l.Store().View(context.Background(), func(tx ledger.Tx) error {
		return tx.Streams("", func(s ticket.Stream, r ledger.StreamRow) bool { out[s] = r; return true })
	})
	if err != nil {
		l.w.t.Fatal(err)
	}
	return out
}

// AllConflicts lists them.
func (l *Ledger) AllConflicts() []ledger.Conflict {
	out, _, err := l.Conflicts(context.Background(), "", 100_000)
	if err != nil {
		l.w.t.Fatal(err)
	}
	return out
}

// AllAlarms lists those of a kind.
func (l *Ledger) AllAlarms(kind ledger.AlarmKind) (out []ledger.AlarmReport) {
	all, _, err := l.Alarms(context.Background(), "", 100_000)
	if err != nil {
		l.w.t.Fatal(err)
	}
	for _, a := range all {
		if a.Kind == kind {
			out = append(out, a)
		}
	}
	return out
}

// UploadedTwice counts the positions that came more than once in uploads.
func (l *Ledger) UploadedTwice() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, run := range l.uploads {
		for _, times := range run {
			if times > 1 {
				n++
			}
		}
	}
	return n
}

// service is the ledger as the wire sees it, as in cmd/ledgerd, and counts.
type service struct {
	*ledger.Ledger
	l *Ledger
}

func first(f *ledger.First) *wire.First {
	if f == nil {
		return nil
	}
	return &wire.First{Claim: f.Claim, Place: f.Place, Time: f.Time, State: f.State}
}

var errLost = errors.New("the answer is lost on its way")

func (s service) Ask(ctx context.Context, from ticket.Source, m wire.Ask) (wire.AskReply, error) {
	s.l.mu.Lock()
	deaf, terse := s.l.deaf != nil && s.l.deaf(from), s.l.terse
	s.l.mu.Unlock()
	if deaf {
		return wire.AskReply{}, errLost
	}
	r, err := s.Ledger.Ask(ctx, from, ledger.Ask{Claim: m.Claim, Unit: m.Unit, Records: m.Records})
	if err == nil {
		err = s.l.answered(from, r)
	}
	if terse {
		r.Records = nil
	}
	return wire.AskReply{Claim: r.Claim, Answer: r.Answer, First: first(r.First), Time: r.Time, Records: r.Records}, err
}

// set changes what the network does to asks and answers.
func (l *Ledger) set(change func(l *Ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// answered holds that a claim's answer never changes.
func (l *Ledger) answered(from ticket.Source, r ledger.AskReply) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, ok := l.answers[r.Claim]; ok && was != r.Answer && r.Answer != ticket.AnswerMismatch {
		l.w.Errorf("the answer about %s was %q and is %q", r.Claim, was, r.Answer)
	}
	if r.Answer != ticket.AnswerMismatch {
		l.answers[r.Claim] = r.Answer
	}
	if l.hold != nil && l.hold(from) {
		return errLost
	}
	return nil
}

func (s service) Peek(ctx context.Context, from ticket.Source, m wire.Peek) (wire.PeekReply, error) {
	r, err := s.Ledger.Peek(ctx, from, ledger.Peek{Unit: m.Unit})
	return wire.PeekReply{Reason: r.Reason, First: first(r.First), Time: r.Time, Records: r.Records}, err
}

func (s service) Upload(ctx context.Context, from ticket.Source, m wire.Upload) (wire.UploadReply, error) {
	s.l.countUpload(ticket.Stream{Source: from, Run: m.Run}, m)
	r, err := s.Ledger.Upload(ctx, from, ledger.Upload{Run: m.Run, From: m.From, Records: m.Records})
	if err == nil && len(r.SetAside) > 0 {
		s.l.w.notes.reach(pathAside)
	}
	return wire.UploadReply{High: r.High, SetAside: r.SetAside, Time: r.Time}, err
}

func (l *Ledger) countUpload(run ticket.Stream, m wire.Upload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uploads[run] == nil {
		l.uploads[run] = map[uint64]int{}
	}
	for i := range m.Records {
		l.uploads[run][m.From+uint64(i)]++
	}
}

func (s service) Hello(ctx context.Context, from ticket.Source, m wire.Hello) (wire.HelloReply, error) {
	r, err := s.Ledger.Hello(ctx, from, ledger.Hello{Place: m.Place, Runs: m.Runs, Cursors: m.Cursors})
	return wire.HelloReply{High: r.High, Heads: r.Heads, Time: r.Time, Named: r.Named}, err
}

func (s service) Read(ctx context.Context, st ticket.Stream, after uint64, limit, maxBytes int) (wire.FetchReply, error) {
	r, err := s.Ledger.Read(ctx, st, after, limit, maxBytes)
	return wire.FetchReply{Base: r.Base, Head: r.Head, From: r.From, Records: r.Records, Held: r.Held}, err
}

func (s service) Beyond(ctx context.Context, st ticket.Stream, after uint64, limit, maxBytes int) (wire.FetchReply, error) {
	r, err := s.Ledger.Beyond(ctx, st, after, limit, maxBytes)
	return wire.FetchReply{Base: r.Base, Head: r.Head, From: r.From, Records: r.Records}, err
}

func (s service) Heard(from ticket.Source, h wire.Head) {
	s.Ledger.Heard(from, ledger.Head{Run: h.Run, Pos: h.Pos, Place: h.Place, Link: h.Link, Clock: h.Clock, Mode: h.Mode, Time: h.Time, Note: h.Note})
}

func (s service) GateList(context.Context) ([]byte, error) { return nil, nil }

// conflictLines counts the log lines that announce conflicts.
type conflictLines struct {
	l *Ledger
	slog.Handler
}

func (c conflictLines) Enabled(context.Context, slog.Level) bool { return true }

func (c conflictLines) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "conflict" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "conflict" {
				c.l.mu.Lock()
				c.l.announced[a.Value.String()]++
				c.l.mu.Unlock()
			}
			return true
		})
	}
	if !c.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}
