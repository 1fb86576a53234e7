package ledger

import (
	"math/rand/v2"
	"testing"
)

func TestConflictsOfOneOutageAreOneGroup(t *testing.T) {
	const s = int64(1e9)
	all := []spell{
		{"a", 10 * s, 100 * s}, {"b", 90 * s, 200 * s}, {"c", 150 * s, 210 * s}, // one after the other
		{"d", 300 * s, 400 * s}, {"d", 350 * s, 500 * s}, {"e", 480 * s, 490 * s}, // two spells of one conflict
		{"f", 900 * s, 910 * s},
	}
	for range 50 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		g := group(all)
		if g["a"] != g["b"] || g["b"] != g["c"] || g["d"] != g["e"] || g["c"] == g["d"] || g["e"] == g["f"] {
			t.Fatalf("groups %v", g)
		}
		if g["a"] != "1970-01-01T00:00:10.000Z" {
			t.Fatalf("the outage began %s", g["a"])
		}
	}
}

func TestOnlyLateClaimsMakeASpell(t *testing.T) {
	c := ConflictRow{ID: "x", Sides: []Side{{Time: 0, Heard: int64(lateAfter)}, {Time: 0, Heard: int64(lateAfter) + 1}}}
	if got := spells(c); len(got) != 1 || got[0].to != int64(lateAfter)+1 {
		t.Fatalf("%+v", got)
	}
}
