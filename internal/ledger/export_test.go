package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

func TestRecordsAreListedInPagesWithoutGapsAndRepeats(t *testing.T) {
	r := newRig(t)
	g, h := newGate("a", r.clock), newGate("a/b", r.clock)
	fill(g, 7)
	g.log[2] = []byte("junk")
	g.write(ticket.Record{Event: &ticket.Event{Type: ticket.EventStaff, Place: "North", Detail: "staff button"}})
	fill(h, 3)
	r.upload(g, 1)
	r.upload(h, 1)
	r.wantHand("1", text(t, unit(99)), ticket.OK)
	var whole []ledger.RecordReport
	for _, limit := range []int{1000, 1, 3, 4} {
		var all []ledger.RecordReport
		for after := ""; ; {
			page, next, err := r.Records(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				if next != after {
					t.Errorf("an empty page moved the cursor from %q to %q", after, next)
				}
				break
			}
			all, after = append(all, page...), next
		}
		if whole == nil {
			whole = all
		}
		if !slices.Equal(all, whole) {
			t.Errorf("in pages of %d: %d records, want the %d of one page", limit, len(all), len(whole))
		}
	}
	kinds := map[string]int{}
	for _, x := range whole {
		kinds[x.Kind]++
	}
	if kinds["claim"] != 14+6+1-1 || kinds["event"] != 1 || kinds["aside"] != 1 || kinds["feed"] != 1 {
		t.Errorf("kinds %v", kinds)
	}
	for _, bad := range []string{"a", "a/1", "a/0000000000000001", "a/0000000000000001/x", "/0000000000000001/1"} {
		if _, _, err := r.Records(t.Context(), bad, 1); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("cursor %q: %v, want ErrInvalid", bad, err)
		}
	}
}
