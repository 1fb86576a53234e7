package simtest

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/boltfile"
	"admitone/internal/gatestore"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

// season is a year of weekly events on real files: a ledger and gates that hand
// each other what they have, with no network and no time but what the test says.
type season struct {
	t      *testing.T
	now    time.Time
	ledger *ledger.Ledger
	path   string // of the ledger's file
	gates  []*seasonal
}

// seasonal is a gate of a season.
type seasonal struct {
	*gatestore.Store
	id   ticket.Source
	path string
	away bool
}

const (
	week     = 7 * 24 * time.Hour
	admitted = 60 // a week at each gate
)

func newSeason(t *testing.T, gates int) *season {
	s := &season{t: t, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	open := func(name string, version int) (*boltfile.File, string) {
		path := filepath.Join(t.TempDir(), name+".db")
		f, err := boltfile.Open(t.Context(), path, boltfile.Options{Name: name, Version: version})
		s.must(err)
		t.Cleanup(func() { _ = f.Close() }) // nothing of it is read again
		return f, path
	}
	f, path := open("ledger", ledgerstore.Version)
	l, err := ledger.New(ledgerstore.New(f), ledger.Options{
		Process: process, Now: func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key("programme"),
		DeviceID: func(k string) (ticket.Source, error) { return ticket.Source(k), nil },
	})
	s.must(err)
	s.ledger, s.path = l, path
	for i := range gates {
		f, path := open("gate", gatestore.Version)
		g := &seasonal{id: ticket.Source(fmt.Sprintf("g%d", i+1)), path: path}
		g.Store, err = gatestore.New(t.Context(), f, gatestore.Options{Device: g.id})
		s.must(err)
		_, err = l.EnrolGate(t.Context(), "place "+string(g.id), string(g.id), ledger.RoleGate)
		s.must(err)
		s.gates = append(s.gates, g)
	}
	return s
}

func (s *season) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *season) unit(g *seasonal, n, i int) ticket.Unit {
	u := ticket.Unit{Event: fmt.Sprintf("week-%d", n), Format: ticket.FormatA1}
	copy(u.Ticket[:], g.id)
	binary.BigEndian.PutUint64(u.Ticket[8:], uint64(i))
	return u
}

// week is one event: it is put on, people come, everybody tells everybody, and the
// next day it is closed and whatever may go is pruned.
func (s *season) week(n int) {
	s.t.Helper()
	ctx, pub := s.t.Context(), key("tickets").Public().(ed25519.PublicKey)
	event := fmt.Sprintf("week-%d", n)
	_, err := s.ledger.PushProgramme(ctx, ticket.Programme{Events: []ticket.ProgrammeEvent{{
		ID: event, Open: s.now, Close: s.now.Add(10 * time.Hour), Forget: s.now.Add(24 * time.Hour), Formats: []string{"a1"},
		Keys: []ticket.ProgrammeKey{{ID: ticket.KeyID(pub), Public: hex.EncodeToString(pub)}},
	}}})
	s.must(err)
	for _, g := range s.gates {
		s.admit(g, n)
	}
	s.level()
	for _, g := range s.gates {
		s.known(g, n)
	}
	s.now = s.now.Add(24 * time.Hour)
	s.must(s.ledger.CloseEvent(ctx, event))
	s.level()
	s.must(s.ledger.Prune(ctx))
	for _, g := range s.gates {
		for m := range n + 1 {
			for more := !g.away; more; {
				more, err = g.Prune(ctx, fmt.Sprintf("week-%d", m), 500)
				s.must(err)
			}
		}
	}
	s.now = s.now.Add(week - 24*time.Hour)
}

// admit has people come, many at once, as lanes and peers make a gate commit.
func (s *season) admit(g *seasonal, n int) {
	s.t.Helper()
	var all errgroup.Group
	for i := range admitted {
		all.Go(func() error {
			m, err := g.Claim(s.t.Context(), ticket.Claim{Unit: s.unit(g, n, i), Place: "place " + string(g.id), Lease: 25 * time.Second,
				Claimed: ticket.Stamp{Wall: s.now.UnixNano()}}, nil, nil)
			if err != nil {
				return err
			}
			_, _, err = g.Revise(s.t.Context(), m.Record.Claim.ID, func(c *ticket.Claim) bool { c.State = ticket.Admitted; return true })
			return err
		})
	}
	s.must(all.Wait())
}

// level brings every gate that is there and the ledger to the same records.
func (s *season) level() {
	s.t.Helper()
	for range 2 { // what the last one uploads is there for the first one in the second round
		for _, g := range s.gates {
			if !g.away {
				s.sync(g)
			}
		}
	}
}

