package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"admitone/internal/boltfile"
	"admitone/internal/gatestore"
	"admitone/internal/ticket"
)

// maxSize of the stores, in bytes: the programs under test have no more, either.
const maxSize = 16 << 20

// Verify says whether a file is sound, as boltfile.Verify and VerifyInChild do.
type Verify func(ctx context.Context, path string) error

// open opens a store as the daemons do.
func open(path, name string, version int, v Verify) (*boltfile.File, error) {
	return boltfile.Open(context.Background(), path, boltfile.Options{Name: name, Version: version, MaxSize: maxSize, Verify: v})
}

// CheckGate opens a gate's store, checks it and asks it for all that was announced.
func CheckGate(device ticket.Source, said []Note, path string, v Verify) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && len(said) > 0 {
		return fmt.Errorf("there is no store, and %d things were announced", len(said))
	}
	f, err := open(path, "gate", gatestore.Version, v)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := gatestore.New(context.Background(), f, gatestore.Options{Device: device})
	if err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	for _, n := range said {
		if err := gateHas(s, n); err != nil {
			return err
		}
	}
	return nil
}

func gateHas(s *gatestore.Store, n Note) error {
	switch {
	case n.Relay != "":
		id, err := ticket.ParseClaimID(n.Relay)
		if err != nil {
			return fmt.Errorf("the relay moved for the claim %q", n.Relay)
		}
		if _, ok, err := s.Find(id); err != nil || !ok {
			return fmt.Errorf("the relay moved for claim %s, which is not here (%v)", id, err)
		}
	case !n.Admit.IsZero():
		if _, ok, err := s.Find(n.Admit); err != nil || !ok {
			return fmt.Errorf("claim %s was shown as admitted and is not here (%v)", n.Admit, err)
		}
	case n.Result != nil:
		c, ok, err := s.Find(n.Result.Claim)
		if err != nil || !ok || c.State == ticket.Pending {
			return fmt.Errorf("claim %s was written down as %s and is %s (%t, %v)", n.Result.Claim, n.Result.State, c.State, ok, err)
		}
	case n.Record != nil:
		rec, err := ticket.DecodeRecord(n.Record)
		if err != nil {
			return err
		}
		raws, _, _, _, err := s.Read(rec.Stream(), rec.Pos-1, 1, 1)
		if err != nil || len(raws) != 1 || !bytes.Equal(raws[0], n.Record) {
			return fmt.Errorf("record %s/%s/%d was sent and is not here (%v)", rec.Source, rec.Run, rec.Pos, err)
		}
	}
	return nil
}
