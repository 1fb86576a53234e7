package wiretest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"admitone/internal/wire"
)

func TestConn(t *testing.T) {
	RunConn(t, func(t *testing.T) Parties {
		n := NewNet(1)
		t.Cleanup(n.Close)
		made := 0
		node := func(t *testing.T) Node {
			made++
			c := n.Conn(fmt.Sprintf("node%d", made))
			return Node{Conn: c, ID: fmt.Sprintf("node%d", made), Cut: c.Cut, Heal: c.Heal, Close: c.Close}
		}
		return Parties{Gate: node, Ledger: node}
	})
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"gate.*.spend", "gate.a.spend", true}, {"gate.*.spend", "gate.a.b.spend", false},
		{"gate.*.spend", "gate.a", false}, {"gate.>", "gate.a.spend", true}, {"gate.>", "gate", false},
		{"gate.a", "gate.a", true}, {"gate.a", "gate.a.b", false}, {"gate.*", "gate.a.b", false}, {">", "a", true},
	} {
		if got := match(c.pattern, c.subject); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.subject, got)
		}
	}
}

// TestLinks sees that each thing a link can do to messages is done, and about as
// often as it says.
func TestLinks(t *testing.T) {
	const n = 2000
	count := func(t *testing.T, l Link, each time.Duration) (came int, inOrder bool, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			net := NewNet(7)
			defer net.Close()
			a, b := net.Conn("a"), net.ConnAt("venue", "b")
			a.SetLink(l)
			last, start := -1, time.Now()
			inOrder = true
			must(t, b.Subscribe("x.*", "", func(m wire.Msg) {
				var i int
				fmt.Sscan(string(m.Data), &i)
				came++
				inOrder = inOrder && i >= last
				last, took = i, time.Since(start)
			}))
			for i := range n {
				must(t, a.Publish("x.y", []byte(fmt.Sprint(i))))
				time.Sleep(each)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		return came, inOrder, took
	}
	if came, ordered, took := count(t, Link{Delay: time.Second, Jitter: time.Second}, 0); came != n || !ordered || took < time.Second || took > 2*time.Second {
		t.Errorf("delayed: %d came, in order %v, after %v", came, ordered, took)
	}
	if came, _, _ := count(t, Link{Drop: 0.25}, 0); came < n*7/10 || came > n*8/10 {
		t.Errorf("a quarter dropped: %d of %d came", came, n)
	}
	if came, _, _ := count(t, Link{Duplicate: 0.25}, 0); came < n*12/10 || came > n*13/10 {
		t.Errorf("a quarter repeated: %d of %d came", came, n)
	}
	if came, ordered, _ := count(t, Link{Reorder: 0.5, Jitter: time.Second}, time.Millisecond); came != n || ordered {
		t.Errorf("reordered: %d came, in order %v", came, ordered)
	}
	if came, _, _ := count(t, Link{Hang: true}, 0); came != 0 {
		t.Errorf("hung: %d came", came)
	}
}

// TestUplinkCut sees that a site goes on within itself.
func TestUplinkCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNet(1)
		defer n.Close()
		hub, a, b := n.Conn("hub"), n.ConnAt("venue", "a"), n.ConnAt("venue", "b")
		atHub, atB := collect(t, hub, "gate.*.spend", ""), collect(t, b, "gate.*.spend", "")
		n.SetUplink("venue", Link{Cut: true})
		must(t, a.Publish("gate.a.spend", []byte("1")))
		synctest.Wait()
		if len(atB) != 1 || len(atHub) != 0 {
			t.Errorf("uplink cut: %d at b, %d at the hub", len(atB), len(atHub))
		}
		n.SetUplink("venue", Link{})
		must(t, a.Publish("gate.a.spend", []byte("2")))
		synctest.Wait()
		if len(atB) != 2 || len(atHub) != 1 {
			t.Errorf("uplink healed: %d at b, %d at the hub", len(atB), len(atHub))
		}
	})
}
