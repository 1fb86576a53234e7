package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"admitone/internal/pictures/demo"
	"admitone/internal/ticket"
)

// How the pictures are played: shown for long enough to be read and passed, then
// gone for longer than rearm, so that each is a presentation of its own. The
// second gate of a pair gets it 200 ms after the first.
const (
	showFor   = 1200 * time.Millisecond
	goneFor   = 1800 * time.Millisecond
	pairApart = 200 * time.Millisecond
)

// runDemo demonstrates with the programs beside this one.
func runDemo(ctx context.Context, folder string, t Terminal) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start demonstration: %w", err)
	}
	return demonstrate(ctx, filepath.Dir(exe), folder, t)
}

// demonstrate is `make run`: a lab with cameras and the public demo key, to which
// the pictures of a folder are played. It runs until ctx ends, and leaves nothing.
func demonstrate(ctx context.Context, bin, folder string, t Terminal) error {
	stdout := t.Out
	frames, err := readFrames(folder)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "admitone-")
	if err != nil {
		return fmt.Errorf("start demonstration: %w", err)
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(stdout, "Starting a ledger, a broker and two gates …")
	programme := demo.Programme()
	l, err := Up(ctx, Options{
		Dir: filepath.Join(dir, "lab"), Gates: 2, Bin: bin, Cameras: true, Demo: true,
		TicketKey: demo.Key(), Programme: &programme,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer l.Down()
	key, err := os.ReadFile(l.at.readKey())
	if err != nil {
		return fmt.Errorf("start demonstration: %w", err)
	}
	p := &player{lab: l, folder: folder, t: t, seen: make(chan ticket.Verdict, 64)}
	fmt.Fprintf(stdout, `
  the operators' page   %s/#key=%s
  show a picture        cp FILE.jpg %s/   (and remove it again)
  scan a text           echo "TEXT" > %s
  sell tickets          curl %s/v1/orders -H "Authorization: Bearer $(cat %s)" \
                          -H 'Idempotency-Key: order-1' -d '{"event":"%s","tickets":4,"amount":4900,"currency":"EUR"}'
  the gates' files      %s

`, l.url, strings.TrimSpace(string(key)), l.at.gate(1, "camera"), l.at.gate(1, "line"), l.url, l.at.orderKey(), demo.Event, l.at.gate(1))
	eg, ctx := errgroup.WithContext(ctx)
	for k := 1; k <= 2; k++ {
		eg.Go(func() error { return p.watch(ctx, k) })
	}
	eg.Go(func() error {
		if err := p.play(ctx, frames); err != nil {
			return err
		}
		p.say("\nAll %d pictures were shown; %d did not give what frames.json says. Everything runs on until Ctrl-C.\n\n", len(frames), p.wrong)
		<-ctx.Done()
		return nil
	})
	err = eg.Wait()
	fmt.Fprintln(stdout, "Stopping …")
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func readFrames(folder string) (frames []demo.Frame, err error) {
	b, err := os.ReadFile(filepath.Join(folder, "frames.json"))
	if err != nil {
		return nil, fmt.Errorf("read pictures: %w (run it at the top of the project)", err)
	}
	if err := json.Unmarshal(b, &frames); err != nil {
		return nil, fmt.Errorf("read pictures: %w", err)
	}
	return frames, nil
}

// player shows pictures to the gates and compares what they say.
type player struct {
	lab    *Lab
	folder string
	seen   chan ticket.Verdict
	wrong  int

	mu sync.Mutex // one line at a time
	t  Terminal
}

func (p *player) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.t.Out, format, args...)
}

// watch prints what a gate says.
func (p *player) watch(ctx context.Context, k int) error {
	return p.lab.Gate(k).Watch(ctx, func(line []byte) error {
		var v ticket.Verdict
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("watch gate %d: %w", k, err)
		}
		p.mu.Lock()
		err := p.t.Verdict(v)
		p.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case p.seen <- v:
		default: // nobody compares any more
		}
		return nil
	})
}

func (p *player) play(ctx context.Context, frames []demo.Frame) error {
	for _, f := range frames {
		for len(p.seen) > 0 {
			<-p.seen
		}
		p.say("%s to gate %s\n", strings.TrimSuffix(f.File, filepath.Ext(f.File)), gates(f.Gates))
		for i, k := range f.Gates {
			if i > 0 && !rest(ctx, pairApart) {
				return nil
			}
			if err := p.hold(k, f.File); err != nil {
				return err
			}
		}
		if !rest(ctx, showFor) {
			return nil
		}
		for _, k := range f.Gates {
			if err := os.Remove(p.lab.at.gate(k, "camera", f.File)); err != nil {
				return fmt.Errorf("take picture away: %w", err)
			}
		}
		if !rest(ctx, goneFor) {
			return nil
		}
		p.compare(f)
	}
	return nil
}

func gates(ks []int) string {
	if len(ks) > 1 {
		return "1, then to gate 2 within 200 ms"
	}
	return fmt.Sprint(ks[0])
}

// hold puts a picture in front of gate k's camera, under its name at once.
func (p *player) hold(k int, name string) error {
	b, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		return fmt.Errorf("show picture: %w", err)
	}
	hidden := p.lab.at.gate(k, "camera", "."+name)
	if err := os.WriteFile(hidden, b, 0o600); err != nil {
		return fmt.Errorf("show picture: %w", err)
	}
	return os.Rename(hidden, p.lab.at.gate(k, "camera", name))
}

// compare judges the final verdicts of one picture.
func (p *player) compare(f demo.Frame) {
	last := map[string]ticket.Reason{} // by gate and ticket
	for len(p.seen) > 0 {
		v := <-p.seen
		last[v.Gate+" "+v.Ticket] = v.Reason
	}
	got := map[ticket.Reason]int{}
	for _, r := range last {
		got[r]++
	}
	want := map[ticket.Reason]int{}
	for _, r := range f.Reasons {
		want[r]++
	}
	if f.Kind == demo.BothGates {
		want[ticket.AlreadyUsed]++
	}
	for _, r := range []map[ticket.Reason]int{got, want} {
		for reason := range r {
			if got[reason] != want[reason] {
				p.wrong++
				p.say("  ! expected %v, got %v\n", want, got)
				return
			}
		}
	}
}

// rest waits, and reports false when ctx ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
