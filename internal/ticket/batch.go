package ticket

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
)

// Batch is a part of what a gate exports for a ledger that it cannot reach: records
// of one run, as an upload has them. A file of them goes by hand, so each part is
// signed by the device's key, and says where in the file it belongs.
type Batch struct {
	Device  Source   `cbor:"1,keyasint"`
	Place   string   `cbor:"2,keyasint"`
	Export  uint64   `cbor:"3,keyasint"` // names the export; no two have one number
	Part    int      `cbor:"4,keyasint"` // 1, 2, 3 …
	Last    bool     `cbor:"5,keyasint,omitempty"`
	Made    int64    `cbor:"6,keyasint"` // Unix nanoseconds by the gate's clock; nothing orders by it
	Run     Run      `cbor:"7,keyasint"`
	Base    uint64   `cbor:"8,keyasint"` // the gate has pruned the run's records up to here
	From    uint64   `cbor:"9,keyasint"` // the position of the first record
	Records [][]byte `cbor:"10,keyasint"`
}

// Limits of a part: it is one transaction of the ledger.
const (
	MaxBatchRecords = 256
	MaxBatch        = 768 << 10 // bytes, signed
)

const batchKind = "application/vnd.admitone.records+cbor"

// SignBatch gives a part as it travels.
func SignBatch(b Batch, priv ed25519.PrivateKey) ([]byte, error) {
	payload, err := encMode.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode records: %w", err)
	}
	signed, err := SignDocument(batchKind, payload, priv)
	if err != nil {
		return nil, fmt.Errorf("sign records: %w", err)
	}
	if len(signed) > MaxBatch || len(b.Records) > MaxBatchRecords {
		return nil, fmt.Errorf("sign records: %d records in %d bytes, at most %d in %d", len(b.Records), len(signed), MaxBatchRecords, MaxBatch)
	}
	return signed, nil
}

// OpenBatch reads what SignBatch wrote: only that spelling, and only signed by the
// key.
func OpenBatch(signed []byte, pub ed25519.PublicKey) (Batch, error) {
	payload, err := OpenDocument(batchKind, signed, pub)
	if err != nil {
		return Batch{}, fmt.Errorf("open records: %w", err)
	}
	return readBatch(payload)
}

// PeekBatch reads a part without knowing whose it is. Nothing of it is proven.
func PeekBatch(signed []byte) (Batch, error) {
	s, err := unseal(batchKind, signed)
	if err != nil {
		return Batch{}, fmt.Errorf("open records: %w", err)
	}
	return readBatch(s.payload)
}

func readBatch(payload []byte) (b Batch, err error) {
	if err := decMode.Unmarshal(payload, &b); err != nil {
		return Batch{}, fmt.Errorf("open records: %w", err)
	}
	if again, err := encMode.Marshal(b); err != nil || !bytes.Equal(again, payload) {
		return Batch{}, fmt.Errorf("open records: not in their one form")
	}
	if len(b.Records) > MaxBatchRecords || b.Device == "" || b.Part < 1 || len(b.Records) > 0 && b.From == 0 {
		return Batch{}, fmt.Errorf("open records: %d records from position %d as part %d of device %q", len(b.Records), b.From, b.Part, b.Device)
	}
	return b, nil
}
