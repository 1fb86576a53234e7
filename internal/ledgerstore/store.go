package ledgerstore

import (
	"context"
	"errors"
	"fmt"

	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/seen"
	"admitone/internal/seen/kvseen"
)

// Store is the ledger's tables on a key-value store.
type Store struct{ kv kv.Store }

var _ ledger.Store = (*Store)(nil)

// Version is the form of the store, for the file's meta.
const Version = 2

// New takes an open key-value store over, and closes it with itself.
func New(s kv.Store) *Store { return &Store{kv: s} }

// View is ledger.Store.View.
func (s *Store) View(ctx context.Context, fn func(ledger.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return known(s.kv.View(func(t kv.Tx) error { return fn(tx{t}) }))
}

// Update is ledger.Store.Update.
func (s *Store) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	return known(s.kv.Update(ctx, func(t kv.Tx) error { return fn(tx{t}) }))
}

// Close closes the key-value store.
func (s *Store) Close() error { return s.kv.Close() }

// known gives a commit of unknown outcome, after which the store serves nothing
// more, the ledger's names for it.
func known(err error) error {
	if errors.Is(err, kv.ErrUnknown) {
		return fmt.Errorf("%w: %w: %w", ledger.ErrUnknown, ledger.ErrBroken, err)
	}
	return err
}

// tx is ledger.Tx within a transaction of the key-value store.
type tx struct{ kv kv.Tx }

// Seen is ledger.Tx.Seen.
func (t tx) Seen() seen.Tx { return kvseen.Bind(t.kv) }
