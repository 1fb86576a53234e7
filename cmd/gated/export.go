package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"

	"admitone/internal/gatestore"
	"admitone/internal/ticket"
)

// exporter writes this device's own records for a ledger that it cannot reach.
type exporter struct {
	store  *gatestore.Store
	device ticket.Source
	key    ed25519.PrivateKey
}

// batchBytes is how many bytes of records go into a part, at most; one that is
// larger has a part of its own.
const batchBytes = ticket.MaxBatch * 3 / 4

// export writes all that is held of the device's own runs, oldest first, receipted
// or not: a ledger that was put back from a backup lacks what it once had.
func (e exporter) export(ctx context.Context, w io.Writer, place string, now int64) error {
	runs, err := e.store.Own()
	if err != nil {
		return err
	}
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	out := ticket.NewBatchWriter(w)
	next := ticket.Batch{Device: e.device, Place: place, Export: binary.BigEndian.Uint64(id[:]), Part: 1, Made: now}
	send := func() error {
		signed, err := ticket.SignBatch(next, e.key)
		if err != nil {
			return err
		}
		next.Part++
		return out.Write(signed)
	}
	for _, p := range runs {
		for after := p.Base; after < p.Pos && ctx.Err() == nil; after += uint64(len(next.Records)) {
			next.Run, next.Base = p.Run, p.Base
			if next.Records, next.From, _, _, err = e.store.Read(p.Stream(), after, ticket.MaxBatchRecords, batchBytes); err != nil {
				return err
			}
			if len(next.Records) == 0 || next.From != after+1 {
				return fmt.Errorf("read run %s after %d: nothing, though it goes to %d", p.Run, after, p.Pos)
			}
			if err := send(); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	next.Run, next.Base, next.From, next.Records, next.Last = 0, 0, 0, nil, true
	return send()
}
