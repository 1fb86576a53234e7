package lab

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"admitone/internal/boltfile"
	"admitone/internal/config"
	"admitone/internal/gatestore"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// edge is a line of turnstile.jsonl.
type edge struct {
	MonoNS int64  `json:"mono_ns"`
	Line   string `json:"line"`
	Active bool   `json:"active"`
}

// relay gives the changes of gate k's relay.
func (s *stage) relay(k int) (out []edge) {
	s.t.Helper()
	for _, e := range lines[edge](s.t, s.at.gate(k, "turnstile.jsonl")) {
		if e.Line == "relay" {
			out = append(out, e)
		}
	}
	return out
}

// pulses counts how often gate k's relay became active.
func (s *stage) pulses(k int) (n int) {
	s.t.Helper()
	for _, e := range s.relay(k) {
		if e.Active {
			n++
		}
	}
	return n
}

// open reports whether gate k's relay is active.
func (s *stage) open(k int) bool {
	s.t.Helper()
	e := s.relay(k)
	return len(e) > 0 && e[len(e)-1].Active
}

// fired lists the claims that gate k marked before it moved the relay.
func (s *stage) fired(k int) (out []string) {
	s.t.Helper()
	f, err := os.Open(s.at.gate(k, "run", "fired"))
	s.must(err)
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		_, id, _ := strings.Cut(sc.Text(), " ")
		out = append(out, id)
	}
	return out
}

// onDisk reads all records that gate k wrote, from its stores, which must be
// closed: one that a test put aside stands beside the present one.
func (s *stage) onDisk(k int) (out []ticket.Record) {
	s.t.Helper()
	device := s.device(k)
	files, err := filepath.Glob(s.at.gate(k, "data", "gate.db*"))
	s.must(err)
	for _, path := range files {
		if !strings.HasSuffix(path, ".lock") {
			out = append(out, s.ownRecords(path, device)...)
		}
	}
	return out
}

// device is gate k's.
func (s *stage) device(k int) ticket.Source {
	s.t.Helper()
	conf, err := config.LoadGate(s.at.gate(k, "gated.toml"))
	s.must(err)
	public, err := wire.PublicKey(conf.Device.Seed)
	s.must(err)
	device, err := wire.DeviceID(public)
	s.must(err)
	return device
}

func (s *stage) ownRecords(path string, device ticket.Source) (out []ticket.Record) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	f, err := boltfile.Open(ctx, path, boltfile.Options{Name: "gate", Version: gatestore.Version})
	s.must(err)
	defer f.Close()
	store, err := gatestore.New(ctx, f, gatestore.Options{Device: device})
	s.must(err)
	runs, err := store.Own()
	s.must(err)
	for _, run := range runs {
		for after := uint64(0); after < run.Pos; {
			raws, from, _, _, err := store.Read(run.Stream(), after, 1000, 1<<20)
			s.must(err)
			for _, raw := range raws {
				rec, err := ticket.DecodeRecord(raw)
				s.must(err)
				out = append(out, rec)
			}
			after = from + uint64(len(raws)) - 1
		}
	}
	return out
}

// cause is something on a gate's disk for which its relay may become active from
// a moment on until another, nanoseconds since the boot; each gives as many
// activations as it may, -1: any number.
type cause struct {
	from, until int64
	times       int
}

// late is what a loaded machine may put between a decision and its relay.
const late = int64(2 * time.Second)

// causes are what gate k has on disk: claims that were marked as fired, spells of
// mode free, trials with a test ticket, presses of the staff's button, and
// emergencies, which alone are recorded after they acted.
func (s *stage) causes(k int) (out []cause) {
	s.t.Helper()
	marked := map[string]bool{}
	for _, id := range s.fired(k) {
		marked[id] = true
	}
	free := -1
	for _, r := range s.onDisk(k) {
		switch {
		case r.Claim != nil && r.Claim.Rev == 0 && marked[r.Claim.ID.String()]:
			up := r.Claim.Claimed.Up
			out = append(out, cause{up, up + int64(10*time.Second) + late, 1})
		case r.Event != nil && r.Event.Type == ticket.EventEmergency && strings.Contains(r.Event.Detail, "input is on"):
			out = append(out, cause{r.Event.Stamp.Up - late, r.Event.Stamp.Up, 1})
		case r.Event != nil && r.Event.Type == ticket.EventStaff && slices.Contains([]string{"test ticket", "staff button"}, r.Event.Detail):
			out = append(out, cause{r.Event.Stamp.Up, r.Event.Stamp.Up + late, 1})
		case r.Event != nil && r.Event.Type == ticket.EventMode:
			if free >= 0 {
				out[free].until = r.Event.Stamp.Up + late
				free = -1
			}
			if strings.HasPrefix(r.Event.Detail, string(ticket.ModeFree)) {
				free = len(out)
				out = append(out, cause{r.Event.Stamp.Up, 1<<63 - 1, -1})
			}
		}
	}
	// Whatever ends first serves first: then no activation is left over that
	// another choice would have served.
	slices.SortStableFunc(out, func(a, b cause) int { return cmp.Compare(a.until, b.until) })
	return out
}

// auditRelay holds what gate k's relay did, as anyone can read it from outside,
// against what was on its disk by then (guarantee G2). The lab must be down.
func (s *stage) auditRelay(k int) {
	s.t.Helper()
	if _, err := os.Stat(s.at.gate(k, "turnstile.jsonl")); err != nil {
		return // it was never up
	}
	var mono, boot unix.Timespec
	s.must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono))
	s.must(unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot))
	asleep := boot.Nano() - mono.Nano()
	causes, on := s.causes(k), false
	for _, e := range s.relay(k) {
		if e.Active == on {
			s.t.Errorf("gate %d: the relay became %v twice in a row at %d", k, e.Active, e.MonoNS)
		}
		if on = e.Active; !on {
			continue
		}
		at := e.MonoNS + asleep
		i := slices.IndexFunc(causes, func(c cause) bool { return c.times != 0 && c.from <= at && at <= c.until })
		if i < 0 {
			s.t.Errorf("gate %d: the relay became active at %d without a cause on disk", k, e.MonoNS)
			continue
		}
		causes[i].times--
	}
	if on {
		s.t.Errorf("gate %d: the relay is active after everything has ended", k)
	}
	s.auditVerdicts(k)
}

// auditVerdicts holds the verdicts against the marks: who was told to enter had
// the relay opened for them, but in modes that open without a claim.
func (s *stage) auditVerdicts(k int) {
	s.t.Helper()
	marked := map[string]bool{}
	for _, id := range s.fired(k) {
		if marked[id] {
			s.t.Errorf("gate %d: claim %s fired twice", k, id)
		}
		marked[id] = true
	}
	for _, v := range s.verdicts(k) {
		if v.Verdict == ticket.Admit && v.GateMode == ticket.ModeNormal && !marked[v.Claim] {
			s.t.Errorf("gate %d: %s was admitted by claim %q, which never fired", k, v.Ticket, v.Claim)
		}
	}
}
