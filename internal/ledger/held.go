package ledger

import "admitone/internal/ticket"

// Held reports whether somebody is in with a ticket of an event, or at a gate with
// it: whether a claim holds one of its units.
func (w *Within) Held(event string, f ticket.Format, id ticket.ID) (bool, error) {
	rows, err := w.t.TicketClaims(event, f, id)
	if err != nil {
		return false, wrap("read claims", err)
	}
	for _, r := range rows {
		u, err := w.t.unit(r.Claim.Unit)
		if err != nil {
			return false, err
		}
		v, err := w.t.look(u)
		if err != nil {
			return false, err
		}
		if k, ok := v.Find(r.Claim.ID); ok && k.Holds() {
			return true, nil
		}
	}
	return false, nil
}
