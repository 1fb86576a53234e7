package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"admitone/internal/ledgerhttp"
	"admitone/internal/ticket"
)

// stage is a lab with people who show tickets and readers of what its gates write.
type stage struct {
	*Lab
	t *testing.T
	c *ledgerhttp.Client
}

// stand puts a lab up for one test. LABDIR keeps the labs of a run, one folder a
// test. At the test's end everything is stopped and what the relays did is held
// against its causes.
func stand(t *testing.T, o Options) *stage {
	t.Helper()
	o.Dir, o.Bin = filepath.Join(t.TempDir(), "lab"), bin
	if keep := os.Getenv("LABDIR"); keep != "" {
		o.Dir = filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-"))
	}
	l, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Lab: l, t: t}
	t.Cleanup(func() {
		l.Down()
		for k := 1; k <= o.Gates; k++ {
			s.auditRelay(k)
		}
		if t.Failed() {
			s.dump()
		}
	})
	if s.c, err = l.Client(); err != nil {
		t.Fatal(err)
	}
	return s
}

// scene is one test on a stage that several share.
type scene struct {
	name string
	run  func(*stage)
}

// play runs scenes one after the other, each as a subtest. One that fails leaves
// no link cut to the next.
func (s *stage) play(scenes []scene) {
	for _, c := range scenes {
		s.t.Run(c.name, func(t *testing.T) {
			t.Cleanup(s.healAll)
			c.run(&stage{Lab: s.Lab, t: t, c: s.c})
		})
	}
}

func (s *stage) healAll() {
	for _, name := range []string{"ledger", "broker"} {
		s.must(s.Heal(name))
	}
	for k := 1; k <= s.o.Gates; k++ {
		s.must(s.Heal(strconv.Itoa(k)))
	}
}

func (s *stage) dump() {
	names := []string{"ledger", "broker"}
	for k := 1; k <= s.o.Gates; k++ {
		names = append(names, "gate-"+strconv.Itoa(k))
	}
	for _, name := range names {
		if b, err := os.ReadFile(s.at.path(name, "log")); err == nil {
			s.t.Logf("%s:\n%s", name, b[max(0, len(b)-6000):])
		}
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pass is a ticket as its holder carries it.
type pass struct {
	text, id string
	ticket   ticket.Ticket
}

func (s *stage) mint(n int, change func(*ticket.Ticket)) []pass {
	s.t.Helper()
	texts, err := Mint(s.Dir(), n, change)
	s.must(err)
	out := make([]pass, n)
	for i, text := range texts {
		u, err := ticket.Inspect(text)
		s.must(err)
		out[i] = pass{text, u.Ticket.ID.String(), u.Ticket}
	}
	return out
}

func (s *stage) one() pass { s.t.Helper(); return s.mint(1, nil)[0] }

// look shows a text at gate k once.
func (s *stage) look(k int, text string) {
	s.t.Helper()
	s.must(s.tryLook(k, text))
}

// tryLook does not wait for a gate that is not there.
func (s *stage) tryLook(k int, text string) error {
	f, err := os.OpenFile(s.at.gate(k, "line"), os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// hold keeps a text in front of gate k, a look each 100 ms, until ctx ends.
func (s *stage) hold(ctx context.Context, k int, text string) {
	s.t.Helper()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		s.look(k, text)
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// holdFor holds a text for a time.
func (s *stage) holdFor(k int, text string, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	s.hold(ctx, k, text)
}

// pause lets time pass that a scenario consists of; what takes a moment is waited
// for with eventually.
func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

// lines reads a file of JSON objects; a last line that is being written is left
// out.
func lines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return out
		}
		out = append(out, v)
	}
	return out
}

func (s *stage) verdicts(k int) []ticket.Verdict {
	s.t.Helper()
	return lines[ticket.Verdict](s.t, s.at.gate(k, "verdicts.jsonl"))
}

func (s *stage) results(k int) []ticket.Result {
	s.t.Helper()
	return lines[ticket.Result](s.t, s.at.gate(k, "results.jsonl"))
}

// said gives gate k's verdicts on a ticket.
func (s *stage) said(k int, p pass) (out []ticket.Verdict) {
	s.t.Helper()
	for _, v := range s.verdicts(k) {
		if v.Ticket == p.id {
			out = append(out, v)
		}
	}
	return out
}

// ended gives what became of gate k's claims on a ticket.
func (s *stage) ended(k int, p pass) (out []ticket.State) {
	s.t.Helper()
	for _, r := range s.results(k) {
		if r.Ticket == p.id {
			out = append(out, r.Result)
		}
	}
	return out
}

// verdict waits for gate k's n-th verdict on a ticket, counted from 1.
func (s *stage) verdict(k int, p pass, n int) ticket.Verdict {
	s.t.Helper()
	s.eventually(fmt.Sprintf("verdict %d on ticket %s at gate %d", n, p.id, k), func() bool { return len(s.said(k, p)) >= n })
	return s.said(k, p)[n-1]
}

// final waits until gate k's last verdict on a ticket is no wait.
func (s *stage) final(k int, p pass) (v ticket.Verdict) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("a final verdict on ticket %s at gate %d", p.id, k), func() bool {
		said := s.said(k, p)
		if len(said) > 0 {
			v = said[len(said)-1]
		}
		return len(said) > 0 && v.Verdict != ticket.Wait
	})
	return v
}

