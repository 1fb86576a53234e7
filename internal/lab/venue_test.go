package lab

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// A venue with a broker of its own, whose uplink fails.
func TestVenue(t *testing.T) {
	t.Parallel()
	stand(t, Options{Gates: 3}).play([]scene{
		{"the uplink is cut", uplinkCut},
		{"a store is lost while the ledger is away", storeLost},
		{"a store is put back from an old copy", storePutBack},
		{"another gate's key", foreignKey},
		{"a wrong clock", wrongClock},
	})
}

// uplinkCut: gates on one switch hear each other without the centre.
func uplinkCut(s *stage) {
	known := s.one()
	s.admit(1, known)
	s.must(s.Cut("ledger", Down))
	for range 3 {
		p := s.one()
		s.admit(1, p)
		s.refuse(2, p, "1")
		s.refuse(3, p, "1")
		q := s.one()
		s.admit(2, q)
		s.refuse(1, q, "2")
	}
	s.linked(1, "peers")
	s.refuse(2, known, "1")
	s.must(s.Heal("ledger"))
	s.level()
	s.must(s.Cut("ledger", Hang))
	p := s.one()
	s.admit(3, p)
	s.refuse(1, p, "3")
	s.must(s.Heal("ledger"))
	s.level()
}

// storeLost: a box with a new card learns from its peers what is on, what others
// admitted, and what it admitted itself, before it admits anybody.
func storeLost(s *stage) {
	mine, theirs := s.one(), s.one()
	s.admit(2, mine)
	s.admit(1, theirs)
	s.level()
	s.must(s.Cut("ledger", Down))
	s.linked(1, "peers")
	while := s.one() // the ledger does not know of this one
	s.admit(2, while)
	s.refuse(1, while, "2")
	s.must(s.Stop("2"))
	s.must(os.Rename(s.at.gate(2, "data", "gate.db"), s.at.gate(2, "data", "gate.db.before")))
	s.must(s.Start(s.t.Context(), "2"))
	before := len(s.verdicts(2))
	s.eventually("the end of amnesia", func() bool {
		s.look(2, s.one().text)
		return !s.status(2).Amnesia && len(s.status(2).Events) > 0
	})
	if s.status(2).Link == "up" {
		s.t.Error("the ledger was there after all")
	}
	early := s.verdicts(2)[before:]
	if !slices.ContainsFunc(early, func(v ticket.Verdict) bool { return v.Reason == ticket.CatchingUp && v.Verdict == ticket.Wait }) {
		s.t.Errorf("nobody had to wait until the gate knew what it had admitted: %+v", early)
	}
	s.idle(2)
	s.pause(rearm)
	s.refuse(2, theirs, "1")
	s.refuse(2, mine, "2")
	s.refuse(2, while, "2")
	s.admit(2, s.one())
	s.must(s.Heal("ledger"))
	s.level()
	for _, p := range []pass{mine, theirs, while} {
		if c := s.conflictsOf(p); len(c) != 0 {
			s.t.Errorf("a conflict after a lost store: %+v", c)
		}
	}
	s.nothingLost()
}

// storePutBack: a box whose card was restored from an image is not fooled by it,
// with the ledger there and without.
func storePutBack(s *stage) {
	for _, ledger := range []bool{true, false} {
		s.must(s.Stop("2"))
		file, copied := s.at.gate(2, "data", "gate.db"), s.at.gate(2, "copy")
		s.copyFile(file, copied)
		s.must(s.Start(s.t.Context(), "2"))
		s.must(s.AwaitOnline(s.t.Context(), 2))
		p := s.mint(3, nil)
		for _, p := range p {
			s.admit(2, p)
		}
		s.level()
		if !ledger {
			s.must(s.Cut("ledger", Down))
		}
		before := s.heardOfLoss()
		s.must(s.Stop("2"))
		s.must(os.Rename(file, file+".reverted"+strconv.FormatBool(ledger)))
		s.copyFile(copied, file)
		s.must(s.Start(s.t.Context(), "2"))
		s.linked(2, map[bool]string{true: "up", false: "peers"}[ledger])
		// A plain restart is no amnesia: it takes somebody who knows more.
		s.eventually("the evidence", func() bool { return s.heardOfLoss() > before })
		s.eventually("its own records", func() bool { return !s.status(2).Amnesia })
		for _, p := range p {
			s.refuse(2, p, "2")
		}
		s.must(s.Heal("ledger"))
		s.level()
	}
	s.nothingLost()
}

// heardOfLoss counts how often gate 2 heard that its store had lost something.
func (s *stage) heardOfLoss() int {
	return strings.Count(s.log("gate-2"), "others hold more of an own run")
}

