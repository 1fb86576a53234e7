package crashtest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// damages are what a disk, or somebody at it, can do to a store's file.
func damages() map[string]func(path string, content []byte) error {
	put := func(change func([]byte) []byte) func(string, []byte) error {
		return func(path string, content []byte) error {
			return os.WriteFile(path, change(bytes.Clone(content)), 0o600)
		}
	}
	cut := func(n int) func(string, []byte) error {
		return put(func(b []byte) []byte { return b[:n] })
	}
	return map[string]func(string, []byte) error{
		"flipped bits":               put(flipped),
		"zeroed sectors":             put(zeroed),
		"pages that point at selves": put(cyclic),
		"noise":                      put(func(b []byte) []byte { return bytes.Repeat([]byte("noise!"), len(b)/6) }),
		"an empty file":              cut(0),
		"cut at a byte":              cut(1),
		"cut in the first page":      cut(pageSize - sectorSize),
		"cut between the meta pages": cut(pageSize),
		"cut behind the meta pages":  cut(2 * pageSize),
		"cut in the third page":      cut(2*pageSize + sectorSize),
		"cut in the fifth page":      cut(4*pageSize + 3*sectorSize),
		"a folder in its place":      func(path string, _ []byte) error { return os.MkdirAll(filepath.Join(path, "in it"), 0o700) },
		"a socket in its place":      func(path string, _ []byte) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
	}
}

// flipped flips a bit in each 64 bytes behind the meta pages.
func flipped(b []byte) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 2 * pageSize; i+64 <= len(b); i += 64 {
		b[i+rng.IntN(64)] ^= 1 << rng.IntN(8)
	}
	return b
}

// zeroed has every second sector behind the meta pages come back as zeros.
func zeroed(b []byte) []byte {
	for i := 2 * pageSize; i+2*sectorSize <= len(b); i += 2 * sectorSize {
		clear(b[i : i+sectorSize])
	}
	return b
}

// cyclic makes each page with entries a branch page whose one child it is itself
// (bbolt's page: u64 id, u16 flags, u16 count, u32 overflow; its branch element: u32
// pos, u32 size of the key, u64 page).
func cyclic(b []byte) []byte {
	const branch, leaf = 1, 2
	for i := 2 * pageSize; i+pageSize <= len(b); i += pageSize {
		p := b[i : i+pageSize]
		if f := binary.LittleEndian.Uint16(p[8:]); f != branch && f != leaf {
			continue
		}
		binary.LittleEndian.PutUint16(p[8:], branch)
		binary.LittleEndian.PutUint16(p[10:], 1)
		binary.LittleEndian.PutUint32(p[16:], 16)
		binary.LittleEndian.PutUint32(p[20:], 1)
		binary.LittleEndian.PutUint64(p[24:], uint64(i/pageSize))
	}
	return b
}

// startLimit bounds how long a gate may take to work again after its store was lost,
// on a machine that does much else.
const startLimit = 30 * time.Second

