package simtest

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ticket"
)

// everybody changes the link of every node.
func (w *World) everybody(change func(interface {
	Cut()
	Hang()
	Heal()
})) {
	change(w.ledger)
	for _, g := range w.gates {
		change(g)
	}
}

func (w *World) cutAll() {
	w.everybody(func(n interface {
		Cut()
		Hang()
		Heal()
	}) {
		n.Cut()
	})
}
func (w *World) hangAll() {
	w.everybody(func(n interface {
		Cut()
		Hang()
		Heal()
	}) {
		n.Hang()
	})
}
func (w *World) healAll() {
	w.everybody(func(n interface {
		Cut()
		Hang()
		Heal()
	}) {
		n.Heal()
	})
}

// The broker is away for 10 minutes, in three ways: verdicts stay within the
// deadline, two gates that cannot hear each other admit the same ticket, and after
// the heal there is one conflict, nothing is lost and nothing was uploaded twice.
func TestOutages(t *testing.T) {
	for name, away := range map[string]func(w *World, minute int){
		"down":         func(w *World, _ int) { w.cutAll(); w.rush(30 * time.Second) },
		"black-holed":  func(w *World, _ int) { w.hangAll(); w.rush(30 * time.Second) },
		"every second": func(w *World, _ int) { w.flap(30 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulate(t, 1, setup{gates: 3, link: near}, func(w *World) {
				w.rush(10 * time.Second)
				for i := range 20 {
					away(w, i)
				}
				w.healAll()
				w.rush(10 * time.Second)
				w.Heal()
				w.check()
				if n := len(w.ledger.AllConflicts()); n == 0 {
					w.Errorf("no conflict, though gates were cut off")
				}
				if n := w.ledger.UploadedTwice(); n > 0 {
					w.Errorf("%d positions were uploaded more than once", n)
				}
				w.checkDeadline()
				w.permute(5)
				w.checkShown()
			})
		})
	}
}

// flap lets the network come and go every second while people come.
func (w *World) flap(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.cutAll()
		w.rush(time.Second)
		w.healAll()
		w.rush(time.Second)
	}
}

// rush lets people come for a time: new tickets at each gate, and some that are
// shown at two.
func (w *World) rush(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		tk := w.Mint()
		at := w.dice.N(len(w.gates))
		w.gates[at].Look(0, tk)
		w.Wait(w.dice.Span(2 * time.Second))
		if w.dice.Hit(3) {
			w.gates[(at+1)%len(w.gates)].Look(0, tk)
		}
		w.Wait(300 * time.Millisecond)
	}
}

// checkDeadline: the first verdict of every presentation came within the patience
// and a few local claims.
func (w *World) checkDeadline() {
	w.t.Helper()
	deadline := 400*time.Millisecond + 5*w.setup.disk
	for _, g := range w.gates {
		g.mu.Lock()
		said := map[string]bool{}
		for _, v := range g.verdicts {
			if !said[v.Ticket] && v.Took > deadline {
				w.Errorf("%s took %s to say %s", g.id, v.Took, v.Reason)
			}
			said[v.Ticket] = true
		}
		if len(said) == 0 {
			w.Errorf("%s said nothing", g.id)
		}
		g.mu.Unlock()
	}
}

// permute brings all records to fresh ledgers, each in another order: the
// conflicts and their first are the same (invariant 8).
func (w *World) permute(times int) {
	w.t.Helper()
	var all []ticket.Arrival
	for s := range w.ledger.Streams() {
		r, err := w.ledger.Read(context.Background(), s, 0, 1<<20, 1<<30)
		if err != nil {
			w.t.Fatal(err)
		}
		for i, raw := range r.Records {
			all = append(all, ticket.Arrival{Stream: s, Pos: r.From + uint64(i), Raw: raw})
		}
	}
	want := tidy(w.ledger.AllConflicts())
	for range times {
		got := w.conflictsOf(all)
		if len(got) != len(want) {
			w.Errorf("records in another order give %d conflicts, want %d", len(got), len(want))
			return
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				w.Errorf("records in another order give the conflict\n%+v, want\n%+v", got[i], want[i])
				return
			}
		}
	}
}

func (w *World) conflictsOf(all []ticket.Arrival) []ledger.Conflict {
	l, err := ledger.New(ledgerstore.New(kv.NewMem()), ledger.Options{
		Process: "other", Now: time.Now, Log: slog.New(slog.DiscardHandler), ProgrammeKey: key("programme"), NewRun: w.dice.run,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	all = slices.Clone(all)
	for i := range all {
		j := i + w.dice.N(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	for len(all) > 0 {
		n := min(len(all), 1+w.dice.N(40))
		if err := l.Learn(context.Background(), all[:n]); err != nil {
			w.t.Fatal(err)
		}
		all = all[n:]
	}
	out, _, err := l.Conflicts(context.Background(), "", 100_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return tidy(out)
}

// tidy leaves out what depends on when and in which order records came: when a
// conflict was announced, which offline spells it fell into, and those that were
// withdrawn since.
func tidy(in []ledger.Conflict) (out []ledger.Conflict) {
	for _, c := range in {
		if c.State != ledger.ConflictWithdrawn {
			c.Announced, c.Outage = "", ""
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Conflict) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// A ledger that is restored from an older copy is level again, used tickets are
// still refused, and a conflict keeps its id.
func TestLedgerRestoredFromAnOlderCopy(t *testing.T) {
	simulate(t, 1, setup{gates: 3, link: near}, func(w *World) {
		double := func() Ticket {
			tk := w.Mint()
			w.cutAll()
			w.Wait(6 * time.Second)
			w.gates[0].Look(0, tk)
			w.gates[1].Look(0, tk)
			w.Wait(2 * time.Second)
			w.Heal()
			return tk
		}
		double()
		backup := w.ledger.Backup()
		ids := func() (out []string) {
			for _, c := range tidy(w.ledger.AllConflicts()) {
				out = append(out, c.ID)
			}
			return out
		}
		double()
		w.rush(20 * time.Second)
		w.Heal()
		before := ids()
		w.ledger.Restore(backup)
		w.rush(5 * time.Second)
		w.Heal()
		w.check()
		if after := ids(); len(after) != 2 || !slices.Equal(before, after) {
			w.Errorf("conflicts before %v, after %v", before, after)
		}
		if len(w.ledger.AllAlarms(ledger.AlarmRestored)) != 0 {
			w.Errorf("an alarm of a restore, though no feed was lost")
		}
		w.checkShown()
	})
}