// show shows a ticket at gate k and waits for the verdict on it.
func (s *stage) show(k int, p pass) ticket.Verdict {
	s.t.Helper()
	n := len(s.said(k, p))
	s.look(k, p.text)
	return s.verdict(k, p, n+1)
}

// admit shows a ticket at gate k, wants it admitted, and waits for the passage. It
// may be amber first: that another gate gave the ticket back needs a moment to get
// here.
func (s *stage) admit(k int, p pass) ticket.Verdict {
	s.t.Helper()
	v := s.show(k, p)
	if v.Reason == ticket.InProgress {
		v = s.final(k, p)
	}
	if v.Verdict != ticket.Admit {
		s.t.Fatalf("gate %d did not admit %s: %+v", k, p.id, v)
	}
	s.idle(k)
	return v
}

// refuse shows a ticket at gate k and wants it refused as used at another gate. It
// may be amber first: that the other has seen the passage needs a moment to get
// here.
func (s *stage) refuse(k int, p pass, first string) ticket.Verdict {
	s.t.Helper()
	v := s.show(k, p)
	if v.Reason == ticket.InProgress {
		v = s.final(k, p)
	}
	if v.Reason != ticket.AlreadyUsed || v.FirstGate != first || v.FirstSeen.IsZero() {
		s.t.Fatalf("gate %d, a ticket that gate %s admitted: %+v", k, first, v)
	}
	return v
}

// status is what tests read of a gate's.
type gateStatus struct {
	Device  ticket.Source   `json:"device"`
	Link    string          `json:"link"`
	Mode    ticket.GateMode `json:"mode"`
	Clock   ticket.Class    `json:"clock"`
	Amnesia bool            `json:"amnesia"`
	Fault   string          `json:"fault"`
	Events  []string        `json:"events"`
	Lanes   []struct {
		Open    []string `json:"open"`
		Suspect bool     `json:"sensor_suspect"`
	} `json:"lanes"`
}

func (s *stage) status(k int) (st gateStatus) {
	s.t.Helper()
	raw, err := s.Gate(k).Status(s.t.Context())
	s.must(err)
	s.must(json.Unmarshal(raw, &st))
	return st
}

// idle waits until gate k's lane has no open claim.
func (s *stage) idle(k int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("an idle lane at gate %d", k), func() bool { return len(s.status(k).Lanes[0].Open) == 0 })
}

// linked waits until gate k says that its link is in one of the states.
func (s *stage) linked(k int, states ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("link %v at gate %d", states, k), func() bool {
		now := s.status(k).Link
		for _, want := range states {
			if now == want {
				return true
			}
		}
		return false
	})
}

// eventually waits for something that takes a moment; what must never happen is
// asserted on what was written, not waited for.
func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	err := await(ctx, what, func(context.Context) error {
		if ok() {
			return nil
		}
		return errors.New("not yet")
	})
	s.must(err)
}