func (s *season) sync(g *seasonal) {
	s.t.Helper()
	ctx := s.t.Context()
	own, err := g.Own()
	s.must(err)
	cursors, err := g.Cursors()
	s.must(err)
	hello, err := s.ledger.Hello(ctx, g.id, ledger.Hello{Place: "place " + string(g.id), Runs: own, Cursors: cursors})
	s.must(err)
	high := map[ticket.Stream]uint64{}
	for _, p := range hello.High {
		high[p.Stream()] = p.Pos
	}
	for _, p := range own {
		recs, from, _, _, err := g.Read(p.Stream(), high[p.Stream()], 1<<20, 1<<30)
		s.must(err)
		if len(recs) > 0 {
			r, err := s.ledger.Upload(ctx, g.id, ledger.Upload{Run: p.Run, From: from, Records: recs})
			s.must(err)
			s.must(g.SetReceipts(ctx, r.High))
		}
	}
	have := map[ticket.Stream]uint64{}
	for _, p := range cursors {
		have[p.Stream()] = p.Pos
	}
	for _, p := range append(hello.Heads, s.ledger.Own()...) {
		s.fetch(ctx, g, p.Stream(), have[p.Stream()])
	}
}

func (s *season) fetch(ctx context.Context, g *seasonal, from ticket.Stream, after uint64) {
	s.t.Helper()
	r, err := s.ledger.Read(ctx, from, after, 1<<20, 1<<30)
	s.must(err)
	s.must(g.Skip(ctx, from, r.Base))
	var in []ticket.Arrival
	for i, raw := range r.Records {
		rec, err := ticket.DecodeRecord(raw)
		s.must(err)
		in = append(in, ticket.Arrival{Stream: from, Pos: r.From + uint64(i), Raw: raw, Record: &rec})
	}
	_, err = g.Learn(ctx, in)
	s.must(err)
}

// known: a gate that is there, and the ledger, know everything of an open event.
func (s *season) known(g *seasonal, n int) {
	s.t.Helper()
	if g.away {
		return
	}
	for _, by := range s.gates {
		for i := 0; i < admitted && !by.away; i++ {
			v, err := g.View(s.unit(by, n, i))
			s.must(err)
			if len(v.Claims) != 1 || v.Claims[0].Claim.State != ticket.Admitted {
				s.t.Fatalf("in week %d %s knows %+v of a ticket that was used at %s", n, g.id, v.Claims, by.id)
			}
			got, err := s.ledger.Ticket(s.t.Context(), ticket.FormatA1, v.Unit.Ticket)
			s.must(err)
			if len(got.Claims) == 0 {
				s.t.Fatalf("in week %d the ledger knows nothing of a ticket that was used at %s", n, by.id)
			}
		}
	}
}

func (s *season) size(path string) int64 {
	s.t.Helper()
	info, err := os.Stat(path)
	s.must(err)
	return info.Size()
}

// TestAYearOfEvents: an event a week, each pruned when its time has come. The files
// stop growing, nothing of an open event is ever missing, and a gate that was given
// up and comes back with records of an event that nobody has any more is level again;
// what it brings is told, and changes nothing.
func TestAYearOfEvents(t *testing.T) {
	t.Parallel()
	s := newSeason(t, 3)
	lost := s.gates[2]
	sizes := map[string][]int64{}
	for n := range 52 {
		switch n {
		case 10:
			lost.away = true // in the middle of its event: what it admits now it tells nobody
		case 12:
			_, err := s.ledger.LostGate(t.Context(), string(lost.id))
			s.must(err)
		case 40:
			lost.away = false
		}
		if n > 10 && n < 40 {
			present := s.gates
			s.gates = s.gates[:2]
			s.week(n)
			s.gates = present
		} else {
			s.week(n)
		}
		sizes["the ledger"] = append(sizes["the ledger"], s.size(s.path))
		for _, g := range s.gates {
			sizes[string(g.id)] = append(sizes[string(g.id)], s.size(g.path))
		}
	}
	for name, by := range sizes {
		t.Logf("%s: %d bytes after 12 weeks, %d after a year", name, by[11], by[51])
		if by[51] > by[11]*5/4 {
			t.Errorf("the file of %s grew from %d bytes after 12 weeks to %d after a year", name, by[11], by[51])
		}
	}
	late, _, err := s.ledger.Late(t.Context(), "", 10_000)
	if err != nil || len(late) != 2*admitted {
		t.Errorf("%d late records, %v, want the %d that came when their event was pruned", len(late), err, 2*admitted)
	}
	for _, g := range s.gates {
		for _, of := range s.gates {
			if v, err := g.View(s.unit(of, 10, 0)); err != nil || len(v.Claims) > 0 {
				t.Errorf("%s knows %d claims of an event of long ago, %v", g.id, len(v.Claims), err)
			}
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
}
