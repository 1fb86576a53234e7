package control_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"admitone/internal/control"
	"admitone/internal/ticket"
)

type gate struct {
	mode  ticket.GateMode
	annul ticket.ClaimID
	sim   control.Sim
}

func (g *gate) Status(context.Context) (any, error) { return map[string]any{"mode": g.mode}, nil }

func (g *gate) SetMode(_ context.Context, m ticket.GateMode, _ string) error {
	if !m.Valid() {
		return errors.New("unknown mode: use normal")
	}
	g.mode = m
	return nil
}

func (g *gate) Annul(_ context.Context, id ticket.ClaimID, _ string) error { g.annul = id; return nil }
func (g *gate) Sim(_ context.Context, s control.Sim) error                 { g.sim = s; return nil }

// Export writes a line, and fails after it where the mode is closed.
func (g *gate) Export(_ context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, "records\n"); err != nil {
		return err
	}
	if g.mode == ticket.ModeClosed {
		return errors.New("told to fail")
	}
	return nil
}

// An export that breaks off is an error for its reader.
func TestExport(t *testing.T) {
	g := &gate{}
	_, c, _ := serve(t, g)
	for _, mode := range []ticket.GateMode{ticket.ModeNormal, ticket.ModeClosed} {
		g.mode = mode
		var b strings.Builder
		if err := c.Export(t.Context(), &b); (err == nil) != (mode == ticket.ModeNormal) {
			t.Errorf("mode %s: %v", mode, err)
		} else if err == nil && b.String() != "records\n" {
			t.Errorf("exported %q", b.String())
		}
	}
}

func serve(t *testing.T, g *gate) (*control.Server, *control.Client, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.sock")
	s, err := control.New(path, g, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c := control.NewClient(path)
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := c.Status(t.Context()); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return s, c, path
}

func TestCommands(t *testing.T) {
	g := &gate{mode: ticket.ModeNormal}
	_, c, _ := serve(t, g)
	if err := c.SetMode(t.Context(), ticket.ModeClosed, "me"); err != nil || g.mode != ticket.ModeClosed {
		t.Fatal(err, g.mode)
	}
	if err := c.SetMode(t.Context(), "open", "me"); err == nil || !strings.Contains(err.Error(), "use normal") {
		t.Fatalf("a bad mode: %v", err)
	}
	id := ticket.ClaimID{Gate: "a", Run: 1, Pos: 2}
	if err := c.Annul(t.Context(), id, "me"); err != nil || g.annul != id {
		t.Fatal(err, g.annul)
	}
	if err := c.Sim(t.Context(), control.Sim{Passage: "never"}); err != nil || g.sim.Passage != "never" {
		t.Fatal(err, g.sim)
	}
	if st, err := c.Status(t.Context()); err != nil || !strings.Contains(string(st), "closed") {
		t.Fatal(string(st), err)
	}
}

func TestWatchGetsEachVerdict(t *testing.T) {
	s, c, _ := serve(t, &gate{})
	got := make(chan string, 8)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- c.Watch(ctx, func(line []byte) error { got <- string(line); return nil })
	}()
	v := ticket.Verdict{Verdict: ticket.Refuse, Reason: ticket.Invalid, Ticket: "x"}
	for sent := false; !sent; {
		s.Verdict(v) // until the watcher is there
		select {
		case line := <-got:
			if !strings.Contains(line, `"reason":"invalid"`) {
				t.Fatal(line)
			}
			sent = true
		default:
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestASocketLeftBehindIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := control.New(path, &gate{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another gated") {
		t.Fatalf("took a live socket: %v", err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatalf("did not replace a dead socket: %v", err)
	}
}

func TestPathTooLong(t *testing.T) {
	if _, err := control.New("/"+strings.Repeat("x", 120), &gate{}, nil); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Fatal(err)
	}
}
