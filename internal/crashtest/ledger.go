package crashtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"admitone/internal/config"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/ticket"
	"admitone/internal/wire"
)

// CheckLedger opens a ledger's store, checks it and asks it for all that was
// announced. The ledger's key is beside it.
func CheckLedger(said []Note, path string, v Verify) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && len(said) > 0 {
		return fmt.Errorf("there is no store, and %d things were announced", len(said))
	}
	f, err := open(path, "ledger", ledgerstore.Version, v)
	if err != nil {
		return err
	}
	defer f.Close()
	store := ledgerstore.New(f)
	t := &tester{}
	t.run(func() { ledgertest.Check(t, store) })
	if len(t.errs) > 0 {
		return errors.Join(t.errs...)
	}
	key, err := config.EnsureKey(filepath.Join(filepath.Dir(path), "programme.key"))
	if err != nil {
		return err
	}
	l, err := ledger.New(store, ledger.Options{
		Process: "1", Now: time.Now, Log: slog.New(slog.DiscardHandler), DeviceID: wire.DeviceID, ProgrammeKey: key,
	})
	if err != nil {
		return err
	}
	for _, n := range said {
		if err := ledgerHas(store, l, n); err != nil {
			return err
		}
	}
	return nil
}

func ledgerHas(store ledger.Store, l *ledger.Ledger, n Note) error {
	ctx := context.Background()
	switch {
	case n.Answer != nil:
		return answers(store, l, *n.Answer)
	case n.Revoke != ticket.ID{}:
		r, err := l.Ticket(ctx, ticket.FormatA1, n.Revoke)
		if err != nil || !r.Revoked {
			return fmt.Errorf("ticket %s was revoked and is not (%v)", n.Revoke, err)
		}
	}
	return store.View(ctx, func(tx ledger.Tx) error {
		for _, p := range n.High {
			if row, err := tx.Stream(p.Stream()); err != nil || row.High < p.Pos {
				return fmt.Errorf("run %s/%s was receipted up to %d and is here up to %d (%v)", p.Source, p.Run, p.Pos, row.High, err)
			}
		}
		if n.Record == nil {
			return nil
		}
		rec, err := ticket.DecodeRecord(n.Record)
		if err != nil {
			return err
		}
		k, ok, err := tx.Record(rec.Stream(), rec.Pos)
		if err != nil || !ok || string(k.Raw) != string(n.Record) {
			return fmt.Errorf("record %s/%s/%d was told or receipted and is not here (%t, %v)", rec.Source, rec.Run, rec.Pos, ok, err)
		}
		return nil
	})
}

// answers asks again: the answer must be kept with the claim, and be the same.
func answers(store ledger.Store, l *ledger.Ledger, a Answer) error {
	err := store.View(context.Background(), func(tx ledger.Tx) error {
		rows, err := tx.Claims(a.Unit)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rows, func(r ledger.ClaimRow) bool { return r.Claim.ID == a.Claim })
		if i < 0 || rows[i].Answer != a.Answer {
			return fmt.Errorf("claim %s was answered %q, and that is not kept", a.Claim, a.Answer)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r, err := l.Ask(context.Background(), a.Claim.Gate, ledger.Ask{Claim: a.Claim, Unit: a.Unit})
	if err != nil || r.Answer != a.Answer {
		return fmt.Errorf("claim %s was answered %q and is answered %q now (%v)", a.Claim, a.Answer, r.Answer, err)
	}
	return nil
}

// tester takes what a check for tests has to say.
type tester struct {
	testing.TB // nil: a check that uses more than this ends the program
	errs       []error
}

// stopped is what Fatalf panics with.
type stopped struct{}

func (t *tester) run(f func()) {
	defer func() {
		if r := recover(); r != nil && r != (stopped{}) {
			panic(r)
		}
	}()
	f()
}

func (t *tester) Helper() {}
func (t *tester) Errorf(format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf(format, args...))
}
func (t *tester) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(stopped{})
}
