package alive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rig runs an Alive in virtual time, with parts that stand still on demand.
type rig struct {
	mu    sync.Mutex
	all   []string // every assignment, in order
	hang  map[string]chan struct{}
	fail  map[string]error
	words string
	log   strings.Builder
	stop  func() error
}

// told gives every assignment so far.
func (r *rig) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// set changes what the parts and the status do.
func (r *rig) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func start(t *testing.T, watchdog time.Duration, parts ...string) *rig {
	r := &rig{hang: map[string]chan struct{}{}, fail: map[string]error{}, words: "well"}
	o := Options{
		Manager: Manager{Watchdog: watchdog, Send: func(s string) error {
			r.set(func() { r.all = append(r.all, strings.Split(s, "\n")...) })
			return nil
		}},
		Status: func() (s string) { r.set(func() { s = r.words }); return s },
		Log:    slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	for _, name := range parts {
		o.Proofs = append(o.Proofs, Proof{Name: name, Check: func(context.Context) error {
			var wait chan struct{}
			var err error
			r.set(func() { wait, err = r.hang[name], r.fail[name] })
			if wait != nil {
				<-wait
			}
			return err
		}})
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	r.stop = func() error { cancel(); return <-ended }
	return r
}

// pass lets time pass and gives what the manager was told in it.
func (r *rig) pass(d time.Duration) []string {
	synctest.Wait()
	from := len(r.told())
	time.Sleep(d)
	synctest.Wait()
	return r.told()[from:]
}

func count(told []string, what string) (n int) {
	for _, s := range told {
		if s == what {
			n++
		}
	}
	return n
}

func TestFeedsWhileEverythingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, 20*time.Second, "the loop", "the store")
		r.pass(100 * time.Millisecond)
		if count(r.told(), "READY=1") == 0 {
			t.Fatalf("not ready after both moved: %q", r.told())
		}
		for range 50 {
			if n := count(r.pass(20*time.Second), "WATCHDOG=1"); n < 4 {
				t.Fatalf("fed %d times within one limit, want at least 4", n)
			}
		}
		if n := count(r.told(), "READY=1"); n != 1 {
			t.Errorf("ready %d times", n)
		}
		if n := count(r.told(), "STATUS=well"); n != 1 {
			t.Errorf("the same status was sent %d times", n)
		}
		r.set(func() { r.words = "no picture\nREADY=0" })
		if told := r.pass(3 * time.Second); !slices.Contains(told, "STATUS=no picture READY=0") {
			t.Errorf("changed status is not told, on one line: %q", told)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if last := r.told()[len(r.told())-2:]; last[0] != "STOPPING=1" {
			t.Errorf("the end is %q", last)
		}
	})
}

// Whichever part it is, and whether it hangs or says that it cannot: it alone
// stops the feeding, within the limit, and when it moves again all is well.
func TestOneStuckPartStopsTheFeeding(t *testing.T) {
	parts := []string{"the loop", "the store", "the turnstile"}
	for i, name := range append(parts, parts...) {
		fails := i >= len(parts)
		t.Run(fmt.Sprintf("%s fails=%v", name, fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, 20*time.Second, parts...)
				r.pass(30 * time.Second)
				held := make(chan struct{})
				want := "STATUS=" + name + " stands still"
				if fails {
					r.set(func() { r.fail[name] = errors.New("no") })
					want = "STATUS=" + name + ": no"
				} else {
					r.set(func() { r.hang[name] = held })
				}
				told := r.pass(10 * time.Second)
				if !slices.Contains(told, want) {
					t.Errorf("told %q, want %q", told, want)
				}
				if n := count(r.pass(time.Hour), "WATCHDOG=1"); n != 0 {
					t.Errorf("fed %d times while %s stood still", n, name)
				}
				if n := strings.Count(r.log.String(), "not fed"); n != 1 {
					t.Errorf("logged %d times:\n%s", n, r.log.String())
				}
				r.set(func() { delete(r.hang, name); delete(r.fail, name) })
				close(held)
				if told := r.pass(10 * time.Second); count(told, "WATCHDOG=1") == 0 || !slices.Contains(told, "STATUS=well") {
					t.Errorf("moves again, and the manager hears %q", told)
				}
				if err := r.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestNotReadyBeforeEverythingMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		r := start(t, 20*time.Second, "the loop", "the store")
		r.set(func() { r.hang["the store"] = held }) // before its first check: nothing ran yet
		r.pass(time.Hour)
		if count(r.told(), "READY=1")+count(r.told(), "WATCHDOG=1") != 0 {
			t.Errorf("told %q before the store was there", r.told())
		}
		if !slices.Contains(r.told(), "STATUS=starts: the store has not started") {
			t.Errorf("the status does not say what is waited for: %q", r.told())
		}
		if err := r.stop(); err != nil { // a part that hangs does not hold up the end
			t.Error(err)
		}
		close(held)
	})
}

func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{
			Proofs: []Proof{{Name: "x", Check: func(context.Context) error { t.Error("asked"); return nil }}},
			Status: func() string { return "" }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestSystemdReadsTheEnvironment(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if m, err := Systemd(); err != nil || m.Send != nil {
		t.Errorf("without a socket: %+v, %v", m, err)
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/notify")
	t.Setenv("WATCHDOG_USEC", "20000000")
	m, err := Systemd()
	if err != nil || m.Watchdog != 20*time.Second {
		t.Errorf("%+v, %v", m, err)
	}
	if m.Send == nil || m.Send("READY=1") == nil {
		t.Error("a socket that is not there takes messages")
	}
	t.Setenv("WATCHDOG_USEC", "soon")
	if _, err := Systemd(); err == nil {
		t.Error("a limit of \"soon\" is taken")
	}
}