func (s *stage) copyFile(from, to string) {
	s.t.Helper()
	b, err := os.ReadFile(from)
	s.must(err)
	s.must(os.WriteFile(to, b, 0o600))
}

// log reads what a process logged.
func (s *stage) log(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.at.path(name, "log"))
	s.must(err)
	return string(b)
}

// foreignKey: a device can publish only as itself. The verdicts of the operators'
// page say what got through: first a forged one, then one of its own.
func foreignKey(s *stage) {
	conf, err := config.LoadGate(s.at.gate(1, "gated.toml"))
	s.must(err)
	conn, err := wire.Dial(s.t.Context(), wire.NATSOptions{
		URLs: []string{"tls://" + s.brokerAddr}, Seed: conf.Device.Seed, PinnedKeys: []string{s.brokerPin}, Name: "thief", Log: slog.New(slog.DiscardHandler),
	})
	s.must(err)
	defer conn.Close()
	s.eventually("a connection", func() bool { return conn.Status().Connected })
	one, two := s.status(1).Device, s.status(2).Device
	p := s.one()
	forged := ticket.Record{Source: two, Run: 1 << 60, Pos: 1, Claim: &ticket.Claim{
		ID: ticket.ClaimID{Gate: two, Run: 1 << 60, Pos: 1}, Unit: p.ticket.Unit(), State: ticket.Admitted,
		Claimed: ticket.Stamp{Wall: time.Now().UnixNano()}, Place: "2", Lane: "1", Lease: time.Minute,
	}}
	raw, err := forged.Encode()
	s.must(err)
	publish := func(by ticket.Source, subject string, data []byte) {
		s.must(conn.Publish("gate."+string(by)+"."+subject, data))
	}
	line := func(word string) []byte {
		b, err := json.Marshal(ticket.Verdict{Time: time.Now(), Gate: "2", Verdict: ticket.Admit, Reason: ticket.OK, Claim: word})
		s.must(err)
		return b
	}
	publish(two, "spend", raw)
	publish(one, "spend", raw) // as itself, in another's name
	publish(two, "verdict", line("forged"))
	publish(one, "verdict", line("mine"))
	said := map[string]bool{}
	s.eventually("the honest line", func() bool {
		list, err := s.c.Verdicts(s.t.Context())
		s.must(err)
		for _, v := range list {
			said[v.Claim] = true
		}
		return said["mine"]
	})
	if said["forged"] {
		s.t.Error("gate 1's key published a verdict as gate 2")
	}
	if c := s.claims(p); len(c) != 0 {
		s.t.Errorf("gate 1's key wrote claims of gate 2: %+v", c)
	}
	s.admit(3, p)
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	if _, err := conn.Request(ctx, "gate."+string(two)+".ask", raw); err == nil {
		s.t.Error("gate 1's key asked as gate 2")
	}
}

// wrongClock: a gate that woke up a day ahead and heard nobody still comes first
// where it was first: its claims are corrected when it can know the time.
func wrongClock(s *stage) {
	for k := range 2 {
		s.must(s.Cut([]string{"1", "2"}[k], Down))
	}
	s.must(s.Stop("1"))
	s.must(s.Clock("1", "26h"))
	s.must(s.Start(s.t.Context(), "1"))
	if c := s.status(1).Clock; c != ticket.Untrusted {
		s.t.Errorf("the clock of a gate that heard nobody is %v", c)
	}
	p := s.one()
	began := time.Now()
	v := s.admit(1, p)
	if v.Clock != ticket.Untrusted || v.Time.Sub(began) < 25*time.Hour {
		s.t.Errorf("a day ahead: %+v", v)
	}
	if v := s.admit(2, p); v.Clock != ticket.Trusted {
		s.t.Errorf("the other gate: %+v", v)
	}
	s.must(s.Heal("1"))
	s.must(s.Heal("2"))
	s.level()
	s.eventually("the corrected conflict", func() bool {
		c := s.conflictsOf(p)
		return len(c) == 1 && c[0].First.Clock == ticket.Trusted && c[0].First.Gate == "1"
	})
	first, err := time.Parse(time.RFC3339Nano, s.conflictsOf(p)[0].First.Time)
	s.must(err)
	if d := first.Sub(began); d < -time.Second || d > 10*time.Second {
		s.t.Errorf("the corrected claim is %v after the look", d)
	}
	s.eventually("an alarm about the clock", func() bool {
		for a, err := range s.c.AllAlarms(s.t.Context()) {
			s.must(err)
			if a.Kind == ledger.AlarmSkew {
				return true
			}
		}
		return false
	})
	s.must(s.Clock("1", "0s"))
	s.pause(rearm)
	s.refuse(1, p, "1")
}