// TestDamagedGateStore damages a gate's store in every way. The gate sets it aside,
// says so, and works again within a time limit, without a second start: it refuses
// what it and its peer admitted, and lets the next one in.
func TestDamagedGateStore(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g, peer := r.addGate(0, nil), r.addGate(0, nil)
	for _, x := range r.gates {
		x.start()
		r.ready(x, true)
	}
	theirs, theirID := r.ticket()
	r.visit(peer, theirs, theirID)
	store := g.disk.Back("data", "gate.db")
	ways := damages()
	ways["another gate's store"] = func(path string, _ []byte) error { return copyFile(path, peer.disk.Back("data", "gate.db")) }
	ways["the ledger's store"] = func(path string, _ []byte) error { return copyFile(path, r.ledger.disk.Back("data", "ledger.db")) }
	for name, damage := range ways {
		mine, myID := r.ticket()
		if v, _ := r.visit(g, mine, myID); v.Verdict != ticket.Admit {
			t.Fatalf("%s: before it, a visitor: %+v", name, v)
		}
		r.level(myID)
		if code := g.stop(); code != 0 {
			t.Errorf("%s: before it, the gate ended with %d", name, code)
		}
		content, err := os.ReadFile(store)
		r.must(err)
		r.must(os.Remove(store))
		r.must(damage(store, content))
		r.lives(g, name, func(v func(string, ticket.ID) ticket.Verdict) {
			if got := v(mine, myID); got.Reason != ticket.AlreadyUsed || got.FirstGate != "1" {
				t.Errorf("%s: what it had admitted itself: %+v", name, got)
			}
			if got := v(theirs, theirID); got.Reason != ticket.AlreadyUsed || got.FirstGate != "2" {
				t.Errorf("%s: what its peer had admitted: %+v", name, got)
			}
		})
	}
	kept, err := filepath.Glob(store + ".damaged-*")
	if r.must(err); len(kept) != len(ways) {
		t.Errorf("%d stores were kept of %d", len(kept), len(ways))
	}
}

// lives starts a gate whose store cannot be used, and holds it to what it must do.
func (r *rig) lives(g *gate, what string, check func(func(string, ticket.ID) ticket.Verdict)) {
	r.t.Helper()
	asides := strings.Count(g.logged(), "is set aside")
	began := time.Now()
	g.start()
	if !r.ready(g, true) {
		r.t.Fatalf("%s: the gate ended", what)
	}
	if took := time.Since(began); took > startLimit {
		r.t.Errorf("%s: the gate worked again after %v", what, took)
	}
	if n := strings.Count(g.logged(), "is set aside") - asides; n != 1 {
		r.t.Errorf("%s: it was said %d times that a store was set aside", what, n)
	}
	check(func(text string, id ticket.ID) ticket.Verdict {
		v, _ := r.visit(g, text, id)
		return v
	})
	next, nextID := r.ticket()
	if v, ok := r.visit(g, next, nextID); !ok || v.Verdict != ticket.Admit {
		r.t.Errorf("%s: the next one: %+v", what, v)
	}
}

// level waits until the ledger holds the end of a claim on a ticket.
func (r *rig) level(id ticket.ID) {
	r.t.Helper()
	r.eventually("the ledger's word on "+id.String(), func() bool {
		got, err := r.client.Ticket(r.t.Context(), ticket.FormatA1, id)
		r.must(err)
		return slices.ContainsFunc(got.Claims, func(c ledger.TicketClaim) bool { return c.State == ticket.Admitted })
	})
}

// TestMetaPageLost damages the newest of a gate's two meta pages. What bbolt shows
// then lacks the last commit, and must not be taken for knowledge: the gate keeps
// what there is, says so, and catches up.
func TestMetaPageLost(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g := r.addGate(0, nil)
	g.start()
	r.ready(g, true)
	text, id := r.ticket()
	r.visit(g, text, id)
	r.level(id)
	g.kill()
	store := g.disk.Back("data", "gate.db")
	b, err := os.ReadFile(store)
	r.must(err)
	newest, txid := 0, uint64(0)
	for page := range 2 {
		if n := binary.LittleEndian.Uint64(b[page*pageSize+16+48:]); n > txid {
			newest, txid = page, n
		}
	}
	b[newest*pageSize+20] ^= 1
	r.must(os.WriteFile(store, b, 0o600))
	g.start()
	r.ready(g, true)
	if v, _ := r.visit(g, text, id); v.Reason != ticket.AlreadyUsed {
		t.Errorf("who had been admitted: %+v", v)
	}
	for _, said := range []string{"the last commit may be missing", "catching up", "caught up"} {
		if !strings.Contains(g.logged(), said) {
			t.Errorf("the gate did not say %q", said)
		}
	}
	if strings.Contains(g.logged(), "is set aside") {
		t.Error("a store was set aside that holds all but one commit")
	}
}

