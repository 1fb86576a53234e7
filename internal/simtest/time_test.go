package simtest

import (
	"testing"
	"time"

	"admitone/internal/ticket"
)

// A clock that NTP held a day ahead for a minute, while people came with the next
// event's tickets, raised the floor on disk: after the next power cut the gate takes
// it to be tomorrow still, and says that it does not know. The ledger's word puts it
// right, for good.
func TestAClockThatWasAheadForAMinute(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near}, func(w *World) {
		g := w.gates[0]
		w.cutAll()
		g.PowerCut()
		g.Clock(30*time.Hour, true)
		g.Up()
		w.Wait(70 * time.Second)
		g.Look(0, w.MintFor(tomorrow))
		w.Wait(3 * time.Second)
		g.PowerCut()
		g.Clock(0, false)
		g.Up()
		w.Wait(time.Second)
		if saved, err := g.proc.store.Saved(); err != nil || time.Until(time.Unix(0, saved.Floor.Wall)) < 29*time.Hour {
			t.Fatalf("the floor is %s (%v): nothing to put right", time.Unix(0, saved.Floor.Wall).UTC(), err)
		}
		dark := w.Mint()
		g.Look(0, dark)
		w.Wait(3 * time.Second)
		if v := g.Last(dark); v.Clock != ticket.Untrusted || v.Reason != ticket.WrongEvent {
			w.Errorf("without anybody to tell the time: %+v", v)
		}
		for _, n := range w.gates {
			n.Heal()
		}
		w.ledger.Heal()
		w.Wait(2 * time.Minute) // the floor follows, and is stored
		tk := w.Mint()
		g.Look(0, tk)
		w.Wait(3 * time.Second)
		if v := g.Last(tk); v.Reason != ticket.OK || v.Clock != ticket.Trusted {
			w.Errorf("told the time: %+v", v)
		}
		w.cutAll()
		g.PowerCut()
		g.Up()
		w.Wait(time.Second)
		late := w.Mint()
		g.Look(0, late)
		w.Wait(3 * time.Second)
		saved, err := g.proc.store.Saved()
		if off := time.Since(time.Unix(0, saved.Floor.Wall)).Abs(); err != nil || off > 10*time.Minute || g.Last(late).Reason != ticket.OK {
			w.Errorf("after one more power cut the floor is %s off (%v), and a ticket got %+v", off, err, g.Last(late))
		}
		w.Heal()
		w.check()
		w.checkShown()
	})
}

// A clock that runs on wrongly is stepped while the gate works: the claims keep the
// time that the ledger told, and the order in which they were made.
func TestAClockThatIsStepped(t *testing.T) {
	simulate(t, 1, setup{gates: 2, link: near}, func(w *World) {
		g, before := w.gates[0], time.Time{}
		for _, off := range []time.Duration{0, time.Hour, -3 * time.Hour, 90 * time.Second, -90 * 24 * time.Hour} {
			g.Clock(off, off == 0)
			w.Wait(10 * time.Second)
			tk := w.Mint()
			g.Look(0, tk)
			w.Wait(3 * time.Second)
			w.want(g, tk, ticket.OK)
			c, _, err := g.proc.store.Find(g.Claim(tk))
			if d := time.Since(c.Claimed.Time()); err != nil || d < 2*time.Second || d > 4*time.Second || c.Claimed.Class != ticket.Trusted {
				w.Errorf("%s off, the claim says it was made %s ago (%s), %v", off, d, c.Claimed.Class, err)
			}
			if !c.Claimed.Time().After(before) {
				w.Errorf("%s off, a claim is older than the one before it", off)
			}
			before = c.Claimed.Time()
		}
		stepped := 0
		recs, _, _, _, err := g.proc.store.Read(g.proc.store.Stream(), 0, 1000, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range recs {
			if rec, err := ticket.DecodeRecord(raw); err == nil && rec.Event != nil && rec.Event.Type == ticket.EventClock {
				stepped++
			}
		}
		if stepped < 4 {
			w.Errorf("%d steps were noticed, of 4", stepped)
		}
		w.Heal()
		w.check()
	})
}
