package ledgerstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"admitone/internal/boltfile"
	"admitone/internal/kv"
	"admitone/internal/ledger"
	"admitone/internal/ledgerstore"
	"admitone/internal/ledgerstore/ledgertest"
	"admitone/internal/office"
)

func TestInMemory(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledger.Store { return ledgerstore.New(kv.NewMem()) })
	ledgertest.RunOffice(t, func(*testing.T) office.Books { return ledgerstore.New(kv.NewMem()).Books() })
}

func TestOnAFile(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return onAFile(t) })
	ledgertest.RunOffice(t, func(t *testing.T) office.Books { return onAFile(t).Books() })
}

func onAFile(t *testing.T) *ledgerstore.Store {
	t.Helper()
	f, err := boltfile.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), boltfile.Options{Name: "ledger", Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := ledgerstore.New(f)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAFailedCommitHasTheLedgersName(t *testing.T) {
	mem := kv.NewMem()
	s := ledgerstore.New(mem)
	mem.FailNext(kv.FailLost)
	put := func(tx ledger.Tx) error { return tx.PutSubject("x", ledger.SubjectRow{Source: "ledger/a"}) }
	for range 2 {
		err := s.Update(context.Background(), put)
		if !errors.Is(err, ledger.ErrUnknown) || !errors.Is(err, ledger.ErrBroken) || !errors.Is(err, kv.ErrUnknown) {
			t.Errorf("update after a failed commit: %v, want ErrUnknown", err)
		}
	}
}

func TestADamagedRowIsAnError(t *testing.T) {
	mem := kv.NewMem()
	s := ledgerstore.New(mem)
	for bucket, read := range map[string]func(ledger.Tx) error{
		"subject": func(tx ledger.Tx) error { _, _, err := tx.Subject("x"); return err },
		"event":   func(tx ledger.Tx) error { _, err := tx.Event("x"); return err },
		"alarm":   func(tx ledger.Tx) error { _, _, err := tx.Alarm("x"); return err },
		"stream":  func(tx ledger.Tx) error { return tx.Streams("", nil) },
		"due":     func(tx ledger.Tx) error { _, err := tx.Due(1<<62, 1); return err },
	} {
		err := mem.Update(context.Background(), func(tx kv.Tx) error { return tx.Put(bucket, []byte("x"), []byte{0xff}) })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.View(context.Background(), read); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a damaged row of %s: %v, want ErrCorrupt", bucket, err)
		}
	}
}
