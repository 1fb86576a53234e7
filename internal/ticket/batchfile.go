package ticket

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// A file of exported records is text: a first line that says so, and a line of
// base64 for each part.
const batchHead = "admitone records 1"

// BatchWriter writes a file of exported records.
type BatchWriter struct {
	w     *bufio.Writer
	began bool
}

// NewBatchWriter writes to w.
func NewBatchWriter(w io.Writer) *BatchWriter { return &BatchWriter{w: bufio.NewWriter(w)} }

// Write adds a signed part.
func (b *BatchWriter) Write(signed []byte) error {
	if !b.began {
		b.began = true
		if _, err := b.w.WriteString(batchHead + "\n"); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	line := base64.StdEncoding.AppendEncode(nil, signed)
	if _, err := b.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	if err := b.w.Flush(); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

// SignedBatch is a part as it was read, with what it says of itself.
type SignedBatch struct {
	Batch
	Signed []byte
}

// Errors of ReadBatches.
var (
	ErrNoBatches    = errors.New("this is no file of exported records")
	ErrBatchesShort = errors.New("the file is cut off: its last part is missing")
)

// ReadBatches reads a whole file of exported records and checks that it is whole, and
// of one export. Whose signature each part bears is for the ledger to check.
func ReadBatches(r io.Reader) (parts []SignedBatch, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*MaxBatch)
	if !lines.Scan() || lines.Text() != batchHead {
		return nil, errors.Join(lines.Err(), ErrNoBatches)
	}
	for lines.Scan() {
		signed, err := base64.StdEncoding.Strict().DecodeString(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("part %d cannot be read: %w", len(parts)+1, err)
		}
		b, err := PeekBatch(signed)
		if err != nil {
			return nil, fmt.Errorf("part %d cannot be read: %w", len(parts)+1, err)
		}
		if err := fits(b, parts); err != nil {
			return nil, err
		}
		parts = append(parts, SignedBatch{b, signed})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	if len(parts) == 0 || !parts[len(parts)-1].Last {
		return nil, ErrBatchesShort
	}
	return parts, nil
}

func fits(b Batch, parts []SignedBatch) error {
	n := len(parts) + 1
	if b.Part != n {
		return fmt.Errorf("part %d stands where part %d belongs", b.Part, n)
	}
	if n == 1 {
		return nil
	}
	if first := parts[0]; b.Export != first.Export || b.Device != first.Device {
		return fmt.Errorf("part %d is of another export", n)
	}
	if parts[n-2].Last {
		return fmt.Errorf("part %d comes after the last one", n)
	}
	return nil
}
