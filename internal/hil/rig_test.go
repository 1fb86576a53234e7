//go:build hil

package hil

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"admitone/internal/hil/talk"
	"admitone/internal/ticket"
)

// workDir is where kernels, images and consoles are kept; git ignores it.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../build/hil")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// rig is a board that runs, and who the gate on it is.
type rig struct {
	*Machine
	id    *identity
	marks map[string]int64 // per file, where the next line to look at begins
}

// boot starts a board.
func boot(t *testing.T, b Board, tests ...string) *rig {
	t.Helper()
	dir := workDir(t)
	k, err := FetchKernel(t.Context(), dir, b.Arch, b.Package)
	if err != nil {
		t.Fatal(err)
	}
	id := newIdentity(t)
	image, err := Image(t.Context(), dir, b, k, id.files, tests...)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m, err := Boot(t.Context(), b, k, image, b.workFile(dir, "console"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%s is up with kernel %s after %v", b.Name, k.Version, time.Since(began).Round(100*time.Millisecond))
	r := &rig{Machine: m, id: id, marks: map[string]int64{}}
	r.ask(t, talk.Request{Op: talk.Own, Argv: []string{"/data", "/log", "/etc/gated", "/run", camera, "/dev/gpiochip0"}, Number: gateUser})
	r.ask(t, talk.Request{Op: talk.Timings, Argv: []string{camera, screen}})
	return r
}

// ask has the board do something that it must be able to.
func (r *rig) ask(t *testing.T, q talk.Request) talk.Reply {
	t.Helper()
	p, err := r.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Files on the board.
const (
	verdicts   = "/log/verdicts.jsonl"
	results    = "/log/results.jsonl"
	gateLog    = "/log/gated"
	gateConfig = "/etc/gated/gated.toml"
	camera     = "/dev/video0"
	screen     = "/dev/video1" // what the camera sees
	streamed   = "/tmp/now"    // what the camera's program sees
)

// patience is how long something may take that a gate does at once. An emulated
// processor is slow, and the machine under it may be busy.
const patience = 60 * time.Second

// await waits for a line of a file on the board, after the one that was awaited last.
func (r *rig) await(t *testing.T, path string, words ...string) string {
	t.Helper()
	p, err := r.Ask(t.Context(), talk.Request{Op: talk.Await, Path: path, Offset: r.marks[path], Words: words, Wait: patience})
	if err != nil {
		t.Fatalf("%v\nthe gate's log:\n%s", err, r.log(t))
	}
	r.marks[path] = p.Offset
	return p.Line
}

func (r *rig) log(t *testing.T) string {
	t.Helper()
	b, err := r.File(context.WithoutCancel(t.Context()), gateLog)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// verdict waits for the verdict on a ticket.
func (r *rig) verdict(t *testing.T, tk card) ticket.Verdict {
	t.Helper()
	var v ticket.Verdict
	if err := json.Unmarshal([]byte(r.await(t, verdicts, tk.ID.String())), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// show shows the camera a picture.
func (r *rig) show(t *testing.T, pixels, path string) {
	t.Helper()
	to := screen
	if pixels == "MJPG" {
		to = streamed
	}
	r.ask(t, talk.Request{Op: talk.Show, Argv: []string{to}, Words: []string{pixels}, Path: path})
}

// card takes a ticket that nobody has used.
func (r *rig) card(t *testing.T) card {
	t.Helper()
	if len(r.id.cards) == 0 {
		t.Fatal("no cards left")
	}
	c := r.id.cards[0]
	r.id.cards = r.id.cards[1:]
	return c
}

// play opens the screen in a pixel format, and makes the camera look at it.
func (r *rig) play(t *testing.T, pixels string) {
	t.Helper()
	r.show(t, pixels, hall)
	if pixels == "MJPG" {
		return
	}
	r.ask(t, talk.Request{Op: talk.Control, Path: camera, Words: []string{"OSD Text Mode"}, Number: 2}) // none
	r.ask(t, talk.Request{Op: talk.Control, Path: camera, Words: []string{"Loop Video"}, Number: 1})
}

func (r *rig) hide(t *testing.T, pixels string) {
	t.Helper()
	if pixels != "MJPG" {
		r.ask(t, talk.Request{Op: talk.Hide})
	}
}

// edge waits for an edge of the relay.
func (r *rig) edge(t *testing.T, then since, s setup, active bool) Edge {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := r.AwaitEdge(ctx, then.mark, s.pins.relay, s.level(active))
	if err != nil {
		t.Fatalf("%v\nthe gate's log:\n%s", err, r.log(t))
	}
	return e
}

// idle waits until the relay is inactive, by its level.
func (r *rig) idle(t *testing.T, s setup) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		high, err := r.Level(s.pins.relay)
		if err != nil {
			t.Fatal(err)
		}
		if high == s.level(false) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the relay stays active")
		}
	}
}

// since is a moment in the relay's history.
type since struct {
	mark int
	high bool // its level then
}

func (r *rig) now(t *testing.T, s setup) since {
	t.Helper()
	high, err := r.Level(s.pins.relay)
	if err != nil {
		t.Fatal(err)
	}
	mark, err := r.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return since{mark, high}
}

// history checks that the relay had these edges since then, and no others. Where
// the line had the level of an active relay before anybody took it, by its pull or
// as it was left at another polarity, taking it is an edge, too.
func (r *rig) history(t *testing.T, then since, s setup, actives ...bool) {
	t.Helper()
	if then.high == s.level(true) {
		actives = append([]bool{false}, actives...)
	}
	var got []bool
	edges, err := r.Since(t.Context(), then.mark, s.pins.relay)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edges {
		got = append(got, e.High == s.level(true))
	}
	if !slices.Equal(got, actives) {
		t.Errorf("the relay's edges are %v, want active %v", edges, actives)
	}
}

// keepers finds the processes that have lines.
func (r *rig) keepers(t *testing.T) (out []talk.Process) {
	t.Helper()
	for _, p := range r.ask(t, talk.Request{Op: talk.List}).Processes {
		if strings.Join(p.Argv, " ") == "/gated keeper" {
			out = append(out, p)
		}
	}
	return out
}

func (r *rig) process(t *testing.T, pid int) talk.Process {
	t.Helper()
	for _, p := range r.ask(t, talk.Request{Op: talk.List}).Processes {
		if p.PID == pid {
			return p
		}
	}
	t.Fatalf("process %d is gone", pid)
	return talk.Process{}
}

// claimed checks the ticket's claim in the store, as the board's disk has it.
func (r *rig) claimed(t *testing.T, tk card, want ticket.State) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.db")
	b, err := r.File(t.Context(), "/data/gate.db")
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store := r.id.open(t, path)
	defer store.Close()
	view, err := store.View(tk.Unit())
	if err != nil {
		t.Fatal(err)
	}
	if len(view.Claims) != 1 || view.Claims[0].Claim.State != want {
		t.Errorf("the store has these claims of the ticket: %+v, want one that is %v; the gate's log:\n%s", view.Claims, want, r.log(t))
	}
}
