package ledgertest

import (
	"context"
	"errors"

	"admitone/internal/ledger"
)

// Twice gives a store whose Update runs each function twice, the first time in a
// transaction that is undone: as a store does whose transactions got in each
// other's way. Whoever counts on a function's running once fails its tests on it.
func Twice(s ledger.Store) ledger.Store { return twice{s} }

type twice struct{ ledger.Store }

var errUndone = errors.New("undone to be run again")

func (t twice) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	err := t.Store.Update(ctx, func(tx ledger.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errUndone
	})
	if !errors.Is(err, errUndone) {
		return err
	}
	return t.Store.Update(ctx, fn)
}
