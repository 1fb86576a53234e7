package ledger

import (
	"context"

	"admitone/internal/ticket"
)

// The admin writes, each as a transaction of its own: see the methods of Within.

// Revoke is Within.Revoke alone.
func (l *Ledger) Revoke(ctx context.Context, f ticket.Format, id ticket.ID, revoked bool, by string) error {
	return l.Within(ctx, func(w *Within) error { return w.Revoke(f, id, revoked, by) })
}

// Release is Within.Release alone.
func (l *Ledger) Release(ctx context.Context, id ticket.ClaimID, by, note string) error {
	return l.Within(ctx, func(w *Within) error { return w.Release(id, by, note) })
}

// PushProgramme is Within.PushProgramme alone.
func (l *Ledger) PushProgramme(ctx context.Context, p ticket.Programme) (uint64, error) {
	return within(ctx, l, func(w *Within) (uint64, error) { return w.PushProgramme(p) })
}

// CloseEvent is Within.CloseEvent alone.
func (l *Ledger) CloseEvent(ctx context.Context, event string) error {
	return l.Within(ctx, func(w *Within) error { return w.CloseEvent(event) })
}

// PutCodes is Within.PutCodes alone.
func (l *Ledger) PutCodes(ctx context.Context, event string, ids []ticket.ID) (uint64, error) {
	list := ticket.NewCodeList(ids)
	return within(ctx, l, func(w *Within) (uint64, error) { return w.PutCodes(event, list) })
}

// EnrolGate is Within.EnrolGate alone.
func (l *Ledger) EnrolGate(ctx context.Context, place, publicKey, role string) (GateEntry, error) {
	return within(ctx, l, func(w *Within) (GateEntry, error) { return w.EnrolGate(place, publicKey, role) })
}

// SwapGate is Within.SwapGate alone.
func (l *Ledger) SwapGate(ctx context.Context, place, sparePublicKey string) (GateEntry, error) {
	return within(ctx, l, func(w *Within) (GateEntry, error) { return w.SwapGate(place, sparePublicKey) })
}

// RevokeGate is Within.RevokeGate alone.
func (l *Ledger) RevokeGate(ctx context.Context, name string) (GateEntry, error) {
	return within(ctx, l, func(w *Within) (GateEntry, error) { return w.RevokeGate(name) })
}

// LostGate is Within.LostGate alone.
func (l *Ledger) LostGate(ctx context.Context, name string) (GateEntry, error) {
	return within(ctx, l, func(w *Within) (GateEntry, error) { return w.LostGate(name) })
}

// Acknowledge is Within.Acknowledge alone.
func (l *Ledger) Acknowledge(ctx context.Context, id, note, by string) (Conflict, error) {
	return within(ctx, l, func(w *Within) (Conflict, error) {
		c, _, err := w.Acknowledge(id, note, by)
		return c, err
	})
}

// within is Ledger.Within with a result: that of the run that was committed.
func within[T any](ctx context.Context, l *Ledger, fn func(*Within) (T, error)) (out T, err error) {
	err = l.Within(ctx, func(w *Within) (err error) {
		out, err = fn(w)
		return err
	})
	return out, err
}