// TestUnreadableGateStore: the disk cannot give the file: not to open it, or not to
// read it.
func TestUnreadableGateStore(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g := r.addGate(0, nil)
	g.start()
	r.ready(g, true)
	for _, call := range []string{"open", "read"} {
		text, id := r.ticket()
		r.visit(g, text, id)
		r.level(id)
		if code := g.stop(); code != 0 {
			t.Errorf("%s: before it, the gate ended with %d", call, code)
		}
		bad := &spoiled{call: call}
		g.disk.SetFault(bad.fault)
		r.lives(g, "a file that cannot be "+call, func(v func(string, ticket.ID) ticket.Verdict) {
			if got := v(text, id); got.Reason != ticket.AlreadyUsed {
				t.Errorf("%s: what it had admitted: %+v", call, got)
			}
		})
		g.disk.SetFault(nil)
	}
}

// spoiled is a disk that cannot give one file, until it has another name.
type spoiled struct {
	call string
	gone atomic.Bool
}

func (s *spoiled) fault(c Call) syscall.Errno {
	const path = "data/gate.db"
	if c.Path != path {
		return 0
	}
	if c.Name == "rename" {
		s.gone.Store(true)
	}
	if c.Name == s.call && !s.gone.Load() {
		return syscall.EIO
	}
	return 0
}

// TestDamagedLedgerStore damages a ledger's store in every way. The ledger does not
// start, and says what to do. With a backup in its place it works again; so it does
// with nothing in its place: the gates bring back what they hold.
func TestDamagedLedgerStore(t *testing.T) {
	t.Parallel()
	r := stand(t, 0)
	g := r.addGate(0, nil)
	g.start()
	r.ready(g, true)
	text, id := r.ticket()
	r.visit(g, text, id)
	r.level(id)
	if code := r.ledger.stop(); code != 0 {
		t.Errorf("the ledger ended with %d", code)
	}
	store := r.ledger.disk.Back("data", "ledger.db")
	content, err := os.ReadFile(store)
	r.must(err)
	ways := damages()
	ways["a gate's store"] = func(path string, _ []byte) error { return copyFile(path, g.disk.Back("data", "gate.db")) }
	for name, damage := range ways {
		r.must(os.RemoveAll(store))
		r.must(damage(store, content))
		before := len(r.ledger.logged())
		r.ledger.start()
		if code := r.ledger.wait(); code != 1 {
			t.Errorf("%s: the ledger ended with %d", name, code)
		}
		said := r.ledger.logged()[before:]
		todo := "put a backup in its place"
		if name == "a gate's store" {
			todo = "check the path in the configuration"
		}
		if !strings.Contains(said, todo) || !strings.Contains(said, "ledger.db") {
			t.Errorf("%s: the ledger said: %s", name, said)
		}
	}
	r.must(os.RemoveAll(store))
	r.must(os.WriteFile(store, content, 0o600))
	r.startLedger()
	r.works(g, "with a backup in its place", text, id)
	if code := r.ledger.stop(); code != 0 {
		t.Errorf("the ledger ended with %d", code)
	}
	r.must(os.Rename(store, store+".away"))
	r.startLedger()
	r.works(g, "with nothing in its place", text, id)
}

// works waits until a ledger that was stopped holds what its gate holds, and serves.
func (r *rig) works(g *gate, what, text string, id ticket.ID) {
	r.t.Helper()
	r.level(id)
	r.eventually(what+": the programme", func() bool {
		p, err := r.client.Programme(r.t.Context())
		return err == nil && p.Version > 0
	})
	r.ready(g, true)
	next, nextID := r.ticket()
	if v, _ := r.visit(g, next, nextID); v.Verdict != ticket.Admit {
		r.t.Errorf("%s: the next one: %+v", what, v)
	}
	if v, _ := r.visit(g, text, id); v.Reason != ticket.AlreadyUsed {
		r.t.Errorf("%s: who had been admitted: %+v", what, v)
	}
	r.level(nextID)
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
