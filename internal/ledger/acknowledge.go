package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"admitone/internal/seen"
	"admitone/internal/ticket"
)

// acknowledgePolicy is the endpoint's row of the policy table (spec, section 7); it
// lives as long as the event.
var acknowledgePolicy = seen.Policy{Endpoint: "acknowledge", OnRepeat: seen.Echo}

const maxNote = 2000 // bytes

// Acknowledge marks a conflict as dealt with, together with the claims it has
// now: one that is added later opens it again. The same person's same note on the
// same claims is a retry: it is echoed and changes nothing, even where another
// note came in between. A withdrawn conflict takes the note and stays withdrawn.
func (w *Within) Acknowledge(id, note, by string) (c Conflict, replayed bool, err error) {
	c, replayed, err = w.t.acknowledge(id, note, by)
	if err != nil {
		return Conflict{}, false, fmt.Errorf("acknowledge conflict %q: %w", id, err)
	}
	return c, replayed, nil
}

func (t *txn) acknowledge(id, note, by string) (out Conflict, replayed bool, err error) {
	if len(note) > maxNote || len(by) > ticket.MaxText {
		return out, false, fmt.Errorf("note of %d bytes, at most %d: %w", len(note), maxNote, ErrInvalid)
	}
	row, ok, err := t.Conflict(id)
	if err != nil || !ok {
		return out, false, orMissing(err)
	}
	row.Note, row.By, row.Acked = note, by, nil
	for _, s := range row.Sides {
		row.Acked = append(row.Acked, s.Claim)
	}
	k := seen.Key{Endpoint: acknowledgePolicy.Endpoint, Scope: row.Unit.Event, ID: row.acknowledgement()}
	got, err := t.Seen().Claim(acknowledgePolicy, seen.Request{Key: k, At: t.now, Place: by, Holder: by})
	if err != nil {
		return out, false, err
	}
	if got.Outcome == seen.Echoed {
		err := json.Unmarshal(got.Row.Result, &out)
		return out, true, wrap("read stored answer", err)
	}
	row.State = standing(row, row.State != ConflictWithdrawn)
	out = row.Report()
	if err := t.PutConflict(row); err != nil {
		return out, false, err
	}
	if err := t.tell(ConflictNoted, out); err != nil {
		return out, false, err
	}
	t.say(func() { t.l.log.Info("conflict acknowledged", "conflict", id, "by", by) })
	result, err := json.Marshal(out)
	if err != nil {
		return out, false, fmt.Errorf("store answer: %w", err)
	}
	_, err = t.Seen().Finish(k, by, result)
	return out, false, err
}

// acknowledgement names who acknowledged which claims of the conflict with which
// words.
func (c ConflictRow) acknowledgement() string {
	h := sha256.New()
	for _, s := range []string{c.By, c.Note} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	for _, id := range c.Acked {
		h.Write(id.Bytes())
	}
	return c.ID + "/" + hex.EncodeToString(h.Sum(nil)[:16])
}
