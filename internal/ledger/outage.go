package ledger

import (
	"cmp"
	"slices"
	"time"

	"admitone/internal/ticket"
)

// lateAfter is how long after it was made a claim must have come to count as late:
// longer than any gate that is connected takes, and shorter than any outage that
// people speak of.
const lateAfter = 5 * time.Second

// orMissing is the error of a look-up that found nothing, or failed.
func orMissing(err error) error {
	if err != nil {
		return err
	}
	return ErrNotFound
}

// spell is a time in which a gate of a conflict was away: from a claim to its
// arrival here.
type spell struct {
	conflict string
	from, to int64 // Unix nanoseconds
}

func spells(c ConflictRow) (out []spell) {
	for _, s := range c.Sides {
		if s.Heard-s.Time > int64(lateAfter) {
			out = append(out, spell{c.ID, s.Time, s.Heard})
		}
	}
	return out
}

// outages tells, per conflict that has a late claim, when its outage began:
// conflicts whose gates were away at overlapping times belong to one.
func (t *txn) outages() (map[string]string, error) {
	const page = 1000
	var all []spell
	for after := ""; ; {
		rows, next, err := t.Conflicts(after, page)
		if err != nil {
			return nil, wrap("group conflicts", err)
		}
		for _, r := range rows {
			all = append(all, spells(r)...)
		}
		if after = next; len(rows) < page {
			return group(all), nil
		}
	}
}

// group joins spells that overlap, directly or through others, and names each
// group by its beginning. A conflict with several spells joins theirs.
func group(all []spell) map[string]string {
	// A conflict's own spells are one outage, whether they overlap or not.
	whole := map[string]spell{}
	for _, s := range all {
		w, ok := whole[s.conflict]
		if !ok {
			w = s
		}
		whole[s.conflict] = spell{s.conflict, min(w.from, s.from), max(w.to, s.to)}
	}
	order := make([]spell, 0, len(whole))
	for _, s := range whole {
		order = append(order, s)
	}
	slices.SortFunc(order, func(a, b spell) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.conflict, b.conflict)) })
	out := map[string]string{}
	var from, to int64
	for i, s := range order {
		if i == 0 || s.from > to {
			from, to = s.from, s.to
		}
		to = max(to, s.to)
		out[s.conflict] = unix(from).Format(ticket.TimeFormat)
	}
	return out
}
