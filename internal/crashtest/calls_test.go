package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"admitone/internal/ticket"
)

// sabotage has the nth call of a name fail, or be the process's last.
type sabotage struct {
	call  string
	n     int
	errno syscall.Errno // 0: the process is killed before the call is done
}

func (s sabotage) String() string {
	how := "killed"
	if s.errno != 0 {
		how = s.errno.Error()
	}
	return fmt.Sprintf("%s %d: %s", s.call, s.n, how)
}

// arm lets a program's next calls meet a sabotage: those on its store and its marks.
// What it gives tells whether that came to pass.
func (s sabotage) arm(p *program) (hit func() bool) {
	var mu sync.Mutex
	n := 0
	p.disk.SetFault(func(c Call) syscall.Errno {
		mu.Lock()
		defer mu.Unlock()
		if c.Name != s.call || strings.HasPrefix(c.Path, "out/") {
			return 0
		}
		if n++; n != s.n {
			return 0
		}
		if s.errno == 0 {
			p.now.Load().Kill()
			return syscall.EIO
		}
		return s.errno
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return n >= s.n
	}
}

// calls are the names of the calls that programs change their files by.
func calls() []string {
	return []string{"create", "open", "write", "truncate", "fsync", "fdatasync", "flushdir", "rename", "link", "unlink"}
}

// full says that every sabotage is tried, and not one of them for each call.
func full() bool { return os.Getenv("CRASH") == "full" }

// hows gives what becomes of the nth call.
func hows(n int) []syscall.Errno {
	all := []syscall.Errno{0, syscall.EIO, syscall.ENOSPC, syscall.EINTR}
	if full() {
		return all
	}
	return all[n%len(all):][:1]
}

// sweep runs a case for each call that fails, on several stages at a time, for n from
// 1 until there is no nth call of the name any more.
func sweep(t *testing.T, stages int, begin func() func(sabotage) (hit bool)) {
	t.Helper()
	var mu sync.Mutex
	todo, tried := calls(), map[string]int{}
	var wg sync.WaitGroup
	for range stages {
		play := begin()
		wg.Go(func() {
			for {
				mu.Lock()
				if len(todo) == 0 {
					mu.Unlock()
					return
				}
				call := todo[0]
				tried[call]++
				n := tried[call]
				mu.Unlock()
				for _, errno := range hows(n) {
					if t.Failed() {
						return
					}
					if !play(sabotage{call, n, errno}) {
						mu.Lock()
						todo = slices.DeleteFunc(todo, func(c string) bool { return c == call })
						mu.Unlock()
						break
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("tried: %v", tried)
}

// TestGateCalls has each call that a gate makes on its files fail, or be its last,
// from its start over an admission to its end. It stops in an orderly way or goes on;
// it opens for nothing that is not on disk; the next start works, and knows of
// everything that was announced.
func TestGateCalls(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	sweep(t, 3, r.admissions)
}

// TestGateFlushesThatLose has each flush fail and lose what it was to flush, which
// the kernel goes on showing: the next process must ask the disk, and not the cache.
func TestGateFlushesThatLose(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	r.lossy = true
	play := r.admissions()
	for _, call := range []string{"fsync", "fdatasync"} {
		for n := 1; play(sabotage{call, n, syscall.EIO}) && !t.Failed(); n++ {
			t.Logf("%s %d", call, n)
		}
	}
}

// admissions makes a gate that has caught up and is left alone from then on, and
// gives what runs a case on it, each on the same store.
func (r *rig) admissions() func(sabotage) bool {
	t := r.t
	g := r.addGate(0, nil)
	g.start()
	if !r.ready(g, true) || g.stop() != 0 {
		t.Fatal("a gate ended")
	}
	g.tap.Close() // nobody else to know from, and the same calls each time
	before := filepath.Join(r.dir, "before-"+g.name)
	r.must(copyFiles(before, g.disk.Back("data")))
	return func(s sabotage) bool {
		r.must(wipe(g.disk.Back("data")))
		r.must(copyFiles(g.disk.Back("data"), before))
		return r.admission(g, s)
	}
}

// admission is one case: an admission with a sabotage, and the same ticket again
// after the next start.
func (r *rig) admission(g *gate, s sabotage) bool {
	t := r.t
	r.must(wipe(g.disk.Back("run")))
	r.must(g.disk.Recall("data"))
	text, id := r.ticket()
	hit := s.arm(g.program)
	g.start()
	if r.ready(g, false) {
		r.visit(g, text, id)
	}
	g.disk.SetFault(nil)
	if code := g.stop(); !orderly(code, s) {
		t.Errorf("%v: the gate ended with %d", s, code)
	}
	marks, err := os.ReadFile(g.disk.Back("run", "fired"))
	untouched := os.IsNotExist(err) || len(marks) == 0 // the relay has certainly not moved
	admitted := slices.ContainsFunc(g.verdicts(id), func(v ticket.Verdict) bool { return v.Verdict == ticket.Admit })
	g.start()
	if !r.ready(g, false) {
		t.Errorf("%v: the gate does not start any more", s)
		return false
	}
	v, ok := r.visit(g, text, id)
	if !ok || v.Verdict == ticket.Admit && admitted || v.Verdict == ticket.Refuse && (untouched || v.Reason != ticket.AlreadyUsed) {
		t.Errorf("%v: the ticket, admitted before: %v, the relay untouched: %v, is met with %+v", s, admitted, untouched, v)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("%v: after the next start the gate ended with %d", s, code)
	}
	if strings.Contains(g.logged(), "set aside") {
		t.Errorf("%v: a store was set aside", s)
	}
	r.audit(s.String(), Of(g.log.Recording(g.device), "data"))
	return hit()
}

// orderly says whether a program may end so: well, or with a problem for which a new
// start may help, or with one that a person must mend, which a file is that cannot be
// opened, or killed.
func orderly(code int, s sabotage) bool {
	return code == 0 || code == 3 || code == 1 && s.call == "open" || code == -1 && s.errno == 0
}

// TestGateMakesItsStore does the same to a gate that makes its store.
func TestGateMakesItsStore(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	sweep(t, 2, func() func(sabotage) bool {
		g := r.addGate(0, nil)
		g.tap.Close()
		return func(s sabotage) bool {
			r.must(wipe(g.disk.Back("data")))
			r.must(wipe(g.disk.Back("run")))
			g.log.Reset()
			hit := s.arm(g.program)
			g.start()
			r.answers(g)
			g.disk.SetFault(nil)
			if code := g.stop(); !orderly(code, s) {
				t.Errorf("%v: the gate ended with %d", s, code)
			}
			g.start()
			if !r.answers(g) {
				t.Errorf("%v: the gate does not start any more", s)
				return false
			}
			if code := g.stop(); code != 0 || strings.Contains(g.logged(), "set aside") {
				t.Errorf("%v: after the next start the gate ended with %d", s, code)
			}
			r.audit(s.String(), Of(g.log.Recording(g.device), "data"))
			return hit()
		}
	})
}

// answers waits until a gate's socket answers; false: it ended by itself.
func (r *rig) answers(g *gate) bool {
	r.t.Helper()
	r.eventually("gate "+g.name, func() bool {
		_, err := g.state()
		return g.ended() || err == nil
	})
	return !g.ended()
}

// audit holds a program's recording against its disk: when its relay moved, the claim
// was durable already, and at the end all is there that it ever announced.
func (r *rig) audit(what string, rec Recording) {
	r.t.Helper()
	replay, states := NewReplay(rec), []State(nil)
	for i, e := range rec.Events {
		if e.Kind == Said && e.Note.Relay != "" {
			states = append(states, State{Cut: i + 1, Torn: -1})
		}
	}
	for replay.at < len(rec.Events) {
		replay.step()
	}
	states = append(states, State{Cut: len(rec.Events), Keep: replay.pending, Torn: -1})
	for _, f := range bad(judge(r.t, rec, states)) {
		r.t.Errorf("%s: at event %d: %s", what, states[f.State].Cut, f.Problem)
	}
}

// copyFiles copies a folder's files, as only their owner may read them.
func copyFiles(to, from string) error {
	all, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wipe empties a folder.
func wipe(dir string) error {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if err == nil {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return err
}
