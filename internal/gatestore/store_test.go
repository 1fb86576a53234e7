package gatestore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ticket"
)

func unit(n byte) ticket.Unit {
	return ticket.Unit{Event: "e", Format: ticket.FormatA1, Ticket: ticket.ID{n}}
}

func tmpl(u ticket.Unit) ticket.Claim {
	return ticket.Claim{Unit: u, Place: "North", Lease: 25 * time.Second, Claimed: ticket.Stamp{Wall: 1e18}}
}

func open(t *testing.T, s kv.Store, device ticket.Source) *Store {
	t.Helper()
	st, err := New(t.Context(), s, Options{Device: device})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Check(); err != nil && !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrClosed) {
			t.Error(err)
		}
	})
	return st
}

func claim(t *testing.T, st *Store, u ticket.Unit) ticket.Made {
	t.Helper()
	m, err := st.Claim(t.Context(), tmpl(u), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func end(t *testing.T, st *Store, id ticket.ClaimID, to ticket.State) ticket.Record {
	t.Helper()
	rec, ok, err := st.Revise(t.Context(), id, func(c *ticket.Claim) bool { c.State = to; return true })
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return rec
}

func arrival(t *testing.T, r ticket.Record) ticket.Arrival {
	t.Helper()
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return ticket.Arrival{Stream: r.Stream(), Pos: r.Pos, Raw: b, Record: &r}
}

func learn(t *testing.T, st *Store, rs ...ticket.Record) ticket.Learned {
	t.Helper()
	var as []ticket.Arrival
	for _, r := range rs {
		as = append(as, arrival(t, r))
	}
	l, err := st.Learn(t.Context(), as)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneUnitOneClaim(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	first := claim(t, st, unit(1))
	if first.Reason != ticket.OK || first.Record.Pos != 1 || first.Record.Claim.ID.Pos != 1 {
		t.Fatalf("first claim: %+v", first)
	}
	if m := claim(t, st, unit(1)); m.Reason != ticket.InProgress || m.Cite.ID != first.Record.Claim.ID {
		t.Fatalf("second claim while pending: %+v", m)
	}
	end(t, st, first.Record.Claim.ID, ticket.Admitted)
	m := claim(t, st, unit(1))
	if m.Reason != ticket.AlreadyUsed || m.Cite.Place != "North" || m.Cite.Claimed.Wall != 1e18 {
		t.Fatalf("second claim after admission: %+v", m)
	}
	row, ok, err := st.Row(unit(1))
	if err != nil || !ok || row.Place != "North" || string(row.Result) != "admitted" || row.Holder != first.Record.Claim.ID.String() {
		t.Fatalf("row: %+v %v %v", row, ok, err)
	}
}

func TestAnnulFreesAndNamesWhatWasFreed(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	first := claim(t, st, unit(1)).Record.Claim
	end(t, st, first.ID, ticket.Annulled)
	second := claim(t, st, unit(1))
	if second.Reason != ticket.OK {
		t.Fatalf("claim after annul: %+v", second)
	}
	after := second.Record.Claim.After
	if len(after) != 1 || after[0] != (ticket.Ref{Claim: first.ID, Rev: 1}) {
		t.Fatalf("after: %+v", after)
	}
	row, _, _ := st.Row(unit(1))
	if row.Holder != second.Record.Claim.ID.String() || row.Done {
		t.Fatalf("the row was not taken over in place: %+v", row)
	}
	// A late result of the earlier holder does not touch the row of the later one.
	end(t, st, first.ID, ticket.Admitted)
	row, _, _ = st.Row(unit(1))
	if row.Holder == "" || string(row.Result) != "" && row.Holder == second.Record.Claim.ID.String() {
		t.Fatalf("a late result changed another holder's row: %+v", row)
	}
}

// Two goroutines claim each of many units at once: one wins each, always.
func TestRacingClaims(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	for i := range 10000 {
		u := ticket.Unit{Event: "e", Format: ticket.FormatA1, Ticket: ticket.ID{byte(i), byte(i >> 8)}}
		var made [2]ticket.Made
		var wg sync.WaitGroup
		for k := range made {
			wg.Go(func() {
				var err error
				if made[k], err = st.Claim(context.Background(), tmpl(u), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		won, lost := made[0], made[1]
		if won.Reason != ticket.OK {
			won, lost = lost, won
		}
		if won.Reason != ticket.OK || lost.Reason != ticket.InProgress || lost.Cite.ID != won.Record.Claim.ID {
			t.Fatalf("round %d: %+v and %+v", i, made[0], made[1])
		}
	}
}

func TestPositionsAreGaplessOverCrashes(t *testing.T) {
	mem := kv.NewMem()
	var last ticket.Run
	for opening := range 5 {
		st := open(t, mem, "a")
		if st.Run() == last {
			t.Fatal("a run was used twice")
		}
		if st.Fresh() != (opening == 0) {
			t.Fatalf("opening %d: fresh is %v", opening, st.Fresh())
		}
		last = st.Run()
		for i := range 7 {
			m := claim(t, st, unit(byte(opening*10+i+1)))
			if m.Record.Pos != uint64(i+1) {
				t.Fatalf("position %d, want %d", m.Record.Pos, i+1)
			}
		}
		own, err := st.Own()
		if err != nil || len(own) != opening+1 || own[opening].Run != last || own[opening].Pos != 7 {
			t.Fatalf("own runs: %+v %v", own, err)
		}
		mem = mem.Crash()
	}
	st := open(t, mem, "a")
	saved, err := st.Saved()
	if err != nil || len(saved.Open) != 35 {
		t.Fatalf("open claims after crashes: %d %v", len(saved.Open), err)
	}
}

func TestAnotherDevicesStoreIsRefused(t *testing.T) {
	mem := kv.NewMem()
	open(t, mem, "a")
	var owner *OwnerError
	if _, err := New(t.Context(), mem, Options{Device: "b"}); !errors.As(err, &owner) || owner.Have != "a" || owner.Want != "b" {
		t.Fatalf("a store of another device: %v", err)
	}
}

func TestFailedCommitIsUnknown(t *testing.T) {
	mem := kv.NewMem()
	st := open(t, mem, "a")
	mem.FailNext(kv.FailKept)
	if _, err := st.Claim(t.Context(), tmpl(unit(1)), nil, nil); !errors.Is(err, kv.ErrUnknown) {
		t.Fatalf("failed commit: %v", err)
	}
	if _, err := st.Claim(t.Context(), tmpl(unit(2)), nil, nil); !errors.Is(err, kv.ErrUnknown) {
		t.Fatalf("claim after a failed commit: %v", err)
	}
}

func TestLearnWhateverTheOrder(t *testing.T) {
	peer := open(t, kv.NewMem(), "b")
	a := claim(t, peer, unit(1)).Record
	b := end(t, peer, a.Claim.ID, ticket.Admitted)
	c := claim(t, peer, unit(2)).Record
	d := end(t, peer, c.Claim.ID, ticket.Annulled)
	records := []ticket.Record{a, b, c, d}
	for _, order := range permutations(4) {
		st := open(t, kv.NewMem(), "a")
		for _, i := range order {
			learn(t, st, records[i])
			learn(t, st, records[i])
		}
		cur, err := st.Cursors()
		if err != nil || len(cur) != 1 || cur[0].Pos != 4 {
			t.Fatalf("order %v: cursors %+v %v", order, cur, err)
		}
		if m := claim(t, st, unit(1)); m.Reason != ticket.AlreadyUsed {
			t.Fatalf("order %v: unit 1: %+v", order, m)
		}
		if m := claim(t, st, unit(2)); m.Reason != ticket.OK {
			t.Fatalf("order %v: unit 2: %+v", order, m)
		}
	}
}

func TestGapHoldsTheCursorNotTheKnowledge(t *testing.T) {
	peer := open(t, kv.NewMem(), "b")
	a, b, c := claim(t, peer, unit(1)).Record, claim(t, peer, unit(2)).Record, claim(t, peer, unit(3)).Record
	st := open(t, kv.NewMem(), "a")
	learn(t, st, a)
	learn(t, st, c)
	if cur, _ := st.Cursors(); cur[0].Pos != 1 {
		t.Fatalf("cursor %d, want 1", cur[0].Pos)
	}
	if m := claim(t, st, unit(3)); m.Reason != ticket.InProgress {
		t.Fatalf("a record beyond the gap does not count: %+v", m)
	}
	learn(t, st, b)
	if cur, _ := st.Cursors(); cur[0].Pos != 3 {
		t.Fatalf("cursor %d, want 3", cur[0].Pos)
	}
	recs, from, _, head, err := st.Read(peer.Stream(), 1, 10, 1<<20)
	if err != nil || len(recs) != 2 || from != 2 || head != 3 {
		t.Fatalf("read: %d from %d head %d %v", len(recs), from, head, err)
	}
}

func feed(pos, version uint64, subject string, f ticket.Feed) ticket.Record {
	f.Subject, f.Version, f.At = subject, version, 1
	return ticket.Record{Source: "ledger/1", Run: 9, Pos: pos, Feed: &f}
}

func TestFeeds(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	u := unit(1)
	held := claim(t, st, u).Record.Claim
	rel := ticket.FeedRelease{Claim: held.ID, Rev: 0, Unit: u}
	learn(t, st, feed(1, 1, ticket.ReleaseSubject(held.ID), ticket.Feed{Release: &rel}))
	if m := claim(t, st, u); m.Reason != ticket.OK {
		t.Fatalf("claim after release: %+v", m)
	}
	rev := ticket.FeedRevoke{Format: ticket.FormatA1, Ticket: ticket.ID{2}, Revoked: true}
	learn(t, st, feed(2, 2, ticket.RevokeSubject(ticket.FormatA1, ticket.ID{2}), ticket.Feed{Revoke: &rev}))
	if m := claim(t, st, unit(2)); m.Reason != ticket.Revoked {
		t.Fatalf("claim on a revoked ticket: %+v", m)
	}
	old := ticket.FeedRevoke{Format: ticket.FormatA1, Ticket: ticket.ID{2}, Revoked: false}
	learn(t, st, feed(3, 1, ticket.RevokeSubject(ticket.FormatA1, ticket.ID{2}), ticket.Feed{Revoke: &old}))
	if m := claim(t, st, unit(2)); m.Reason != ticket.Revoked {
		t.Fatalf("an older version of a feed won: %+v", m)
	}
}

func TestCorrectOnce(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	c := tmpl(unit(1))
	c.Claimed = ticket.Stamp{Wall: 5, Boot: ticket.BootID{1}, Up: 100, Class: ticket.Untrusted}
	if _, err := st.Claim(t.Context(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	fix := func(s *ticket.Stamp) { s.Wall = 7e17 }
	if recs, err := st.Correct(t.Context(), ticket.BootID{2}, 10, fix); err != nil || len(recs) != 0 {
		t.Fatalf("corrected a claim of another boot: %v %v", recs, err)
	}
	recs, err := st.Correct(t.Context(), ticket.BootID{1}, 10, fix)
	if err != nil || len(recs) != 1 || recs[0].Claim.Rev != 1 || recs[0].Claim.Claimed.Class != ticket.Trusted || recs[0].Claim.Claimed.Wall != 7e17 || recs[0].Claim.State != ticket.Pending {
		t.Fatalf("correction: %+v %v", recs, err)
	}
	if recs, _ := st.Correct(t.Context(), ticket.BootID{1}, 10, fix); len(recs) != 0 {
		t.Fatal("corrected twice")
	}
}

func TestPruneOnlyWhatIsClosedAndReceived(t *testing.T) {
	mem := kv.NewMem()
	st := open(t, mem, "a")
	id := claim(t, st, unit(1)).Record.Claim.ID
	prune := func() int {
		t.Helper()
		for more, err := true, error(nil); more; {
			if more, err = st.Prune(t.Context(), "e", 1); err != nil {
				t.Fatal(err)
			}
		}
		v, err := st.View(unit(1))
		if err != nil {
			t.Fatal(err)
		}
		return len(v.Claims)
	}
	if prune() != 1 {
		t.Fatal("pruned an open event")
	}
	learn(t, st, feed(1, 1, ticket.ClosedSubject("e"), ticket.Feed{Closed: &ticket.FeedClosed{Event: "e"}}))
	if prune() != 1 {
		t.Fatal("pruned what the ledger has not received")
	}
	receive := func(n uint64) {
		high := st.Stream()
		if err := st.SetReceipts(t.Context(), []ticket.StreamPos{{Source: high.Source, Run: high.Run, Pos: n}}); err != nil {
			t.Fatal(err)
		}
	}
	receive(1)
	if prune() != 1 {
		t.Fatal("pruned an open claim")
	}
	end(t, st, id, ticket.Admitted)
	receive(2)
	if prune() != 0 {
		t.Fatal("did not prune a closed and received event")
	}
	if _, ok, _ := st.Row(unit(1)); ok {
		t.Fatal("the row is still there")
	}
	own, _ := st.Own()
	if own[0].Base != 2 || own[0].Pos != 2 {
		t.Fatalf("own run after pruning: %+v", own)
	}
	if m := claim(t, st, unit(1)); m.Reason != ticket.Closed {
		t.Fatalf("a claim on a closed event: %+v", m)
	}
}

func TestUnreceipted(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	id := claim(t, st, unit(1)).Record.Claim.ID
	claim(t, st, unit(2))
	end(t, st, id, ticket.Admitted)
	recs, err := st.Unreceipted(unit(1))
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	s := st.Stream()
	if err := st.SetReceipts(t.Context(), []ticket.StreamPos{{Source: s.Source, Run: s.Run, Pos: 3}}); err != nil {
		t.Fatal(err)
	}
	if recs, _ = st.Unreceipted(unit(1)); len(recs) != 0 {
		t.Fatalf("%d records after the receipt", len(recs))
	}
}

func TestCodeList(t *testing.T) {
	st := open(t, kv.NewMem(), "a")
	put := func(pos, version uint64, chunk int, id byte) {
		f := ticket.FeedCodes{Event: "e", Chunk: chunk, Chunks: 2, Hashes: append([]byte{id}, make([]byte, 15)...)}
		learn(t, st, feed(pos, version, ticket.CodesSubject("e", chunk), ticket.Feed{Codes: &f}))
	}
	complete := func() bool {
		chunks, err := st.CodeChunks("e")
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := ticket.AssembleCodes(chunks)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	put(1, 1, 0, 1)
	if complete() {
		t.Fatal("half a list counts as whole")
	}
	put(2, 1, 1, 2)
	if !complete() {
		t.Fatal("a whole list does not count")
	}
	put(3, 2, 0, 1)
	if complete() {
		t.Fatal("chunks of two versions count as one list")
	}
}

func TestMarks(t *testing.T) {
	dir, boot := t.TempDir(), ticket.BootID{1}
	ids := func(i int) ticket.ClaimID { return ticket.ClaimID{Gate: "a", Run: 1, Pos: uint64(i + 1)} }
	m, err := OpenMarks(dir, boot)
	if err != nil {
		t.Fatal(err)
	}
	const n = marksMost + 100
	for i := range n {
		if err := m.Mark(ids(i)); err != nil {
			t.Fatal(err)
		}
	}
	m.Close()
	again, err := OpenMarks(dir, boot)
	if err != nil {
		t.Fatal(err)
	}
	for i := n - marksKept; i < n; i++ {
		if !again.Fired(ids(i)) {
			t.Fatalf("mark %d was lost", i)
		}
	}
	if again.n > marksMost {
		t.Fatalf("the file grew to %d lines", again.n)
	}
	again.Close()
	other, err := OpenMarks(dir, ticket.BootID{2})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Fired(ids(n - 1)) {
		t.Fatal("a mark of another boot counts")
	}
}

func permutations(n int) (out [][]int) {
	var rec func(left, got []int)
	rec = func(left, got []int) {
		if len(left) == 0 {
			out = append(out, append([]int(nil), got...))
			return
		}
		for i := range left {
			rest := append(append([]int(nil), left[:i]...), left[i+1:]...)
			rec(rest, append(got, left[i]))
		}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	rec(all, nil)
	return out
}

func TestOneRevisionWithTwoContents(t *testing.T) {
	peer := open(t, kv.NewMem(), "b")
	a := claim(t, peer, unit(1)).Record
	other := a
	c := *a.Claim
	c.State, c.Rev = ticket.Admitted, 0
	other.Claim = &c
	foreign := claim(t, open(t, kv.NewMem(), "b"), unit(2)).Record // another store of the device …
	foreign.Run = a.Run
	f := *foreign.Claim
	f.ID.Run = a.Run // … that wrote under the same run
	foreign.Claim = &f
	for _, order := range permutations(3) {
		st := open(t, kv.NewMem(), "a")
		rs := []ticket.Record{a, other, foreign}
		forked := 0
		for _, i := range order {
			forked += len(learn(t, st, rs[i]).Forked)
		}
		if forked != 2 {
			t.Fatalf("order %v: %d forks told", order, forked)
		}
		for _, u := range []ticket.Unit{unit(1), unit(2)} {
			if _, err := st.View(u); err != nil {
				t.Fatalf("order %v: %v", order, err)
			}
		}
		if order[2] != 2 && order[0] != 2 {
			continue
		}
		if v, _ := st.View(unit(1)); order[0] != 2 && (len(v.Claims) != 1 || v.Claims[0].Claim.State != ticket.Admitted) {
			t.Fatalf("order %v: %+v", order, v.Claims)
		}
	}
}

// A store that was put back from an old copy, or lost, takes its own later records
// back from others, knows what it admitted, and has them to upload.
func TestOwnRunsComeBack(t *testing.T) {
	begin := func(mem kv.Store) (*Store, ticket.Record) {
		st, err := New(t.Context(), mem, Options{Device: "a", NewRun: func() ticket.Run { return 7 }})
		if err != nil {
			t.Fatal(err)
		}
		return st, claim(t, st, unit(1)).Record
	}
	st, first := begin(kv.NewMem())
	second := claim(t, st, unit(2)).Record
	third := end(t, st, second.Claim.ID, ticket.Admitted)
	for name, before := range map[string]*kv.Mem{"put back": kv.NewMem(), "lost": kv.NewMem()} {
		t.Run(name, func(t *testing.T) {
			if name == "put back" {
				begin(before)
				before = before.Crash()
			}
			again := open(t, before, "a")
			learn(t, again, third)
			learn(t, again, first, second)
			if m := claim(t, again, unit(2)); m.Reason != ticket.AlreadyUsed {
				t.Errorf("a ticket that this gate admitted before: %+v", m)
			}
			own, err := again.Own()
			if err != nil || len(own) != 2 || own[0].Stream() != st.Stream() || own[0].Pos != 3 || own[1].Stream() != again.Stream() {
				t.Errorf("own runs: %+v %v", own, err)
			}
			if cur, err := again.Cursors(); err != nil || len(cur) != 0 {
				t.Errorf("cursors of others: %+v %v", cur, err)
			}
		})
	}
}
