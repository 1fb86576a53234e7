package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"admitone/hardware/turnstile"
	"admitone/internal/control"
	"admitone/internal/gate"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// network is the wire as the gate sees it.
type network struct {
	*wire.Gate
	peerPatience time.Duration // the least, by configuration
}

func (n network) Link() ticket.Link {
	l := n.Gate.Link()
	l.PeerPatience = max(l.PeerPatience, n.peerPatience)
	return l
}

// Verdict sends a verdict to the operators' page. A struct of strings always encodes.
func (n network) Verdict(v ticket.Verdict) {
	if line, err := json.Marshal(v); err == nil {
		n.PublishVerdict(line)
	}
}

// wireEvents is the gate as the wire sees it.
type wireEvents struct{ *gate.Gate }

func (e wireEvents) OwnRunAhead(s ticket.Stream, pos uint64) {
	e.Forgot(fmt.Sprintf("others hold run %s of this device up to %d", s.Run, pos))
}

func (e wireEvents) CatchUpChanged(caughtUp bool) {
	if caughtUp {
		e.CaughtUp()
	}
}

// controlled is the daemon as its socket sees it.
type controlled struct{ d *daemon }

// status is the gate's status and the wire's.
type status struct {
	gate.Status
	Wire   wire.GateStats `json:"wire"`
	Broker string         `json:"broker,omitempty"` // the one connected to
	Notice string         `json:"notice,omitempty"` // about the broker's certificate
}

func (c controlled) Status(ctx context.Context) (any, error) {
	s, err := c.d.status(ctx)
	if err != nil {
		return nil, err
	}
	conn := c.d.conn.Status()
	return status{Status: s, Wire: c.d.wire.Stats(), Broker: conn.URL, Notice: conn.CertificateNotice}, nil
}

func (c controlled) SetMode(ctx context.Context, m ticket.GateMode, by string) error {
	return c.d.gate.SetMode(ctx, m, by)
}

func (c controlled) Annul(ctx context.Context, id ticket.ClaimID, by string) error {
	return c.d.gate.Annul(ctx, id, by)
}

func (c controlled) Export(ctx context.Context, w io.Writer) error {
	return c.d.export.export(ctx, w, c.d.place, c.d.clock.wall().UnixNano())
}

func (c controlled) Sim(_ context.Context, s control.Sim) error {
	for i, l := range c.d.lanes {
		if s.Lane != "" && s.Lane != c.d.gate.LaneName(i) {
			continue
		}
		if s.Passage != "" {
			return l.lines.SetPassage(turnstile.Passage(s.Passage))
		}
		line, err := turnstile.ParseLine(s.Input)
		if err != nil {
			return err
		}
		return l.lines.SetInput(line, s.Active)
	}
	return fmt.Errorf("no lane %q here", s.Lane)
}

// lines appends JSON objects to a file, one a line. A write that fails is told
// once and changes nothing else: verdicts are also in the log.
type lines struct {
	mu   sync.Mutex
	w    io.Writer
	f    *os.File
	told bool
	log  *slog.Logger
}

// openLines opens the file of a path; "-" is standard output and "" is nothing.
func openLines(path string, stdout io.Writer, log *slog.Logger) (*lines, error) {
	switch path {
	case "":
		return &lines{w: io.Discard, log: log}, nil
	case "-":
		return &lines{w: stdout, log: log}, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open lines: %w", err)
	}
	return &lines{w: f, f: f, log: log}, nil
}

func (l *lines) write(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		_, err = l.w.Write(append(b, '\n'))
	}
	if err != nil && !l.told {
		l.told = true
		l.log.Error("write line", "err", err)
	}
}

func (l *lines) close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
